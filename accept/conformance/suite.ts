/**
 * The official conformance suite of MCP, over our client and our server: one line for each scenario that the official
 * TypeScript SDK passes.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { createInterface } from "node:readline"
import { type Line, node, type Ran, root, run } from "../support.ts"

const here = join(root, "accept")

/** The suite, installed when it is not there yet. */
const suite = (): string => {
  const find = () => createRequire(join(here, "run.ts")).resolve("@modelcontextprotocol/conformance/package.json")
  try {
    return dirname(find())
  } catch {
    run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: here })
    return dirname(find())
  }
}

/**
 * The scenarios that the SDK does not pass either: those that the suite itself calls pending, and the grant of an
 * identity provider, for which the SDK has no provider.
 */
const beyond: ReadonlySet<string> = new Set([
  "json-schema-2020-12",
  "server-sse-polling",
  "auth/cross-app-access-complete-flow"
])

/** The names that the suite lists for one side. */
const scenarios = (bin: string, side: "Server" | "Client"): ReadonlyArray<string> => {
  const listed = node([bin, "list"]).stdout
  const from = listed.indexOf(`${side} scenarios`)
  const to = listed.indexOf("scenarios (", from + `${side} scenarios`.length)
  return [...listed.slice(from, to === -1 ? undefined : to).matchAll(/^ {2}- (\S+)/gm)]
    .map(([, name = ""]) => name)
    .filter((name) => !beyond.has(name))
}

const figureOf = ({ seconds, stderr, stdout }: Ran): string => {
  const said = `${stdout}\n${stderr}`
  const counts = /Passed: (\d+\/\d+), \d+ failed/.exec(said)
  const failed = new Set([...said.matchAll(/^ {2}- (.*)$/gm)].map(([, check = ""]) => check.slice(0, 120)))
  return [`${counts?.[1] ?? "no"} checks in ${seconds.toFixed(1)} s`, ...failed].join("; ")
}

const clientLines = (bin: string, results: string): ReadonlyArray<Line> => {
  const script = join(here, "conformance", "client.ts")
  const command = `${process.execPath} --conditions=kernai-source --no-warnings ${script}`
  return scenarios(bin, "Client").map((scenario) => {
    const ran = node([
      bin,
      "client",
      "--command",
      command,
      "--scenario",
      scenario,
      "-o",
      results,
      "--timeout",
      "120000"
    ])
    return { line: `conformance of the client: ${scenario}`, pass: ran.status === 0, figure: figureOf(ran) }
  })
}

/** Serves for the time of `use`. */
const served = async <A>(use: (url: string) => A): Promise<A> => {
  const script = join(here, "conformance", "server.ts")
  const child = spawn(process.execPath, ["--conditions=kernai-source", "--no-warnings", script], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  try {
    for await (const line of createInterface({ input: child.stdout })) return use(line)
    throw new Error("the server printed no address")
  } finally {
    child.kill("SIGTERM")
  }
}

/** The suite sums up a run over all scenarios that are not pending. */
const serverLines = (bin: string, results: string): Promise<ReadonlyArray<Line>> =>
  served((url) => {
    const { seconds, stdout } = node([bin, "server", "--url", url, "-o", results])
    return scenarios(bin, "Server").map((scenario) => {
      const found = stdout.split("\n").find((line) => line.slice(2).startsWith(`${scenario}: `))
      const figure = found?.slice(scenario.length + 4) ?? "not run"
      return {
        line: `conformance of the server: ${scenario}`,
        pass: found?.startsWith("✓") === true && !/\b0 passed/.test(figure),
        figure: `${figure}, all in ${seconds.toFixed(1)} s`
      }
    })
  })

export const conformance = async (): Promise<ReadonlyArray<Line>> => {
  const bin = join(suite(), "dist", "index.js")
  const results = mkdtempSync(join(tmpdir(), "kernai-conformance-"))
  try {
    return [...clientLines(bin, results), ...(await serverLines(bin, results))]
  } finally {
    rmSync(results, { recursive: true, force: true })
  }
}

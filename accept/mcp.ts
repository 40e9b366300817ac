/**
 * The promises about MCP: from a fresh clone to an answer with a real server, and back to a quiet computer.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { conformance } from "./conformance/suite.ts"
import { attempt, type Line, root, run, tested, vectors } from "./support.ts"

const answer = 'The first line is "Bonjour, petit monde." In English: "Hello, little world."'

/** The processes that were started from a folder, or with a path in it. */
const left = (folder: string): ReadonlyArray<string> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim()]
      } catch {
        return []
      }
    })
    .filter((line) => line.includes(folder) || line.includes("server-filesystem"))

/** A clone in an empty folder, with what it installs itself, and what is left of it afterwards. */
const fresh = (): ReadonlyArray<Line> => {
  const folder = mkdtempSync(join(tmpdir(), "kernai-accept-mcp-"))
  try {
    const before = left(folder).length
    const cloned = run("git", ["clone", "--quiet", "--no-hardlinks", root, folder])
    if (cloned.status !== 0) return [{ line: "git clone", pass: false, figure: cloned.stderr.trim() }]
    const installed = run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder })
    const env = { XDG_DATA_HOME: join(folder, "data") }
    const kernai = (...args: ReadonlyArray<string>) => run("npx", ["kernai", ...args], { cwd: folder, env })
    const ran = kernai("run", "--mcp", "examples/mcp.yml")
    const listed = kernai("mcp", "list", "--mcp", "examples/mcp.yml")
    const call = [
      "mcp",
      "call",
      "files",
      "read_text_file",
      `{"path":"letter.txt","head":1}`,
      "--mcp",
      "examples/mcp.yml"
    ]
    const called = kernai(...call)
    const examined = kernai("mcp", "doctor", "--mcp", "examples/mcp.yml")
    const after = left(folder)
    return [
      { line: "npm ci on a fresh clone", pass: installed.status === 0, figure: `${installed.seconds.toFixed(0)} s` },
      {
        line: "npx kernai run --mcp examples/mcp.yml gives the right answer, without a key",
        pass: ran.status === 0 && ran.stdout.trimEnd().endsWith(answer),
        figure: `exit code ${ran.status}, ${ran.seconds.toFixed(1)} s, ${ran.stdout.trimEnd().split("\n").at(-1) ?? ""}`
      },
      {
        line: "kernai mcp list, call and doctor work with the same server",
        pass:
          listed.status === 0 &&
          listed.stdout.includes("read_text_file") &&
          called.stdout === "Bonjour, petit monde.\n" &&
          examined.status === 0,
        figure: `exit codes ${listed.status}, ${called.status}, ${examined.status}; ${examined.stdout.trim()}`
      },
      {
        line: "no server runs on afterwards",
        pass: after.length <= before,
        figure: after.length <= before ? "none" : after.join("; ")
      }
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** How many broken configs the doctor's test names. */
const broken = (): Omit<Line, "line"> => {
  const { figure, pass } = tested("", ["test/mcp/McpDoctor.test.ts"])
  const text = readFileSync(join(root, "test/mcp/McpDoctor.test.ts"), "utf8")
  const list = text.slice(text.indexOf("const broken"), text.indexOf("for (const [name, settings"))
  const count = list.match(/^ {6}\[(?:"|$)/gm)?.length ?? 0
  return { pass: pass && count >= 10, figure: `${count} configs, ${figure}` }
}

export const mcp = async (): Promise<ReadonlyArray<Line>> => [
  ...fresh(),
  vectors("vectors of mcp", ["test/conformance/mcp.test.ts"]),
  tested("real servers and each revision, SDK 1.0.1, 1.12.0 and newest", [
    "test/mcp/McpConnection.test.ts",
    "test/mcp/realServers.test.ts"
  ]),
  tested("a hostile server changes nothing", ["test/mcp/Hostile.test.ts"]),
  await attempt("doctor says by name what is wrong with each broken config", broken),
  tested("the official client accepts our server, web pages do not reach it", ["test/mcp/McpServe.test.ts"]),
  tested("the commands, and what SIGTERM leaves running", ["test/cli/mcp.test.ts"]),
  tested("what servers ask of people", ["test/mcp/elicitation.test.ts"]),
  tested("calls that are tasks of a server", ["test/mcp/taskCalls.test.ts"]),
  ...(await conformance())
]

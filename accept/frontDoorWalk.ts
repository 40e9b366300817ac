/**
 * A new user's walk: the tutorial, from an empty folder to two processes, with its files, its commands and its words.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type Packed, userEnv } from "./packed.ts"
import { attempt, freePort, type Line, run } from "./support.ts"

/** A block of the tutorial: a file to write, or commands with what they print. */
type Step =
  | { readonly type: "file"; readonly name: string; readonly text: string }
  | { readonly type: "command"; readonly line: string; readonly prints: ReadonlyArray<string> }

const steps = (text: string): ReadonlyArray<Step> =>
  [...text.matchAll(/```(\w+)\n([\s\S]*?)```/g)].flatMap(([, language, block = ""]): ReadonlyArray<Step> => {
    if (language === "json") return [{ type: "file", name: "tsconfig.json", text: block }]
    if (language === "ts") {
      const [, name = ""] = /^\/\/ (?:Needs .*?\. )?([\w.]+\.ts)$/m.exec(block) ?? []
      return [{ type: "file", name, text: block }]
    }
    return language === "sh" ? commands(block.replaceAll("\\\n", "")) : []
  })

/** A block with `$` has commands and their output; one without has commands alone. */
const commands = (block: string): ReadonlyArray<Step> => {
  const lines = block.trim().split("\n")
  if (!block.startsWith("$")) return lines.map((line) => ({ type: "command", line, prints: [] }))
  return block
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      const [line = "", ...prints] = text.trim().split("\n")
      return { type: "command", line, prints }
    })
}

/** Whether a line is as documented, where … stands for anything. */
const fits = (printed: string, documented: string): boolean => {
  const parts = documented.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
  return new RegExp(`^${parts.join(".*")}$`).test(printed.trim())
}

/** What the walk does not type: a page that stays open, a key, and other tools than the tarball's. */
const isLeft = (line: string): boolean => /^mkdir|kernai studio|ANTHROPIC_API_KEY/.test(line)

interface Walk {
  readonly folder: string
  readonly tarball: string
  readonly port: number
  runId: string
  readonly background: Array<ChildProcess>
}

const stopAll = async (walk: Walk): Promise<void> => {
  for (const child of walk.background.splice(0)) {
    const ended = once(child, "exit")
    child.kill("SIGTERM")
    await ended
  }
}

/** Types a command as the reader would, and returns what it prints; one that ends with `&` stays. */
const type = async (walk: Walk, documented: string): Promise<string> => {
  const line = documented
    .replace("npm install kernai ", `npm install ${walk.tarball} `)
    .replaceAll("localhost:3000", `127.0.0.1:${walk.port}`)
    .replaceAll("run_…", walk.runId)
  const env = { ...process.env, ...userEnv, NO_COLOR: "1" }
  if (line.endsWith("&")) {
    // The next section stops the server of the one before.
    if (line.includes("front")) await stopAll(walk)
    const [program = "", ...args] = line.slice(0, -1).trim().split(" ")
    walk.background.push(spawn(program, args, { cwd: walk.folder, env, stdio: "ignore" }))
    return ""
  }
  const { stderr, stdout } = run("sh", ["-c", line], { cwd: walk.folder, env: userEnv, timeout: 300_000 })
  return stdout || stderr
}

/** Types a command until it prints what is documented: a server or a worker may still be starting. */
const typed = async (walk: Walk, { line, prints }: { line: string; prints: ReadonlyArray<string> }) => {
  for (let tries = 0; ; tries++) {
    const printed = await type(walk, line)
    const lines = printed.trim().split("\n")
    const isRight = prints.every((text, index) => fits(lines[index] ?? "", text))
    const [runId] = /run_[\da-f]{24}/.exec(printed) ?? []
    if (isRight && runId !== undefined && line.includes("POST") && !line.includes("answers")) walk.runId = runId
    if (isRight) return undefined
    if (!line.startsWith("curl") || tries >= 100) return `${line} printed ${printed.trim().slice(0, 200)}`
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

const walked = async ({ clone, folder, tarball }: Packed): Promise<Omit<Line, "line">> => {
  const place = join(folder, "desk")
  mkdirSync(place)
  const walk: Walk = {
    folder: place,
    tarball: join(folder, tarball),
    port: await freePort(),
    runId: "",
    background: []
  }
  const wrong: Array<string> = []
  let count = 0
  try {
    for (const step of steps(readFileSync(join(clone, "docs/tutorial.md"), "utf8"))) {
      if (step.type === "file") {
        writeFileSync(join(place, step.name), step.text.replace("port: 3000", `port: ${walk.port}`))
      } else if (!isLeft(step.line)) {
        const failed = await typed(walk, step)
        if (failed !== undefined) wrong.push(failed)
        count++
      }
    }
    const checks = ["npx tsc", "npx vitest run"].filter(
      (line) => run("sh", ["-c", line], { cwd: place, env: userEnv }).status !== 0
    )
    wrong.push(...checks.map((line) => `${line} failed`))
  } finally {
    await stopAll(walk)
  }
  return {
    pass: wrong.length === 0 && count > 12,
    figure: `${count} commands; ${wrong.join("; ").slice(0, 500) || "each printed what the tutorial says"}`
  }
}

/** The walk, over the packed tarball. */
export const walkthrough = async (packed: Packed): Promise<ReadonlyArray<Line>> => [
  await attempt("a new user's walk leads from an empty folder to two processes, in the words of the tutorial", () =>
    walked(packed)
  )
]

/**
 * The promises of the toolbox: dialects, providers, windows, grammars, a chat that survives.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { attempt, inFolder, type Line, ofFiles, root, run, tested, vectors } from "./support.ts"

/** What the vendors' exchanges are, and that there is one for each vendor and dialect. */
const exchanges = (): Omit<Line, "line"> => {
  const folder = join(root, "test/fixtures/toolbox")
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith(".json")) : []
  const missing = ["anthropic", "openai", "google", "ollama"].flatMap((vendor) =>
    ["blocks", "tools"].map((dialect) => `${vendor}_${dialect}.json`).filter((file) => !files.includes(file))
  )
  return {
    pass: missing.length === 0,
    figure: missing.length === 0 ? `test/fixtures/toolbox: ${files.join(", ")}` : `missing: ${missing.join(", ")}`
  }
}

// ---------------------------------------------------------------- chat

/** A chat somebody types into. */
interface Chat {
  readonly type: (line: string) => void
  readonly shown: () => string
  /** By SIGKILL; ends when it is gone. */
  readonly kill: () => Promise<void>
}

const args = ["chat", "--script", "script.json", "--skills-from", "skills"]
const main = join(root, "src/cli/main.ts")

const piped = (folder: string): Chat => {
  const child = spawn(process.execPath, [main, ...args], { cwd: folder, stdio: ["pipe", "pipe", "inherit"] })
  const ended = new Promise<void>((resolve) => child.on("close", () => resolve()))
  let shown = ""
  child.stdout.on("data", (data) => (shown += data))
  return {
    type: (line) => child.stdin.write(`${line}\n`),
    shown: () => shown,
    kill: () => {
      child.kill("SIGKILL")
      return ended
    }
  }
}

/** A terminal of its own: its server has a socket of its own, and ends with the chat. */
const terminal = (folder: string, name: string): Chat => {
  const tmux = (...words: ReadonlyArray<string>) => run("tmux", ["-L", name, "-f", "/dev/null", ...words]).stdout
  const quoted = [process.execPath, main, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ")
  tmux("new-session", "-d", "-x", "120", "-y", "50", "-c", folder, `exec ${quoted}`)
  const pid = Number(tmux("display-message", "-p", "#{pane_pid}").trim())
  return {
    type: (line) => {
      tmux("send-keys", "-l", line)
      tmux("send-keys", "Enter")
    },
    shown: () => tmux("capture-pane", "-p", "-J", "-S", "-"),
    kill: async () => {
      if (pid > 0 && existsSync(`/proc/${pid}`)) process.kill(pid, "SIGKILL")
      for (let look = 0; look < 100 && existsSync(`/proc/${pid}`); look++) await sleep(50)
    }
  }
}

const until = async (chat: Chat, text: string): Promise<void> => {
  for (let look = 0; look < 300; look++) {
    if (chat.shown().includes(text)) return
    await sleep(100)
  }
  throw new Error(`the chat never showed '${text}'`)
}

const chat = (): Promise<Omit<Line, "line">> =>
  inFolder(async (folder) => {
    const trace = join(folder, "trace")
    mkdirSync(join(folder, "skills"))
    writeFileSync(
      join(folder, "skills", "send.ts"),
      `import { Effect, Schema } from ${JSON.stringify(import.meta.resolve("effect"))}
import * as Skill from ${JSON.stringify(new URL("../src/Skill.ts", import.meta.url).href)}
import { appendFileSync } from "node:fs"
export default Skill.make("send", {
  description: "Sends a letter",
  input: Schema.Struct({ to: Schema.String }),
  execute: () => Effect.sync(() => { appendFileSync(${JSON.stringify(trace)}, "sent\\n"); return "sent" })
})
`
    )
    const asks = `<block type="command" name="send">{"to": "Oslo"}</block>`
    const replies = ["Good morning.", asks, '<block type="final">It is on its way.</block>', "Good night."]
    writeFileSync(join(folder, "script.json"), JSON.stringify(replies))
    const isTerminal = run("tmux", ["-V"]).status === 0
    let lives = 0
    const start = () => (isTerminal ? terminal(folder, `kernai-${process.pid}-${++lives}`) : piped(folder))

    const first = start()
    try {
      await until(first, "/help lists")
      first.type("hello")
      await until(first, "Good morning.")
      first.type("write to Oslo")
      await until(first, "allow it?")
    } finally {
      await first.kill()
    }
    const before = existsSync(trace)
    const second = start()
    try {
      await until(second, "continuing: write to Oslo")
      await until(second, "allow it?")
      second.type("y")
      await until(second, "It is on its way.")
      second.type("bye")
      await until(second, "Good night.")
    } finally {
      await second.kill()
    }
    const sent = existsSync(trace) ? readFileSync(trace, "utf8") : ""
    return {
      pass: !before && sent === "sent\n",
      figure: `in ${isTerminal ? "a terminal of tmux" : "a pipe"}: killed while it asked, the call ran ${sent.split("\n").length - 1} time`
    }
  })

export const toolbox = async (): Promise<ReadonlyArray<Line>> => [
  ofFiles(vectors, "vectors of skill packs and of policies and the registry", [
    "test/conformance/skillPacks.test.ts",
    "test/conformance/policyRegistry.test.ts"
  ]),
  await attempt("the exchanges of the vendors are files with names", exchanges),
  ofFiles(tested, "10,000 sampled strings of the grammar parse, and conversations stay inside their window", [
    "test/provider/Grammar.test.ts",
    "test/property/conversation.test.ts"
  ]),
  ofFiles(tested, "kernai chat: talk, questions, Ctrl-C, commands", ["test/cli/chat/terminalChat.test.ts"]),
  await attempt("kernai chat approves a call, is killed, and goes on where it was", chat)
]

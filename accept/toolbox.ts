/**
 * The promises of the toolbox: dialects, providers, windows, grammars, a chat that survives, templates that start.
 */
import { spawn } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import {
  attempt,
  inFolder,
  type Line,
  node,
  ofFiles,
  provenBy,
  reported,
  root,
  run,
  type Test,
  tested,
  vectors
} from "./support.ts"

// ---------------------------------------------------------------- tests by their titles

/** A promise, the files that may prove it, and what the titles of its tests say. */
const promises: ReadonlyArray<readonly [line: string, files: RegExp, titles: RegExp]> = [
  ["one agent runs the same scenario in both dialects", /^toolbox\//, /scenario in (?:blocks|tools)/i],
  ["the scenario over exchanges of Anthropic", /^toolbox\//, /anthropic/i],
  ["the scenario over exchanges of OpenAI", /^toolbox\//, /openai/i],
  ["the scenario over exchanges of Gemini", /^toolbox\//, /gemini|google/i],
  ["the scenario over exchanges of Ollama", /^toolbox\//, /ollama/i],
  [
    "a conversation of 200 turns stays inside a window of 16k",
    /^(?:toolbox|property)\/|^PromptPipeline/,
    /200.*(?:window|16)|(?:window|16).*200/i
  ],
  [
    "every state that can be reached encodes to a valid request for every provider",
    /^(?:toolbox|property)\/|^PromptPipeline|^ChatHistory/,
    /every provider|any commit/i
  ],
  ["10,000 sampled strings of the grammar parse", /grammar/i, /10[,_ ]?000/],
  ["the GBNF is read", /grammar/i, /gbnf/i]
]

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

/** Each file is run by itself: one that hangs or breaks takes no other with it. */
const proven = async (): Promise<ReadonlyArray<Line>> => {
  const there = readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
  const files = there.filter((file) => file.endsWith(".test.ts") && promises.some(([, files]) => files.test(file)))
  const all: Array<Test> = []
  for (const file of files) all.push(...(await reported([`test/${file}`], { timeout: 300_000 })).tests)
  return promises.map(([line, files, titles]) =>
    provenBy(
      line,
      all.filter((test) => files.test(test.file) && titles.test(test.title))
    )
  )
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

// ---------------------------------------------------------------- templates

/** Commands of a user's project, with the Node that runs this. */
const userEnv = { PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}` }

const templates = async (): Promise<ReadonlyArray<Line>> =>
  inFolder(async (folder) => {
    const own = { cwd: join(folder, "clone"), env: userEnv }
    const steps = [
      run("git", ["clone", "--quiet", "--no-hardlinks", root, own.cwd]),
      run("npm", ["ci", "--no-audit", "--no-fund"], own),
      run("npm", ["run", "build"], own),
      run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], own)
    ]
    const failed = steps.find(({ status }) => status !== 0)
    const tarball = readdirSync(folder).find((file) => file.endsWith(".tgz"))
    const packed: Line = {
      line: "the library is built and packed from a fresh clone",
      pass: failed === undefined && tarball !== undefined,
      figure: failed === undefined ? (tarball ?? "no package") : (failed.stdout + failed.stderr).trim().slice(-300)
    }
    if (tarball === undefined || !packed.pass) return [packed]
    const names = readdirSync(join(root, "create-kernai/templates")).filter((name) => name !== "shared")
    const lines: Array<Line> = [packed]
    lines.push(
      await attempt("what a project infers from the package has names the project can write", () =>
        nameable(folder, own.cwd, tarball)
      )
    )
    lines.push(
      await attempt("every module says in its declarations what it is, as it does in its source", () =>
        described(own.cwd)
      )
    )
    for (const name of names) {
      lines.push(await attempt(`the template ${name} passes npm ci && npm test`, () => started(folder, name, tarball)))
    }
    return lines
  })

/** The modules that can be imported, of a folder of declarations. */
const modulesOf = (dist: string): ReadonlyArray<string> =>
  readdirSync(dist, { recursive: true, encoding: "utf8" })
    .filter((file) => /^(?!.*\binternal\/|cli\/|(.*\/)?index\.).*\.d\.ts$/.test(file))
    .map((file) => file.replace(/\.d\.ts$/, ""))

/**
 * Looks for the first comment of each module in its declarations: the compiler drops it with the import below it, where
 * no type needs that one, unless there is an empty line between them.
 */
const described = (clone: string): Omit<Line, "line"> => {
  const modules = modulesOf(join(clone, "dist"))
  const missing = modules.filter((module) => {
    const [about] = /^\/\*\*.*?\*\//s.exec(readFileSync(join(clone, "src", `${module}.ts`), "utf8")) ?? [" "]
    return !readFileSync(join(clone, "dist", `${module}.d.ts`), "utf8").startsWith(about)
  })
  return {
    pass: modules.length > 60 && missing.length === 0,
    figure: missing.length === 0 ? `${modules.length} modules` : missing.join(", ").slice(0, 300)
  }
}

/**
 * Declares everything the package has in a strict project of its own, which has none of its optional packages, and looks
 * for types that only the package can name.
 */
const nameable = (folder: string, clone: string, tarball: string): Omit<Line, "line"> => {
  const target = join(folder, "consumer")
  const home = join(target, "node_modules/kernai")
  mkdirSync(home, { recursive: true })
  const unpacked = run("tar", ["xzf", join(folder, tarball), "--strip-components=1", "-C", home])
  if (unpacked.status !== 0) return { pass: false, figure: unpacked.stderr.trim().slice(-300) }
  mkdirSync(join(target, "node_modules/@effect"))
  for (const name of ["effect", "@effect/platform-node", "@types"]) {
    symlinkSync(join(clone, "node_modules", name), join(target, "node_modules", name))
  }
  const modules = modulesOf(join(home, "dist"))
  const lines = modules.flatMap((module, index) => [
    `import * as module${index} from "kernai/${module}"`,
    `export const all${index} = { ...module${index} }`
  ])
  const compilerOptions = {
    target: "es2024",
    lib: ["es2024", "esnext.disposable", "dom"],
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    declaration: true,
    skipLibCheck: false
  }
  writeFileSync(join(target, "package.json"), JSON.stringify({ type: "module" }))
  writeFileSync(join(target, "all.ts"), lines.join("\n"))
  writeFileSync(
    join(target, "tsconfig.json"),
    JSON.stringify({ compilerOptions: { ...compilerOptions, types: ["node"], outDir: "out" } })
  )
  const compiled = node([join(clone, "node_modules/typescript/bin/tsc"), "-p", target])
  if (compiled.status !== 0) return { pass: false, figure: compiled.stdout.trim().slice(0, 300) }
  const declared = readFileSync(join(target, "out/all.d.ts"), "utf8")
  const foreign = [...declared.matchAll(/import\("(kernai\/[^"]*|\.[^"]*)"[^)]*\)\.\w+/g)]
    .filter(([, module]) => !modules.some((name) => module === `kernai/${name}`))
    .map(([type]) => type)
  return {
    pass: modules.length > 60 && foreign.length === 0,
    figure: foreign.length === 0 ? `${modules.length} modules` : [...new Set(foreign)].join(", ").slice(0, 300)
  }
}

const started = (folder: string, name: string, tarball: string): Omit<Line, "line"> => {
  const target = join(folder, name)
  const own = { cwd: target, env: userEnv }
  const create = join(root, "create-kernai/create.mjs")
  const made = node([create, target, "--template", name, "--kernai", `file:${join(folder, tarball)}`], {
    cwd: folder,
    env: userEnv
  })
  if (made.status !== 0) return { pass: false, figure: (made.stdout + made.stderr).trim().slice(-300) }
  rmSync(join(target, "node_modules"), { recursive: true, force: true })
  const installed = run("npm", ["ci", "--no-audit", "--no-fund"], own)
  const ran = installed.status === 0 ? run("npm", ["test"], own) : installed
  const figure =
    ran.status === 0
      ? `installed in ${installed.seconds.toFixed(0)} s, tested in ${ran.seconds.toFixed(0)} s`
      : (ran.stdout + ran.stderr).trim().slice(-300)
  rmSync(target, { recursive: true, force: true })
  return { pass: ran.status === 0, figure }
}

export const toolbox = async (): Promise<ReadonlyArray<Line>> => [
  ofFiles(vectors, "vectors of skill packs and of policies and the registry", [
    "test/conformance/skillPacks.test.ts",
    "test/conformance/policyRegistry.test.ts"
  ]),
  await attempt("the exchanges of the vendors are files with names", exchanges),
  ...(await proven()),
  ofFiles(tested, "kernai chat: talk, approvals, Ctrl-C, commands, Markdown", [
    "test/cli/chat/terminalChat.test.ts",
    "test/cli/chat/lineReader.test.ts"
  ]),
  await attempt("kernai chat approves a call, is killed, and goes on where it was", chat),
  ...(await templates())
]

/**
 * Every sample of the README and the documentation compiles and runs, every link leads somewhere, and declarations of
 * user code need no internal module.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { quickly } from "./support/longRun.ts"
import { pages, samples } from "./support/samples.ts"

const root = join(import.meta.dirname, "..")
const read = (page: string) => readFileSync(join(root, page), "utf8")
/** The anchors of a page: its headings, as they are linked to. */
const anchors = (page: string): ReadonlyArray<string> =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-")
  )

/** Links that lead to no file, or to no heading of a page. */
const broken = (page: string): ReadonlyArray<string> =>
  [...read(page).matchAll(/\]\(([^)]+)\)/g)]
    .map(([, link = ""]) => link)
    .filter((link) => !/^\w+:/.test(link))
    .filter((link) => {
      const [file = "", anchor] = link.split("#")
      const target = file === "" ? page : join(dirname(page), file)
      // A folder is no page: the site could not show it.
      if (!existsSync(join(root, target)) || (page !== "llms.txt" && statSync(join(root, target)).isDirectory()))
        return true
      return anchor !== undefined && !anchors(target).includes(anchor)
    })
// Inside the project, so that the samples find it by its name; git does not see the folder.
const folder = join(root, ".kernai", `readme-${process.pid}`)

// The compiler ends before it would be worth its while to collect garbage.
const env = { ...process.env, NO_COLOR: "1", GOGC: "off" }

const node = (args: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [...args], { cwd: root, encoding: "utf8", env })

const tsc = (args: ReadonlyArray<string>) => node(["node_modules/typescript/bin/tsc", "--singleThreaded", ...args])

/** Values a user may export: their declarations must name public modules only, since internal ones have no path. */
const exported = `import { Effect, Schema, Stream } from "effect"
import { Agent, Hooks, Kernel, Memory, Policy, PromptPipeline, RunStore, RunWorker, Skill, SkillRegistry } from "kernai"
import { Replay } from "kernai/testing"

export const search = Skill.make("search", {
  description: "Searches",
  input: Schema.Struct({ query: Schema.String }),
  config: { limit: { type: "integer", default: 5 } },
  credentials: { token: { required: true } },
  execute: (_, context) => Effect.all([context.config("limit"), Effect.asVoid(context.credential("token"))])
})
export const anyLimit = (context: Skill.SkillContext) => context.config("limit")
export const anyToken = (context: Skill.SkillContext) => context.credential("token")
export const agent = Agent.make({ instructions: "", model: "m", skills: [search], output: Schema.Struct({ n: Schema.Int }) })
export const registry = SkillRegistry.layer(search)

export const run = Kernel.run(agent, "go")
export const events = Kernel.stream(agent, "go")
export const texts = events.pipe(Stream.filter((event) => event.type === "block_content"))
export const facts = events.pipe(
  Stream.filter((event) => event.type === "skill_result" || event.type === "task_start" || event.type === "protocol_result")
)
export const verdicts = (options: Kernel.ResumeOptions) => options.recover
export const answers = (options: Kernel.ResumeOptions) => options.answers?.map((answer) => answer.input)
export const flight = RunStore.inFlight("run")
export const replay = Replay.run(agent, "run")

export const hooks = Hooks.layer({ onToolCallStarted: ({ call }) => Effect.succeed(Hooks.rewrite(call.input)) })
export const policy = Policy.rules({ default: "effects" })
export const pipeline = PromptPipeline.make({ sections: [Memory.section()], compaction: {} })
export const worker = RunWorker.layer({ agents: [agent] })
`

const end = "--- the end of a sample\n"

/** Runs all samples in one process, since half the time of each is spent on imports. */
const oneByOne = `import { dirname } from "node:path"
const { argv, execPath } = process
for (const file of argv.slice(1)) {
  process.chdir(dirname(file))
  process.argv = [execPath, file]
  await import(file)
  process.stdout.write(${JSON.stringify(end)})
}`

const files = samples.map((sample) => join(folder, sample.folder, sample.name))
let compiled: ReturnType<typeof node>

beforeAll(() => {
  mkdirSync(folder, { recursive: true })
  for (const [index, { text }] of samples.entries()) {
    const file = files[index] ?? ""
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  writeFileSync(join(folder, "exported.ts"), exported)
  // Samples see what users install: declarations, which are checked once, with the sources.
  const declared = join(folder, "kernai")
  const settings = {
    extends: "../../tsconfig.json",
    compilerOptions: {
      noUnusedLocals: false,
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: ".",
      outDir: "out",
      paths: { kernai: ["./kernai/index.d.ts"], "kernai/*": ["./kernai/*/index.d.ts", "./kernai/*.d.ts"] }
    },
    include: ["."],
    exclude: ["out", "kernai"]
  }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings))
  const built = tsc([
    "-p",
    "tsconfig.build.json",
    "--emitDeclarationOnly",
    "--noCheck",
    "--declarationMap",
    "false",
    "--outDir",
    declared
  ])
  compiled = built.status === 0 ? tsc(["-p", join(folder, "tsconfig.json")]) : built
}, 300_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("README and documentation", () => {
  it("have samples that compile and run", { timeout: 300_000 }, () => {
    assert.isAtLeast(samples.length, 25)
    assert.strictEqual(compiled.status, 0, compiled.stdout)
    assert.strictEqual(new Set(files).size, files.length)
    // One that says what it needs is compiled only, and one that exports runs when another imports it.
    const needy = samples.filter(({ text }) => text.startsWith("// Needs "))
    assert.isAtMost(needy.length, 3)
    const runs = files.filter((_, index) => !/^(?:\/\/ Needs|export) /m.test(samples[index]?.text ?? ""))
    // One tries a whole suite on a store, one starts npm: the long run plays them, too.
    const alone = quickly(runs, (file) => !/own-store|mcp-tools/.test(file))
    const ran = node(["--conditions=kernai-source", "--input-type=module", "-e", oneByOne, ...alone])
    assert.strictEqual(ran.status, 0, `${ran.stdout}\n${ran.stderr}`)
    const printed = ran.stdout.split(end)
    assert.strictEqual(printed.length, alone.length + 1)
    for (const [index, file] of alone.entries()) assert.notStrictEqual(printed[index]?.trim(), "", file)
  })

  it("begins with a page of under 200 lines and four pictures", () => {
    const readme = read("README.md")
    assert.isBelow(readme.split("\n").length, 200)
    const pictures = [...readme.matchAll(/<img src="([^"]+)"[^>]* alt="[^"]+"/g)].map(([, file = ""]) => file)
    assert.isAtLeast(pictures.length, 4)
    assert.deepStrictEqual(
      pictures.filter((file) => !existsSync(join(root, file))),
      []
    )
  })

  it("tells in one page what the first release has", () => {
    const [, section = ""] = read("CHANGELOG.md").split("\n## 0.1.0\n")
    assert.isBelow(section.split("\n").length, 100)
    assert.isAbove(section.match(/^### /gm)?.length ?? 0, 6)
    assert.include(read("CHANGELOG.md"), "\n## Unreleased\n")
  })

  it.each(["AI SDK", "LangGraph.js", "Mastra", "OpenAI Agents", "effect/ai", "Vercel Workflow", "DBOS"])(
    "shows those who come from %s their code and its terms",
    (name) => {
      const [, section = ""] = read("docs/coming-from.md").split(`\n## ${name}\n`)
      const [own = ""] = section.split("\n## ")
      assert.match(own, /```(?:ts|typescript)\n[\s\S]*?\brefund\b/)
      assert.include(own, "| there | here |")
    }
  )

  it("lists every recipe in docs/README.md and llms.txt", () => {
    const recipes = pages.filter((page) => page.startsWith("docs/recipes/"))
    assert.deepStrictEqual(
      recipes.filter((page) => !read("llms.txt").includes(`(${page})`)),
      []
    )
    assert.deepStrictEqual(
      recipes.filter((page) => !read("docs/README.md").includes(`(${page.slice("docs/".length)})`)),
      []
    )
  })

  it.each(pages)("%s links to existing files and headings", (page) => {
    assert.deepStrictEqual(broken(page), [])
  })
})

describe("declarations", () => {
  it("of user code mention nothing internal", () => {
    assert.strictEqual(compiled.status, 0, compiled.stdout)
    const declared = readFileSync(join(folder, "out", "exported.d.ts"), "utf8")
    assert.include(declared, "export declare const verdicts")
    assert.deepStrictEqual(declared.match(/.*internal\/.*/g), null)
  })
})

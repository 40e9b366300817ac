/**
 * Every sample of the README compiles and runs, and declarations of user code need no internal module.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const readme = readFileSync(join(root, "README.md"), "utf8")
const samples = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "")
// Inside the project, so that the samples find it by its name; git does not see the folder.
const folder = join(root, ".kernai", `readme-${process.pid}`)

const node = (args: ReadonlyArray<string>) =>
  spawnSync(process.execPath, [...args], { cwd: root, encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } })

/** Values a user may export: their declarations must name public modules only, since internal ones have no path. */
const exported = `import { Effect, Schema, Stream } from "effect"
import { Agent, Hooks, Kernel, Memory, Policy, PromptPipeline, Replay, RunStore, RunWorker, Skill, SkillRegistry } from "kernai"

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
const oneByOne = `for (const file of process.argv.slice(1)) {
  await import(file)
  process.stdout.write(${JSON.stringify(end)})
}`

const files = samples.map((_, index) => join(folder, `sample-${index + 1}.ts`))
let compiled: ReturnType<typeof node>

beforeAll(() => {
  mkdirSync(folder, { recursive: true })
  for (const [index, sample] of samples.entries()) writeFileSync(files[index] ?? "", sample)
  writeFileSync(join(folder, "exported.ts"), exported)
  const settings = {
    extends: "../../tsconfig.json",
    compilerOptions: {
      noUnusedLocals: false,
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: root,
      outDir: join(folder, "out")
    },
    include: ["*.ts"]
  }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings))
  compiled = node(["node_modules/typescript/bin/tsc", "--singleThreaded", "-p", join(folder, "tsconfig.json")])
}, 60_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("README", () => {
  it("has samples that compile and run", { timeout: 60_000 }, () => {
    assert.isAtLeast(samples.length, 4)
    assert.strictEqual(compiled.status, 0, compiled.stdout)
    const ran = node(["--conditions=kernai-source", "--input-type=module", "-e", oneByOne, ...files])
    assert.strictEqual(ran.status, 0, `${ran.stdout}\n${ran.stderr}`)
    const printed = ran.stdout.split(end)
    assert.strictEqual(printed.length, files.length + 1)
    for (const [index, file] of files.entries()) assert.notStrictEqual(printed[index]?.trim(), "", file)
  })

  it("links to existing files", () => {
    const links = [...readme.matchAll(/\]\(([^)#:]+)\)/g)].map((match) => match[1] ?? "")
    assert.deepStrictEqual(
      links.filter((link) => !existsSync(join(root, link))),
      []
    )
  })
})

describe("declarations", () => {
  it("of user code mention nothing internal", () => {
    assert.strictEqual(compiled.status, 0, compiled.stdout)
    const declared = readFileSync(join(folder, "out", folder.slice(root.length), "exported.d.ts"), "utf8")
    assert.include(declared, "export declare const verdicts")
    assert.deepStrictEqual(declared.match(/.*internal\/.*/g), null)
  })
})

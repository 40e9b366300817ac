/**
 * What users export of kernai: a declaration names it by what is public, for what is internal has no path outside.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
// Inside the project, so that the module finds kernai by its name; git does not see the folder.
const folder = join(root, ".kernai", `declarations-${process.pid}`)

const exported = `import { Effect, Schema, Stream } from "effect"
import { Agent, Hooks, Kernel, Memory, Policy, PromptPipeline, RunStore, RunWorker, Skill, SkillRegistry } from "kernai"

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
export const verdicts = (options: Kernel.ResumeOptions) => options.replay
export const answers = (options: Kernel.ResumeOptions) => options.approvals?.map((answer) => answer.input)
export const flight = RunStore.inFlight("run")
export const replay = Kernel.replay(agent, "run")

export const hooks = Hooks.layer({ onToolCallStarted: ({ call }) => Effect.succeed(Hooks.rewrite(call.input)) })
export const policy = Policy.rules({ default: "effects" })
export const pipeline = PromptPipeline.make({ sections: [Memory.section()], compaction: {} })
export const worker = RunWorker.layer({ agents: [agent] })
`

describe("declarations", () => {
  it("of what users make name nothing internal", { timeout: 60_000 }, () => {
    mkdirSync(folder, { recursive: true })
    try {
      writeFileSync(join(folder, "exported.ts"), exported)
      writeFileSync(
        join(folder, "tsconfig.json"),
        JSON.stringify({
          extends: "../../tsconfig.json",
          compilerOptions: {
            noEmit: false,
            declaration: true,
            emitDeclarationOnly: true,
            rootDir: root,
            outDir: join(folder, "out")
          },
          include: ["*.ts"]
        })
      )
      const compiler = ["node_modules/typescript/bin/tsc", "--singleThreaded", "-p", join(folder, "tsconfig.json")]
      const compiled = spawnSync(process.execPath, compiler, { cwd: root, encoding: "utf8" })
      assert.strictEqual(compiled.status, 0, compiled.stdout)
      const declared = readFileSync(join(folder, "out", folder.slice(root.length), "exported.d.ts"), "utf8")
      assert.include(declared, "export declare const verdicts")
      assert.deepStrictEqual(declared.match(/.*internal\/.*/g), null)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

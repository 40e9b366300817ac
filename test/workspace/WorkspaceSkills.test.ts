import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, type Content, Kernel, type Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { Workspace, WorkspaceSkills } from "kernai/workspace"
import { scope } from "../support/skillSpec.ts"

const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13])

const workspace = Workspace.layerMemory({
  "src/a.ts": "one\r\ntwo\r\nthree\r\n",
  "src/b.ts": "const two = 2\n",
  "picture.png": png,
  "data.bin": Uint8Array.from([0, 1, 2])
})

const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools" })

const says = (skill: Skill.AnySkill<Workspace.Workspace>, params: Content.JsonObject) => skill.call(params, scope)

const it_ = (title: string, body: () => Effect.Effect<void, unknown, Workspace.Workspace>) =>
  it.live(title, () => Effect.provide(body(), Layer.fresh(workspace)))

describe("the skills of a workspace", () => {
  it_("read numbers lines, says how many are left, and shows pictures", () =>
    Effect.gen(function* () {
      const { read } = WorkspaceSkills
      assert.strictEqual(yield* says(read, { file_path: "src/a.ts" }), "     1\tone\n     2\ttwo\n     3\tthree")
      assert.strictEqual(
        yield* says(read, { file_path: "src/a.ts", offset: 2, limit: 1 }),
        "     2\ttwo\n(1 more lines; read on with offset 3)"
      )
      assert.strictEqual(yield* says(read, { file_path: "data.bin" }), "data.bin holds no text (3 bytes)")
      const shown = yield* says(read, { file_path: "picture.png" })
      assert.include(JSON.stringify(shown), "image/png")
    })
  )

  it_("write and edit show what changed", () =>
    Effect.gen(function* () {
      const { edit, write } = WorkspaceSkills
      assert.strictEqual(
        yield* says(edit, { file_path: "src/a.ts", old_string: "two\nthree", new_string: "2" }),
        "Edited src/a.ts in 1 place\n@@ -1,3 +1,2 @@\n one\n-two\n-three\n+2"
      )
      assert.strictEqual(yield* says(write, { file_path: "new.txt", content: "x" }), "Created new.txt")
      const missing = yield* Effect.flip(says(edit, { file_path: "no.txt", old_string: "a", new_string: "b" }))
      assert.include(String(missing), "does not exist")
    })
  )

  it_("list, glob and grep find files and lines", () =>
    Effect.gen(function* () {
      const { glob, grep, list } = WorkspaceSkills
      assert.strictEqual(yield* says(list, {}), "data.bin\npicture.png\nsrc/")
      assert.strictEqual(yield* says(glob, { pattern: "*.ts" }), "src/a.ts\nsrc/b.ts")
      assert.strictEqual(yield* says(grep, { pattern: "tw." }), "src/a.ts:2:two\nsrc/b.ts:1:const two = 2")
      assert.strictEqual(yield* says(grep, { pattern: "four" }), "No matches found")
    })
  )

  it_("shell returns output and exit code, and process reads one in the background", () =>
    Effect.gen(function* () {
      const { process, shell } = WorkspaceSkills
      assert.strictEqual(yield* says(shell, { command: "cat src/b.ts; exit 2" }), "const two = 2\n[exit code 2]")
      assert.strictEqual(yield* says(shell, { command: "true" }), "(no output)")
      assert.strictEqual(yield* says(shell, { command: "sleep 60", timeout: 50 }), "[ended by its timeout]")
      assert.strictEqual(yield* says(shell, { command: "sleep 60", run_in_background: true }), "Started process-1")
      assert.strictEqual(yield* says(process, { id: "process-1" }), "[running; the next offset is 0]")
      assert.strictEqual(
        yield* says(process, { id: "process-1", stop: true }),
        "[ended with exit code 137; the next offset is 0]"
      )
    })
  )

  it.live("a process in the background ends with its run, and others with the workspace", () =>
    Effect.gen(function* () {
      const shared = yield* Workspace.Workspace
      const run = (provider: MockProvider.Mock, layer: Layer.Layer<never, never, Workspace.Workspace>) =>
        Effect.provide(Effect.exit(Kernel.run(agent, "Serve.", { provider })), layer)
      const serve = { calls: [{ name: "shell", input: { command: "sleep 60", run_in_background: true } }] }
      yield* run(MockProvider.make(serve, "done"), WorkspaceSkills.layerProcesses)
      yield* run(MockProvider.make(serve).failOnStep(1), WorkspaceSkills.layerProcesses)
      yield* run(MockProvider.make(serve, "done"), Layer.empty)
      const codeOf = (id: string) => Effect.map(shared.output(id), ({ exitCode }) => exitCode)
      const codes = yield* Effect.forEach(["process-1", "process-2", "process-3"], codeOf)
      assert.deepStrictEqual(codes, [137, 137, undefined])
    }).pipe(
      Effect.provide(
        Kernel.layerMemory.pipe(
          Layer.provide([MockProvider.layer("unused"), SkillRegistry.layer(WorkspaceSkills.shell)]),
          Layer.provideMerge(Layer.fresh(workspace))
        )
      )
    )
  )

  it_("keep the output of the latest processes that have ended", () =>
    Effect.gen(function* () {
      const shared = yield* Workspace.Workspace
      for (let index = 0; index < 40; index++) yield* shared.stop(yield* shared.start("sleep 60"))
      assert.strictEqual((yield* Effect.flip(shared.output("process-1"))).reason, "not_found")
      assert.strictEqual((yield* shared.output("process-40")).exitCode, 137)
    })
  )

  it_("todo shows the list", () =>
    Effect.gen(function* () {
      const todos = [
        { content: "read", status: "completed" },
        { content: "fix", status: "in_progress" },
        { content: "test", status: "pending" }
      ]
      assert.strictEqual(yield* says(WorkspaceSkills.todo, { todos }), "[x] read\n[>] fix\n[ ] test")
    })
  )

  it("declare reads, idempotent writes, and commands that may change anything", () => {
    const effects = Object.fromEntries(WorkspaceSkills.all.map(({ effects, name }) => [name, effects]))
    assert.deepStrictEqual(effects, {
      read: "read",
      write: "idempotent",
      edit: "idempotent",
      list: "read",
      glob: "read",
      grep: "read",
      shell: "write",
      process: "idempotent",
      todo: "idempotent"
    })
  })
})

import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schema, Stream } from "effect"
import { Agent, Kernel, Policy, RunStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"

const send = Skill.make("send", {
  description: "Sends a letter",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("sent")
})
const agent = Agent.make({ instructions: "", model: "m", skills: "all" })
const replies = ['<block type="command" name="send">{}</block>', '<block type="final">done</block>']
const careful = Policy.layer(() => Effect.succeed(Policy.confirm("a person is asked")))

describe("Kernel.resume at a revision", () => {
  it.effect("commits nothing when the run has advanced since that revision (DR-6)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(...replies)
      assert.strictEqual((yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" })))._tag, "RunPaused")
      const store = yield* RunStore.RunStore
      const revision = Effect.map(store.head("r"), (head) => Option.getOrThrow(head).revision)
      const shown = yield* revision
      const approvals = [{ callId: "r:t1.0", approved: true }]
      for (const other of [shown - 1, shown + 1, 0]) {
        const options = { provider, approvals, revision: other }
        const error = yield* Effect.flip(Kernel.resume(agent, "r", options))
        assert.deepInclude({ ...error }, { _tag: "ConcurrentAppendError", runId: "r", actual: shown })
        const told = yield* Effect.flip(Stream.runDrain(Kernel.resumeStream(agent, "r", options)))
        assert.strictEqual(told._tag, "ConcurrentAppendError")
      }
      assert.strictEqual(yield* revision, shown)
      const result = yield* Kernel.resume(agent, "r", { provider, answers: approvals, revision: shown })
      assert.strictEqual(result.text, "done")
      // Who looked before that is told so, though nothing is left to do.
      const late = yield* Effect.flip(Kernel.resume(agent, "r", { provider, revision: shown }))
      assert.strictEqual(late._tag, "ConcurrentAppendError")
      assert.strictEqual((yield* Kernel.resume(agent, "r", { provider, revision: yield* revision })).text, "done")
    }).pipe(Effect.provide([kernel(send), careful]))
  )
})

describe("Kernel.answer at a revision", () => {
  const both = '<block type="command" name="send">{}</block>\n<block type="command" name="send">{}</block>'

  it.effect("records nothing when the run has advanced since that revision (DR-6)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(both, '<block type="final">done</block>')
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      const store = yield* RunStore.RunStore
      const head = Effect.map(store.head("r"), Option.getOrThrow)
      const shown = yield* head
      const [one, two] = ["r:t1.0", "r:t1.1"].map((callId) => [{ callId, approved: true }])
      for (const answers of [one, [], [{ callId: "none", approved: true }]]) {
        const error = yield* Effect.flip(Kernel.answer("r", answers ?? [], { revision: shown.revision - 1 }))
        assert.strictEqual(error._tag, "ConcurrentAppendError")
        assert.strictEqual(error.message, `run 'r' is at revision ${shown.revision}, expected ${shown.revision - 1}`)
      }
      // Not even a lease is left behind.
      assert.deepStrictEqual(yield* head, shown)
      yield* Kernel.answer("r", one ?? [], { revision: shown.revision })
      // The first answer moved the run on: the second was decided on what is no longer so.
      const late = yield* Effect.flip(Kernel.answer("r", two ?? [], { revision: shown.revision }))
      assert.strictEqual(late._tag, "ConcurrentAppendError")
      yield* Kernel.answer("r", two ?? [], { revision: shown.revision + 1 })
      assert.strictEqual((yield* Kernel.resume(agent, "r", { provider })).text, "done")
      const { revision } = yield* head
      yield* Effect.flip(Kernel.answer("r", [], { revision: revision - 1 }))
      yield* Kernel.answer("r", [], { revision })
      const nobody = yield* Effect.flip(Kernel.answer("none", [], { revision }))
      assert.strictEqual(nobody._tag, "RunNotFound")
    }).pipe(Effect.provide([kernel(send), careful]))
  )
})

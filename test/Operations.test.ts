import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, Operations, RunStore, RunWorker } from "kernai"
import { MockProvider } from "kernai/testing"
import { final } from "./support/blocks.ts"
import { kernel } from "./support/kernel.ts"

const clerk = (version: string) => Agent.make({ name: "clerk", instructions: "", model: "m", version })

const live = (mock: MockProvider.Mock) => Layer.provideMerge(kernel(), MockProvider.layerOf(mock))

const refused = { text: "", reason: "content-filter" } as const

/** Submits a run of a version for a tenant. */
const submit = (runId: string, version: string, tenant: string) =>
  Kernel.submit(clerk(version), "go", { runId, caller: { id: "ada", tenant } })

const counts = (filter?: Operations.Filter) =>
  Effect.map(Operations.overview(filter), (groups) => groups.map(({ need, runs, version }) => [need, version, runs]))

const statuses = Effect.map(
  RunStore.RunStore.use((store) => store.list({ order: "oldest" })),
  (heads) => heads.map(({ runId, status }) => `${runId} ${status.type}`)
)

describe("Operations", () => {
  it.effect(
    "counts the runs that need somebody by need, agent and version, and selects them by each and by tenant",
    () =>
      Effect.gen(function* () {
        yield* submit("a", "1", "acme")
        yield* submit("b", "2", "acme")
        yield* RunWorker.runOnce({ agents: [clerk("2")] })
        yield* submit("c", "2", "acme")
        yield* submit("d", "2", "other")
        assert.deepStrictEqual(yield* counts(), [
          ["no_answer", "1", 1],
          ["no_answer", "2", 1]
        ])
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(yield* counts(), [
          ["unplaced", "2", 2],
          ["no_answer", "1", 1],
          ["no_answer", "2", 1]
        ])
        assert.deepStrictEqual(yield* counts({ version: "2", tenant: "acme" }), [
          ["unplaced", "2", 1],
          ["no_answer", "2", 1]
        ])
        assert.deepStrictEqual(yield* counts({ need: "no_answer", version: "1" }), [["no_answer", "1", 1]])
        assert.deepStrictEqual(yield* counts({ agent: "writer" }), [])
        const [unplaced] = yield* Operations.overview({ need: "unplaced" })
        assert.deepInclude(unplaced, { agent: "clerk", oldest: "c", since: 0 })
      }).pipe(Effect.provide(live(MockProvider.make(refused, refused))))
  )

  it.effect("offers the runs with a need to workers again, and leaves all others as they are", () =>
    Effect.gen(function* () {
      yield* submit("a", "1", "acme")
      yield* submit("b", "2", "acme")
      yield* submit("c", "2", "other")
      yield* RunWorker.runOnce({ agents: [clerk("2")] })
      const before = ["a no_answer", "b no_answer", "c no_answer"]
      assert.deepStrictEqual(yield* statuses, before)
      assert.deepStrictEqual(yield* Operations.requeue({ need: "failed" }), [])
      assert.deepStrictEqual(yield* statuses, before)
      assert.deepStrictEqual(yield* Operations.requeue({ need: "no_answer", version: "2", tenant: "acme" }), ["b"])
      assert.deepStrictEqual(yield* statuses, ["a no_answer", "b queued", "c no_answer"])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* Operations.requeue({ need: "unplaced" }), ["b"])
      yield* RunWorker.runOnce({ agents: [clerk("2")] })
      assert.deepStrictEqual(yield* statuses, ["a no_answer", "b completed", "c no_answer"])
    }).pipe(Effect.provide(live(MockProvider.make(refused, refused, refused, final("done")))))
  )
})

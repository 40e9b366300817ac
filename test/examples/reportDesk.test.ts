import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Scope, Stream } from "effect"
import { MessageStorage, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"
import { Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { ClusterKernel } from "kernai/cluster"
import { MockProvider } from "kernai/testing"
import { desk, model, Writers } from "../../examples/reportDesk.ts"
import { client, clientMachine, kernelOn, machine, soon } from "../cluster/support.ts"
import { stores } from "../support/stores.ts"
import { stored } from "../support/workflow.ts"

/** The office that writes reports, and what it was asked to do. */
const writersOf = (lines: Array<string>) =>
  Layer.succeed(Writers, {
    order: (topic) => Effect.sync(() => void lines.push(`order ${topic}`)),
    read: (topic) => Effect.sync(() => `${topic}: ${lines.push(`read ${topic}`)}`)
  })

const answer = "The report says that tea sells better in winter."

/** The results of background calls that a run received. */
const arrived = Effect.fnUntraced(function* (runId: string) {
  const store = yield* RunStore.RunStore
  const records = yield* Stream.runCollect(store.read(runId))
  return records.flatMap(({ events }) =>
    events.flatMap((event) => (event.type === "turn_started" ? (event.ended ?? []) : []).map(({ name }) => name))
  )
})

describe("the report desk", () => {
  for (const { isThere, name, place } of stores) {
    if (!isThere) continue
    it.effect(`rests while its report is written, and receives it in another process: ${name}`, () =>
      Effect.gen(function* () {
        const store = yield* place
        const lines: Array<string> = []
        const process = <A, E>(work: Effect.Effect<A, E, Kernel.Kernel | RunStore.RunStore | Writers>) => {
          const parts = Layer.mergeAll(SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory)
          const kernel = Kernel.layer.pipe(
            Layer.provide([MockProvider.layerOf(model), parts]),
            Layer.provideMerge(store)
          )
          return Effect.provide(work, Layer.merge(kernel, writersOf(lines)))
        }
        const asleep = yield* process(Effect.flip(Kernel.run(desk, "Tea?", { runId: "run" })))
        assert.strictEqual(asleep._tag, "RunPaused")
        assert.deepStrictEqual(lines, ["order tea"])
        yield* TestClock.adjust("1 day")
        const { text } = yield* process(Kernel.resume(desk, "run"))
        assert.deepStrictEqual([text, lines], [answer, ["order tea", "read tea"]])
        assert.deepStrictEqual(yield* process(arrived("run")), ["report"])
      }).pipe(Effect.scoped)
    )
  }

  it.effect("orders on one runner of a cluster and receives on the next", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const lines: Array<string> = []
      const writers = writersOf(lines)
      const setting = { provider: model, skills: [] }
      /** Does something as a client, and stops the runner and the client a minute later. */
      const meanwhile = Effect.fnUntraced(function* <A, E>(
        work: Effect.Effect<A, E, Kernel.Kernel | RunStore.RunStore | Writers>
      ) {
        const scope = yield* Scope.make()
        const runner = ClusterKernel.layer({ agents: [desk] }).pipe(Layer.provide(kernelOn(store, setting)))
        const here = Effect.gen(function* () {
          yield* Effect.provide(Layer.build(Layer.fresh(runner)), [Layer.succeedContext(yield* machine), writers])
          return yield* Effect.provide(client(store, setting), yield* clientMachine)
        })
        yield* Effect.provide(work, [Layer.succeedContext(yield* Scope.provide(here, scope)), writers])
        yield* TestClock.adjust("1 minute")
        yield* soon(yield* Effect.forkChild(Scope.close(scope, Exit.void)))
        return Option.getOrThrow(yield* store.head("run")).status.type
      })
      assert.strictEqual(yield* meanwhile(Kernel.submit(desk, "Tea?", { runId: "run" })), "waiting")
      assert.deepStrictEqual(lines, ["order tea"])
      yield* TestClock.adjust("1 day")
      assert.strictEqual(yield* meanwhile(Effect.void), "completed")
      assert.deepStrictEqual(lines, ["order tea", "read tea"])
      const { turns } = yield* Effect.provideService(stored("run"), RunStore.RunStore, store)
      assert.deepStrictEqual(turns.at(-1)?.message?.content, [{ type: "text", text: answer }])
    }).pipe(Effect.scoped, Effect.provide(Layer.provide(MessageStorage.layerMemory, ShardingConfig.layer())))
  )
})

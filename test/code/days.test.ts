import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Schema, Scope } from "effect"
import { MessageStorage, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"
import { CodeInterpreter, Kernel, MediaStore, Policy, ProtocolRegistry, RunStore, Skill, SkillRegistry } from "kernai"
import { ClusterKernel } from "kernai/cluster"
import { Code } from "kernai/code"
import { setTimeout } from "node:timers/promises"
import { client, clientMachine, kernelOn, machine, soon } from "../cluster/support.ts"
import { stores } from "../support/stores.ts"

const acts = ["order", "pay", "ship"]

/** An agent whose programs act, and what they did. */
const acting = () => {
  const ledger: Array<string> = []
  const act = Skill.make("act", {
    description: "Acts",
    input: Schema.Struct({ what: Schema.String }),
    execute: ({ what }) => Effect.sync(() => ledger.push(what)).pipe(Effect.as(`${what} is done`))
  })
  return { code: Code.agent({ skills: [act] }), ledger }
}

const input = JSON.stringify({
  code: `
    const began = [Date.now(), Math.random()].join()
    const results = []
    for (const what of ${JSON.stringify(acts)}) results.push(await act({ what }))
    return { results, isSame: began.startsWith("0,") && began.length > 3 }`
})

const result = { results: acts.map((what) => `${what} is done`), isSame: true }

const askFirst = Policy.layer(() => Effect.succeed(Policy.confirm("really?")))

/** Agrees to the only question of the run. */
const agree = Effect.gen(function* () {
  const [question, ...more] = yield* Kernel.questions("run")
  assert.lengthOf(more, 0)
  return [{ callId: question?.callId ?? "", approved: true }]
})

describe("a program that stops for a person at each call", () => {
  for (const { isThere, name, place } of stores) {
    if (!isThere) continue
    it.effect(`continues days later in another process: ${name}`, () =>
      Effect.gen(function* () {
        const store = yield* place
        const { code, ledger } = acting()
        /** What a process has: a kernel over the store, and an interpreter. */
        const process = <A, E>(work: Effect.Effect<A, E, Layer.Success<typeof layer>>) => Effect.provide(work, layer)
        const parts = [SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory, askFirst] as const
        const kernel = Layer.provideMerge(Kernel.layerNoProvider, Layer.mergeAll(store, ...parts))
        const layer = Layer.orDie(Layer.merge(kernel, Code.layerQuickJs()))

        const asked = yield* Effect.flip(process(Kernel.run(code, input, { runId: "run" })))
        assert.strictEqual(asked._tag, "RunPaused")
        for (const index of acts.keys()) {
          yield* TestClock.adjust("3 days")
          assert.deepStrictEqual(ledger, acts.slice(0, index))
          const answers = yield* process(agree)
          const resumed = yield* Effect.result(process(Kernel.resume(code, "run", { answers })))
          assert.strictEqual(resumed._tag, index === 2 ? "Success" : "Failure")
          if (resumed._tag === "Success") assert.deepStrictEqual(resumed.success.output.result, result)
        }
        assert.deepStrictEqual(ledger, acts)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("continues on another runner of a cluster after each", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const { code, ledger } = acting()
      const setting = { kernel: Layer.provide(Kernel.layerNoProvider, askFirst), skills: [] }
      const head = Effect.map(store.head("run"), Option.getOrUndefined)
      /** Waits for a thread, which has a time of its own, while that of the runner goes on. */
      const atRest = (before: number): Effect.Effect<void, RunStore.StoreError> =>
        Effect.gen(function* () {
          yield* TestClock.adjust("1 second")
          yield* Effect.promise(() => setTimeout(10))
          const now = yield* head
          const isResting = now?.status.type === "waiting" || now?.status.type === "completed"
          if (!isResting || now.revision <= before) yield* atRest(before)
        })
      /** Does something as a client, and stops the runner and the client when the run is at rest. */
      const meanwhile = Effect.fnUntraced(function* <A, E>(
        work: Effect.Effect<A, E, Kernel.Kernel | RunStore.RunStore | CodeInterpreter.CodeInterpreter>
      ) {
        const scope = yield* Scope.make()
        const runner = ClusterKernel.layer({ agents: [code] }).pipe(Layer.provide(kernelOn(store, setting)))
        const own = Layer.merge(Layer.succeedContext(yield* machine), Code.layerQuickJs())
        const here = Effect.andThen(
          Layer.build(Layer.provide(Layer.fresh(runner), own)),
          Effect.provide(client(store, setting), yield* clientMachine)
        )
        const before = (yield* head)?.revision ?? 0
        yield* Effect.provide(work, [Layer.succeedContext(yield* Scope.provide(here, scope)), Code.layerQuickJs()])
        yield* atRest(before)
        yield* soon(yield* Effect.forkChild(Scope.close(scope, Exit.void)))
      })
      yield* meanwhile(Kernel.submit(code, input, { runId: "run" }))
      for (const index of acts.keys()) {
        assert.deepStrictEqual(ledger, acts.slice(0, index))
        yield* meanwhile(Effect.flatMap(agree, (answers) => Kernel.answer("run", answers)))
      }
      assert.deepStrictEqual(ledger, acts)
      assert.strictEqual((yield* head)?.status.type, "completed")
    }).pipe(Effect.scoped, Effect.provide(Layer.provide(MessageStorage.layerMemory, ShardingConfig.layer())))
  )
})

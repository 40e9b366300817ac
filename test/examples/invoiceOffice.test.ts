import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Scope } from "effect"
import { MessageStorage, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"
import { Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { ClusterKernel } from "kernai/cluster"
import { MockProvider } from "kernai/testing"
import { Books, office } from "../../examples/invoiceOffice.ts"
import { client, clientMachine, kernelOn, machine, soon } from "../cluster/support.ts"
import { stores } from "../support/stores.ts"

/** The books of the company, and the lines that were written into them. */
const booksOf = (lines: Array<string>) =>
  Layer.succeed(Books, {
    match: (order) => Effect.succeed({ account: `account of ${order}` }),
    note: (line) => Effect.sync(() => lines.push(line))
  })

const extracted = `{"supplier":"Acme","order":"A-7","amount":1200}`

const paid = ["pay 1200 to account of A-7", "mail Acme: A-7 is paid"]

const all = [...paid, "mail Acme: Please confirm A-7"]

/** Agrees to the only question of the run. */
const agree = Effect.gen(function* () {
  const [question, ...more] = yield* Kernel.questions("run")
  assert.strictEqual(question?.reason, "Pay 1200 to Acme?")
  assert.lengthOf(more, 0)
  return [{ callId: question?.callId ?? "", approved: true, by: "Ada" }]
})

describe("the invoice office", () => {
  for (const { isThere, name, place } of stores) {
    if (!isThere) continue
    it.effect(`asks, pays once and reminds after three days, each time in another process: ${name}`, () =>
      Effect.gen(function* () {
        const store = yield* place
        const lines: Array<string> = []
        const process = <A, E>(work: Effect.Effect<A, E, Kernel.Kernel | RunStore.RunStore | Books>) => {
          const parts = Layer.mergeAll(SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory)
          const kernel = Kernel.layer.pipe(
            Layer.provide([MockProvider.layer(extracted), parts]),
            Layer.provideMerge(store)
          )
          return Effect.provide(work, Layer.merge(kernel, booksOf(lines)))
        }
        const asked = yield* process(Effect.flip(Kernel.run(office, "Invoice A-7", { runId: "run" })))
        assert.strictEqual(asked._tag, "RunPaused")
        assert.deepStrictEqual(lines, [])
        yield* TestClock.adjust("1 hour")
        const asleep = yield* process(
          Effect.flatMap(agree, (answers) => Effect.flip(Kernel.resume(office, "run", { answers })))
        )
        assert.strictEqual(asleep._tag, "RunPaused")
        assert.deepStrictEqual(lines, paid)
        yield* TestClock.adjust("71 hours")
        assert.strictEqual((yield* process(Effect.flip(Kernel.resume(office, "run"))))._tag, "RunPaused")
        yield* TestClock.adjust("1 hour")
        const { output } = yield* process(Kernel.resume(office, "run"))
        assert.deepStrictEqual({ ...output }, { order: "A-7", paid: 1200, remindedAt: "1970-01-04T01:00:00.000Z" })
        assert.deepStrictEqual(lines, all)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("asks on one runner of a cluster, pays on the next, and reminds on a third", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const lines: Array<string> = []
      const books = booksOf(lines)
      const setting = { provider: MockProvider.make(extracted), skills: [] }
      /** Does something as a client, and stops the runner and the client a minute later. */
      const meanwhile = Effect.fnUntraced(function* <A, E>(
        work: Effect.Effect<A, E, Kernel.Kernel | RunStore.RunStore | Books>
      ) {
        const scope = yield* Scope.make()
        const runner = ClusterKernel.layer({ agents: [office] }).pipe(Layer.provide(kernelOn(store, setting)))
        const here = Effect.gen(function* () {
          yield* Effect.provide(Layer.build(Layer.fresh(runner)), [Layer.succeedContext(yield* machine), books])
          return yield* Effect.provide(client(store, setting), yield* clientMachine)
        })
        yield* Effect.provide(work, [Layer.succeedContext(yield* Scope.provide(here, scope)), books])
        yield* TestClock.adjust("1 minute")
        yield* soon(yield* Effect.forkChild(Scope.close(scope, Exit.void)))
        return Option.getOrThrow(yield* store.head("run")).status.type
      })
      assert.strictEqual(yield* meanwhile(Kernel.submit(office, "Invoice A-7", { runId: "run" })), "waiting")
      assert.deepStrictEqual(lines, [])
      const answered = Effect.flatMap(agree, (answers) => Kernel.answer("run", answers))
      assert.strictEqual(yield* meanwhile(answered), "waiting")
      assert.deepStrictEqual(lines, paid)
      yield* TestClock.adjust("3 days")
      assert.strictEqual(yield* meanwhile(Effect.void), "completed")
      assert.deepStrictEqual(lines, all)
    }).pipe(Effect.scoped, Effect.provide(Layer.provide(MessageStorage.layerMemory, ShardingConfig.layer())))
  )
})

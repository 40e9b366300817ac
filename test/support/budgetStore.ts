/** What kernai expects of a store of shared budgets, wherever its counters are kept. */
import { assert, describe, it } from "@effect/vitest"
import { Context, type Duration, Effect, Layer, Result } from "effect"
import { Budget, BudgetStore } from "kernai"

const day = Budget.shared("tenant:acme", { tokens: 100, costUsd: 1, per: "36500 days" })
const cost = (costUsd: number) => ({ tokens: 0, costUsd })
const tokens = (tokens: number) => ({ tokens, costUsd: 0 })
const reserving = (store: BudgetStore.BudgetStoreShape, id: string, amount: Budget.Spent, budget = day) =>
  store.reserve(budget, { id, amount, lease: "1 hour" })

/** Runs the suite; every test begins with empty counters. */
export const budgetStoreSuite = <E>(name: string, layer: Layer.Layer<BudgetStore.BudgetStore, E>): void => {
  const test = (title: string, body: (store: BudgetStore.BudgetStoreShape) => Effect.Effect<void, unknown>) =>
    it.live(
      title,
      () =>
        Effect.flatMap(Layer.build(Layer.fresh(layer)), (context) =>
          body(Context.get(context, BudgetStore.BudgetStore))
        ).pipe(Effect.scoped),
      30_000
    )

  describe(name, () => {
    test("counts what is settled, under each key and period by itself", (store) =>
      Effect.gen(function* () {
        const never = Budget.shared("tenant:acme", { tokens: 100 })
        const other = Budget.shared("tenant:%\u0000'", { tokens: 100, per: "36500 days" })
        yield* store.settle(day, "1", { tokens: 7, costUsd: 0.5 })
        yield* store.settle(day, "2", { tokens: 1, costUsd: 0.25 })
        yield* store.settle(never, "3", tokens(5))
        yield* store.settle(other, "4", tokens(3))
        // Its writer did not learn that the first attempt was stored.
        yield* store.settle(day, "2", { tokens: 1, costUsd: 0.25 })
        assert.deepStrictEqual(yield* store.spent(day), { tokens: 8, costUsd: 0.75 })
        assert.deepStrictEqual(yield* store.spent(never), tokens(5))
        assert.deepStrictEqual(yield* store.spent(other), tokens(3))
      }))

    test("lets calls wait while others may use the rest, and refuses them once it is used", (store) =>
      Effect.gen(function* () {
        assert.isTrue(yield* reserving(store, "a", cost(0.6)))
        assert.isTrue(yield* reserving(store, "b", cost(0.4)))
        assert.isFalse(yield* reserving(store, "c", cost(0.1)))
        // The same call again is not another one.
        assert.isTrue(yield* reserving(store, "b", cost(0.4)))
        yield* store.settle(day, "a", cost(0.1))
        assert.isTrue(yield* reserving(store, "c", cost(0.5)))
        yield* store.settle(day, "b", Budget.nothing)
        // Ten times a tenth is the whole budget.
        for (let at = 0; at < 8; at++) yield* store.settle(day, `c${at}`, cost(0.1))
        yield* store.settle(day, "c", cost(0.1))
        const error = yield* Effect.flip(reserving(store, "d", cost(0.1)))
        assert.strictEqual(error._tag, "BudgetExhaustedError")
        assert.deepInclude({ ...error }, { dimension: "cost", used: 1, limit: 1, key: "tenant:acme" })
        assert.include(error.message, "budget 'tenant:acme' exhausted: 1 of 1 USD used; it is renewed at 20")
        assert.closeTo((yield* store.spent(day)).costUsd, 1, 1e-9)
      }))

    test("makes a call that may use more than is left alone", (store) =>
      Effect.gen(function* () {
        assert.isTrue(yield* reserving(store, "large", tokens(1_000)))
        assert.isFalse(yield* reserving(store, "small", tokens(1)))
        yield* store.settle(day, "large", tokens(99))
        assert.isTrue(yield* reserving(store, "small", tokens(50)))
        assert.isFalse(yield* reserving(store, "large", tokens(1_000)))
      }))

    test("forgets the reservation of a process that died, and keeps one that is renewed", (store) =>
      Effect.gen(function* () {
        const reserve = (id: string, lease: Duration.Input) => store.reserve(day, { id, amount: tokens(60), lease })
        assert.isTrue(yield* reserve("dead", "20 millis"))
        yield* Effect.sleep("30 millis")
        assert.isTrue(yield* reserve("next", "20 millis"))
        yield* store.renew(day, "next", "1 hour")
        yield* store.renew(day, "unknown", "1 hour")
        yield* Effect.sleep("30 millis")
        assert.isFalse(yield* reserve("third", "1 hour"))
        // What the dead one used counts if it comes back after all.
        yield* store.settle(day, "dead", tokens(60))
        assert.deepStrictEqual(yield* store.spent(day), tokens(60))
      }))

    test("begins each period with nothing used", (store) =>
      Effect.gen(function* () {
        const short = Budget.shared("short", { tokens: 1, per: "20 millis" })
        yield* store.settle(short, "x", tokens(5))
        yield* Effect.sleep("40 millis")
        assert.deepStrictEqual(yield* store.spent(short), Budget.nothing)
        assert.isTrue(yield* reserving(store, "y", tokens(1), short))
      }))

    test("never lets calls at the same time reserve more than there is", (store) =>
      Effect.gen(function* () {
        const call = (index: number): Effect.Effect<boolean, unknown> =>
          Effect.flatMap(Effect.result(reserving(store, `call ${index}`, tokens(10))), (reserved) => {
            if (Result.isFailure(reserved)) return Effect.succeed(false)
            return reserved.success
              ? Effect.as(store.settle(day, `call ${index}`, tokens(10)), true)
              : Effect.andThen(Effect.sleep("1 millis"), call(index))
          })
        const made = yield* Effect.forEach(
          Array.from({ length: 24 }, (_, index) => index),
          call,
          { concurrency: 8 }
        )
        assert.strictEqual(made.filter((isMade) => isMade).length, 10)
        assert.deepStrictEqual(yield* store.spent(day), tokens(100))
      }))
  })
}

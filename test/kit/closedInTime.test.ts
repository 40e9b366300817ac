import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { closedInTime } from "../../src/kit/closedInTime.ts"

class Database extends Context.Service<Database, string>()("test/closedInTime/Database") {}

/** A database that notes its life, and whose end takes as long as it takes. */
const database = (notes: Array<string>, end: Effect.Effect<void>) =>
  Layer.effect(
    Database,
    Effect.acquireRelease(
      Effect.sync(() => {
        notes.push("opened")
        return "open"
      }),
      () =>
        Effect.andThen(
          end,
          Effect.sync(() => notes.push("closed"))
        )
    )
  )

describe("a layer that is closed in time", () => {
  it.effect("is left behind when its database does not respond", () =>
    Effect.gen(function* () {
      const notes: Array<string> = []
      const scope = yield* Scope.make()
      const layer = closedInTime(database(notes, Effect.never), "a database", "2 seconds")
      assert.strictEqual(Context.get(yield* Layer.buildWithScope(layer, scope), Database), "open")
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* TestClock.adjust("1900 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("100 millis")
      assert.isTrue(Exit.isSuccess(yield* Fiber.await(closing)))
      assert.deepStrictEqual(notes, ["opened"])
    })
  )

  it.effect("closes what it holds, once for all places that provide it", () =>
    Effect.gen(function* () {
      const notes: Array<string> = []
      const layer = closedInTime(database(notes, Effect.void), "a database", "2 seconds")
      const uses = Layer.effectDiscard(
        Effect.andThen(
          Database,
          Effect.sync(() => notes.push("used"))
        )
      )
      const program = Layer.merge(Layer.provide(uses, layer), layer)
      assert.strictEqual(yield* Effect.provide(Database, program), "open")
      assert.deepStrictEqual(notes, ["opened", "used", "closed"])
    })
  )
})

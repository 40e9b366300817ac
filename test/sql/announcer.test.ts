import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { spaced } from "../../src/sql/internal/announcer.ts"

const announcer = Effect.gen(function* () {
  const sent: Array<ReadonlyArray<string>> = []
  const announce = yield* spaced((ids) => Effect.sync(() => void sent.push(ids)))
  yield* TestClock.adjust(0)
  return { announce, sent }
})

describe("the announcer of new records", () => {
  it.effect("announces the first run at once, and the others once in 100 milliseconds", () =>
    Effect.gen(function* () {
      const { announce, sent } = yield* announcer
      announce("a", false)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(sent, [["a"]])
      for (const id of ["a", "b", "a"]) {
        announce(id, false)
        yield* TestClock.adjust(5)
      }
      assert.deepStrictEqual(sent, [["a"]])
      yield* TestClock.adjust(90)
      assert.deepStrictEqual(sent, [["a"], ["a", "b"]])
    }).pipe(Effect.scoped)
  )

  it.effect("does not let an urgent run wait", () =>
    Effect.gen(function* () {
      const { announce, sent } = yield* announcer
      announce("a", false)
      yield* TestClock.adjust(1)
      announce("b", false)
      announce("offered", true)
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(sent, [["a"], ["b", "offered"]])
    }).pipe(Effect.scoped)
  )

  it.effect("announces what was noted when its scope closes", () =>
    Effect.gen(function* () {
      const sent = yield* Effect.scoped(
        Effect.gen(function* () {
          const { announce, sent } = yield* announcer
          announce("a", false)
          yield* TestClock.adjust(1)
          announce("b", false)
          return sent
        })
      )
      assert.deepStrictEqual(sent, [["a"], ["b"]])
    })
  )
})

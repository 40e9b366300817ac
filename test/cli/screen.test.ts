import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isUnread, layerProcess, Screen } from "../../src/cli/screen.ts"

describe("isUnread: whether a write failed because nobody reads", () => {
  it("is true when the reader is gone, and false when a disk fails", () => {
    assert.isTrue(isUnread("EPIPE", false))
    assert.isTrue(isUnread("EIO", true))
    assert.isFalse(isUnread("EIO", false))
    assert.isFalse(isUnread("ENOSPC", false))
  })
})

describe("the screen of a process", () => {
  /** Returns the columns of progress and of answers for two streams, and whether a terminal shows answers. */
  const of = (out: Partial<NodeJS.WriteStream>, error: Partial<NodeJS.WriteStream> = {}) =>
    Effect.acquireUseRelease(
      Effect.sync(() =>
        (
          [
            [process.stdout, out],
            [process.stderr, error]
          ] as const
        ).map(([stream, facts]) => {
          const { columns, isTTY } = stream
          const listeners = stream.listeners("error")
          Object.assign(stream, { isTTY: false, columns: 0 }, facts)
          return () => {
            Object.assign(stream, { columns, isTTY })
            for (const listener of stream.listeners("error")) {
              if (!listeners.includes(listener)) Reflect.apply(stream.off, stream, ["error", listener])
            }
          }
        })
      ),
      () =>
        Effect.provide(
          Effect.map(Screen, ({ answers, columns }) => [columns, answers.columns, answers.isTerminal] as const),
          layerProcess
        ),
      (restore) => Effect.sync(() => restore.forEach((back) => back()))
    )

  it.effect("is as wide as its terminal or the other one, at most 200 columns, and 120 without a terminal", () =>
    Effect.gen(function* () {
      const small = { isTTY: true, columns: 80 }
      assert.deepStrictEqual(yield* of(small, { isTTY: true, columns: 90 }), [90, 80, true])
      assert.deepStrictEqual(yield* of({}, small), [80, 80, false])
      assert.deepStrictEqual(yield* of({ isTTY: true, columns: 500 }), [200, 200, true])
      assert.deepStrictEqual(yield* of({}), [120, 120, false])
    })
  )
})

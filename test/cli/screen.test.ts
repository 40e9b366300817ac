import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isUnread, layerProcess, Screen, wantsColors } from "../../src/cli/screen.ts"

describe("wantsColors", () => {
  it("is for terminals, and for nobody when NO_COLOR is set", () => {
    assert.isTrue(wantsColors(true, {}))
    assert.isTrue(wantsColors(true, { NO_COLOR: "" }))
    assert.isFalse(wantsColors(true, { NO_COLOR: "1" }))
    assert.isFalse(wantsColors(true, { TERM: "dumb" }))
    assert.isFalse(wantsColors(false, {}))
  })
})

describe("isUnread", () => {
  it("is what is written for a reader who left, not for a disk that failed", () => {
    assert.isTrue(isUnread("EPIPE", false))
    assert.isTrue(isUnread("EIO", true))
    assert.isFalse(isUnread("EIO", false))
    assert.isFalse(isUnread("ENOSPC", false))
  })
})

describe("the screen of a process", () => {
  /** What it is where the streams are such. */
  const of = (out: Partial<NodeJS.WriteStream>, error: Partial<NodeJS.WriteStream> = {}) =>
    Effect.acquireUseRelease(
      Effect.sync(() =>
        (
          [
            [process.stdout, out],
            [process.stderr, error]
          ] as const
        ).map(([stream, facts]) => {
          const { columns, isTTY, rows } = stream
          const listeners = stream.listeners("error")
          Object.assign(stream, { isTTY: false, columns: 0, rows: 0 }, facts)
          return () => {
            Object.assign(stream, { columns, isTTY, rows })
            for (const listener of stream.listeners("error")) {
              if (!listeners.includes(listener)) Reflect.apply(stream.off, stream, ["error", listener])
            }
          }
        })
      ),
      () =>
        Effect.provide(
          Effect.map(Screen, ({ columns, rows }) => [columns, rows]),
          layerProcess
        ),
      (restore) => Effect.sync(() => restore.forEach((back) => back()))
    )

  it.effect("is as large as the terminal where progress is seen, and of a usual size where there is none", () =>
    Effect.gen(function* () {
      const small = { isTTY: true, columns: 80, rows: 20 }
      assert.deepStrictEqual(yield* of(small, { isTTY: true, columns: 90 }), [80, 20])
      assert.deepStrictEqual(yield* of({}, small), [80, 20])
      assert.deepStrictEqual(yield* of({ isTTY: true, columns: 500, rows: 50 }), [200, 50])
      assert.deepStrictEqual(yield* of({}), [120, 24])
    })
  )
})

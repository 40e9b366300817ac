import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { lines, LineTooLong } from "../src/lines.ts"

describe("lines", () => {
  it.effect("are the same however the text is cut", () =>
    Effect.gen(function* () {
      const text = "one\ntwo\r\n\nlast"
      for (const cut of [[text], Array.from(text), text.split(/(?<=\n)/)]) {
        const found = yield* Stream.runCollect(lines()(Stream.fromIterable(cut)))
        assert.deepStrictEqual(found, ["one", "two", "", "last"])
      }
    })
  )

  it.effect("have a limit: no more is held of one that never ends", () =>
    Effect.gen(function* () {
      let read = 0
      const endless = Stream.forever(Stream.sync(() => "x".repeat(++read)))
      const error = yield* Effect.flip(Stream.runDrain(lines(10)(endless)))
      assert.instanceOf(error, LineTooLong)
      assert.strictEqual(read, 5)
    })
  )
})

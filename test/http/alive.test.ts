/** Streams to pages stay open while nothing happens. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { alive } from "../../src/http/internal/sse.ts"

describe("a stream to a page", () => {
  it.effect("sends a comment every 15 seconds while a run is silent", () =>
    Effect.gen(function* () {
      const received: Array<string> = []
      const reading = yield* Effect.forkChild(
        Stream.runForEach(alive(Stream.never), (bytes) =>
          Effect.sync(() => received.push(new TextDecoder().decode(bytes)))
        )
      )
      yield* TestClock.adjust("14 seconds")
      assert.deepStrictEqual(received, [])
      yield* TestClock.adjust("31 seconds")
      assert.deepStrictEqual(received, [": waiting\n\n", ": waiting\n\n", ": waiting\n\n"])
      yield* Fiber.interrupt(reading)
    })
  )

  it.effect("ends with the run", () =>
    Effect.gen(function* () {
      const sent = yield* Stream.runCollect(alive(Stream.make(new Uint8Array([1]))))
      assert.strictEqual(sent.length, 1)
    })
  )
})

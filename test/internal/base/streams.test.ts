import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import * as Streams from "../../../src/internal/base/streams.ts"

/** Tells in `log` when it is opened and closed. */
const noted = <A>(log: Array<string>, stream: Stream.Stream<A, string>) =>
  Streams.begin((scope) =>
    Effect.gen(function* () {
      log.push("open")
      yield* Scope.addFinalizer(
        scope,
        Effect.sync(() => log.push("close"))
      )
      return stream
    })
  )

describe("streams", () => {
  it.effect("gives what the opened stream gives, and closes its scope at the end", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const values = yield* Stream.runCollect(noted(log, Stream.make(1, 2)))
      assert.deepStrictEqual(values, [1, 2])
      assert.deepStrictEqual(log, ["open", "close"])
    })
  )

  it.effect("fails as opening it fails", () =>
    Effect.gen(function* () {
      const stream = Streams.begin(() => Effect.as(Effect.fail("shut"), Stream.make(1)))
      assert.strictEqual(yield* Effect.flip(Stream.runDrain(stream)), "shut")
    })
  )

  it.effect("takes array after array, each after what the one before asked for", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const stream = Stream.concat(Stream.fromArray(["a", "b"]), Stream.make("c", "d"))
      yield* Streams.runForEachArray(noted(log, stream), (values) => {
        log.push(`take ${values.join()}`)
        if (values[0] === "c") return undefined
        return Effect.andThen(
          Effect.yieldNow,
          Effect.sync(() => log.push("asked"))
        )
      })
      assert.deepStrictEqual(log, ["open", "take a,b", "asked", "take c,d", "close"])
    })
  )

  it.effect("fails with its stream, with what it asks for, and closes the scope each time", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const broken = noted(log, Stream.concat(Stream.make(1), Stream.fail("cut")))
      assert.strictEqual(
        yield* Effect.flip(Streams.runForEachArray(broken, (): undefined | Effect.Effect<void> => undefined)),
        "cut"
      )
      const whole = noted(log, Stream.make(1))
      assert.strictEqual(yield* Effect.flip(Streams.runForEachArray(whole, () => Effect.fail("no"))), "no")
      assert.deepStrictEqual(log, ["open", "close", "open", "close"])
    })
  )

  it.effect("reads a million arrays that are there without waiting, and can be interrupted among them", () =>
    Effect.gen(function* () {
      let seen = 0
      const endless = Stream.fromPull(Effect.succeed(Effect.sync((): [number] => [1])))
      const log: Array<string> = []
      const reading = Streams.runForEachArray(noted(log, endless), (): undefined | Effect.Effect<void> => {
        seen += 1
        return undefined
      })
      const fiber = yield* Effect.forkChild(reading, { startImmediately: true })
      while (seen < 1_000_000) yield* Effect.yieldNow
      const exit = yield* Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber))
      assert.isTrue(Exit.hasInterrupts(exit))
      assert.deepStrictEqual(log, ["open", "close"])
    })
  )
})

import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Schema, Stream } from "effect"
import * as Streams from "../../src/kit/streams.ts"
import { cases } from "../support/property.ts"

/** Upper case is kept, lower case may be dropped. */
const keep = (value: string) => value === value.toUpperCase()
const make = (limit: number) => Streams.mailbox<string, string>({ limit, keep })

describe("mailbox", () => {
  it.effect("hands over everything stored so far as one array", () =>
    Effect.gen(function* () {
      const mailbox = make(10)
      for (const value of ["a", "B", "c"]) mailbox.offer(value)
      assert.deepStrictEqual(yield* mailbox.take, ["a", "B", "c"])
      mailbox.offer("d")
      assert.deepStrictEqual(yield* mailbox.take, ["d"])
    })
  )

  it.effect("wakes a sleeping consumer once for all that is offered before it runs", () =>
    Effect.gen(function* () {
      const mailbox = make(10)
      const arrays: Array<ReadonlyArray<string>> = []
      const consumer = yield* Effect.forkChild(
        Stream.runForEachArray(mailbox.stream, (values) => Effect.sync(() => arrays.push(values))),
        { startImmediately: true }
      )
      for (const value of ["a", "b"]) mailbox.offer(value)
      yield* Effect.yieldNow
      for (const value of ["c", "D", "e"]) mailbox.offer(value)
      mailbox.end()
      yield* Fiber.join(consumer)
      assert.deepStrictEqual(arrays, [
        ["a", "b"],
        ["c", "D", "e"]
      ])
    })
  )

  it.effect("never runs its consumer inside `offer`", () =>
    Effect.gen(function* () {
      const mailbox = make(10)
      let seen = 0
      const consumer = yield* Effect.forkChild(
        Effect.tap(mailbox.take, () => Effect.sync(() => (seen += 1))),
        { startImmediately: true }
      )
      mailbox.offer("a")
      assert.strictEqual(seen, 0)
      yield* Fiber.join(consumer)
      assert.strictEqual(seen, 1)
    })
  )

  it.effect("drops the oldest values that need not be kept, and no others (R-23)", () =>
    Effect.gen(function* () {
      const mailbox = make(3)
      for (const value of ["A", "b", "c", "d", "E"]) mailbox.offer(value)
      assert.isTrue(mailbox.isFull())
      assert.deepStrictEqual(yield* mailbox.take, ["A", "d", "E"])
      assert.strictEqual(mailbox.dropped(), 2)
      assert.isFalse(mailbox.isFull())
      for (const value of ["A", "B", "C", "D", "e"]) mailbox.offer(value)
      assert.deepStrictEqual(yield* mailbox.take, ["A", "B", "C", "D"])
    })
  )

  it.effect(
    "holds at most a quarter more than its limit while no consumer takes, and inspects each value a few times (R-20)",
    () =>
      Effect.gen(function* () {
        const dropping = make(100)
        for (let index = 0; index < 1_000; index++) dropping.offer("a")
        assert.isAtLeast(dropping.dropped(), 1_000 - 125)
        let looks = 0
        const keeping = Streams.mailbox<number>({ limit: 100, keep: () => ++looks > 0 })
        for (let index = 0; index < 10_000; index++) keeping.offer(index)
        assert.isAtMost(looks, 100_000)
        assert.lengthOf(yield* keeping.take, 10_000)
      })
  )

  it.effect("hands over the values of a batch as one array when the batch has ended", () =>
    Effect.gen(function* () {
      const mailbox = make(2)
      const seen: Array<ReadonlyArray<string>> = []
      const consumer = yield* Effect.forkChild(
        Stream.runForEachArray(mailbox.stream, (values) => Effect.sync(() => seen.push(values))),
        { startImmediately: true }
      )
      const given = mailbox.batch(() => {
        mailbox.offer("a")
        mailbox.batch(() => mailbox.offer("B"))
        mailbox.offer("c")
        return seen.length
      })
      assert.strictEqual(given, 0)
      assert.deepStrictEqual(seen, [["B", "c"]])
      mailbox.batch(() => {})
      assert.throws(() =>
        mailbox.batch(() => {
          mailbox.offer("D")
          throw new Error("a producer that breaks")
        })
      )
      assert.deepStrictEqual(seen, [["B", "c"], ["D"]])
      mailbox.end()
      yield* Fiber.join(consumer)
    })
  )

  it.effect("keeps the values of a batch until they are taken", () =>
    Effect.gen(function* () {
      const mailbox = make(10)
      mailbox.batch(() => mailbox.offer("a"))
      assert.isFalse(mailbox.isFull())
      assert.deepStrictEqual(yield* mailbox.take, ["a"])
    })
  )

  it.effect("hands over what is stored before its end, and nothing offered after it", () =>
    Effect.gen(function* () {
      const mailbox = make(10)
      mailbox.offer("a")
      mailbox.end()
      mailbox.offer("b")
      mailbox.fail(Cause.fail("too late"))
      assert.deepStrictEqual(yield* Stream.runCollect(mailbox.stream), ["a"])
      assert.isTrue(Exit.hasFails(yield* Effect.exit(mailbox.take)))
    })
  )

  it.effect("hands over what is stored before it fails with its cause", () =>
    Effect.gen(function* () {
      const mailbox = make(10)
      const seen: Array<string> = []
      const consumer = yield* Effect.forkChild(
        Effect.flip(Stream.runForEach(mailbox.stream, (value) => Effect.sync(() => seen.push(value)))),
        { startImmediately: true }
      )
      mailbox.offer("a")
      mailbox.fail(Cause.fail("broken"))
      assert.strictEqual(yield* Fiber.join(consumer), "broken")
      assert.deepStrictEqual(seen, ["a"])
    })
  )

  it.effect("loses nothing when a consumer is interrupted while it sleeps or wakes", () =>
    Effect.gen(function* () {
      const mailbox = make(10)
      const asleep = yield* Effect.forkChild(mailbox.take, { startImmediately: true })
      yield* Fiber.interrupt(asleep)
      mailbox.offer("a")
      assert.deepStrictEqual(yield* mailbox.take, ["a"])
      const waking = yield* Effect.forkChild(mailbox.take, { startImmediately: true })
      mailbox.offer("b")
      yield* Fiber.interrupt(waking)
      mailbox.offer("c")
      assert.deepStrictEqual(yield* mailbox.take, ["b", "c"])
    })
  )

  it.effect.prop(
    "holds at most its limit, or the values that must be kept, in order of arrival",
    [
      Schema.Array(Schema.Literals(["a", "b", "C", "D"])),
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))
    ],
    ([letters, limit]) =>
      Effect.gen(function* () {
        const mailbox = make(limit)
        const values = letters.map((letter, index) => `${letter}${index}`)
        for (const value of values) mailbox.offer(value)
        mailbox.end()
        const seen = yield* Stream.runCollect(mailbox.stream)
        const kept = values.filter(keep)
        const room = Math.max(0, limit - kept.length)
        const dropped = values.filter((value) => !keep(value)).slice(0, Math.max(0, values.length - kept.length - room))
        assert.deepStrictEqual(
          seen,
          values.filter((value) => !dropped.includes(value))
        )
        assert.strictEqual(mailbox.dropped(), dropped.length)
      }),
    cases()
  )
})

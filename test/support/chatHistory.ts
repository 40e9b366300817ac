/**
 * What kernai expects of a conversation, wherever it is kept (AC-7).
 */
import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Context, Effect, Layer, Result, Stream } from "effect"
import { ChatHistory, Content, Message } from "kernai"

const texts = (messages: ReadonlyArray<Message.Message>) => messages.map(Message.text)
const one = (text: string) => Message.user(text)

/** Runs the suite; every test begins with an empty conversation. */
export const chatHistorySuite = <E>(name: string, layer: Layer.Layer<ChatHistory.ChatHistory, E>): void => {
  const test = (
    title: string,
    body: (history: ChatHistory.ChatHistoryShape) => Effect.Effect<void, ChatHistory.StoreError>
  ) =>
    it.effect(
      title,
      () =>
        Effect.gen(function* () {
          yield* body(Context.get(yield* Layer.build(Layer.fresh(layer)), ChatHistory.ChatHistory))
        }),
      30_000
    )

  describe(name, () => {
    test("reads in the order of appending, one by one and several at once", (history) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* history.toArray, [])
        assert.strictEqual(yield* history.size, 0)
        yield* history.append(one("a"))
        yield* history.append([Message.assistant("b"), one("c")])
        yield* history.append([])
        assert.deepStrictEqual(texts(yield* history.toArray), ["a", "b", "c"])
        assert.deepStrictEqual(texts(yield* Stream.runCollect(history.stream)), ["a", "b", "c"])
        assert.strictEqual(yield* history.size, 3)
      }))

    test("gives the last n: all of fewer, none when n is not positive", (history) =>
      Effect.gen(function* () {
        yield* history.append([one("a"), one("b")])
        yield* history.append([one("c"), one("d"), one("e")])
        const last = (n: number) => Effect.map(history.last(n), texts)
        assert.deepStrictEqual(yield* last(1), ["e"])
        assert.deepStrictEqual(yield* last(4), ["b", "c", "d", "e"])
        assert.deepStrictEqual(yield* last(5), ["a", "b", "c", "d", "e"])
        for (const n of [6, 1e9, Infinity]) assert.strictEqual((yield* last(n)).length, 5, String(n))
        for (const n of [0, -1, Number.NaN]) assert.deepStrictEqual(yield* last(n), [], String(n))
      }))

    test("stores once what is appended twice under one key", (history) =>
      Effect.gen(function* () {
        yield* history.append([one("a"), one("b")], "run:1")
        yield* history.append([one("a"), one("b")], "run:1")
        yield* history.append(one("c"), "run:2")
        yield* history.append(one("c"))
        yield* history.append(one("c"))
        yield* history.append([], "run:3")
        yield* history.append(one("d"), "run:3")
        assert.deepStrictEqual(texts(yield* history.toArray), ["a", "b", "c", "c", "c"])
      }))

    test("keeps every message of appends that happen at once, lists unbroken", (history) =>
      Effect.gen(function* () {
        yield* Effect.forEach(
          Arr.range(1, 40),
          (n) => history.append([one(`${n} question`), Message.assistant(`${n} answer`)], `${n % 20}`),
          { concurrency: "unbounded" }
        )
        const all = texts(yield* history.toArray)
        assert.strictEqual(all.length, 40)
        for (let at = 0; at < all.length; at += 2) {
          assert.strictEqual(all[at]?.split(" ")[0], all[at + 1]?.split(" ")[0])
          assert.match(all[at] ?? "", /question/)
        }
      }))

    test("forgets messages and keys", (history) =>
      Effect.gen(function* () {
        yield* history.append(one("a"), "k")
        yield* history.clear
        assert.deepStrictEqual(yield* history.toArray, [])
        yield* history.append(one("b"), "k")
        assert.deepStrictEqual(texts(yield* history.toArray), ["b"])
      }))

    test("reads back what it took, whatever it is (R-8)", (history) =>
      Effect.gen(function* () {
        const messages = [
          Message.user(["", "U+0000 \u0000", "lone \ud800", "'; DROP TABLE kernai_messages; --", "\u{1f600}"]),
          Message.make("assistant", [
            Content.thinking("hm", { signature: { s: "x" } }),
            Content.toolUse("c", "t", { a: [1, -0, 1e300] })
          ]),
          Message.tool(Content.toolResult("c", [Content.text("r"), Content.image({ data: new Uint8Array([0, 255]) })])),
          Message.make("user", "named", { name: "Ann", metadata: { "\u0000k": null, n: -0 } }),
          Message.user("x".repeat(200_000))
        ]
        for (const [index, message] of messages.entries()) {
          yield* history.append(message, "\u0000 \ud800".repeat(500) + index)
        }
        assert.deepStrictEqual(yield* history.toArray, messages)
      }))

    test("refuses what cannot be kept, and keeps nothing of it", (history) =>
      Effect.gen(function* () {
        const broken: Message.Message = { role: "user", content: [Content.text("a")], metadata: { n: Number.NaN } }
        const refused = yield* Effect.result(history.append([one("fine"), broken], "k"))
        assert.deepStrictEqual(Result.isFailure(refused) && refused.failure.reason, "invalid")
        assert.strictEqual(yield* history.size, 0)
        yield* history.append(one("again"), "k")
        assert.strictEqual(yield* history.size, 1)
      }))

    test("streams a long conversation page by page", (history) =>
      Effect.gen(function* () {
        yield* Effect.forEach(Arr.range(0, 249), (n) => history.append(one(String(n))), { discard: true })
        const read = yield* Stream.runCollect(history.stream)
        assert.deepStrictEqual(
          texts(read),
          Arr.makeBy(250, (n) => String(n))
        )
        assert.deepStrictEqual(texts(yield* history.last(150))[0], "100")
        assert.deepStrictEqual(texts(yield* Stream.runCollect(Stream.take(history.stream, 2))), ["0", "1"])
      }))
  })
}

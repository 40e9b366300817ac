/**
 * What kernai expects of a memory, wherever it is kept (AC-8).
 */
import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Context, Effect, Layer, type Schema } from "effect"
import { KernelError, Memory } from "kernai"

/** Directions of a few words: animals point one way, vehicles another. */
const directions = new Map([
  ["cat", [1, 0]],
  ["kitten", [0.9, 0.1]],
  ["car", [0, 1]],
  ["truck", [0.1, 0.9]]
])
const embed: Memory.Embed = (text) =>
  text.includes("fail")
    ? Effect.fail("no")
    : Effect.succeed(
        text.split(" ").reduce(
          ([x = 0, y = 0], word) => {
            const [dx = 0, dy = 0] = directions.get(word) ?? []
            return [x + dx, y + dy]
          },
          [0.01, 0.01]
        )
      )

/** Runs the suite; every test begins with an empty memory. */
export const memorySuite = <E>(name: string, layer: Layer.Layer<Memory.Memory, E>): void => {
  const test = (
    title: string,
    body: (memory: Memory.MemoryShape) => Effect.Effect<void, Memory.StoreError | KernelError.LimitExceeded>,
    embedder?: Memory.Embed
  ) =>
    it.effect(
      title,
      () =>
        Effect.gen(function* () {
          const fresh = Layer.provide(Layer.fresh(layer), Layer.succeed(Memory.Embedder, embedder))
          yield* body(Context.get(yield* Layer.build(fresh), Memory.Memory))
        }),
      30_000
    )
  const contents = (entries: ReadonlyArray<Memory.MemoryEntry>) => entries.map(({ content }) => content)
  const remember = (memory: Memory.MemoryShape, ...texts: ReadonlyArray<string>) =>
    Effect.forEach(texts, (content) => memory.store({ content }))

  describe(name, () => {
    test("finds by words in any case, the best first and of equals the oldest", (memory) =>
      Effect.gen(function* () {
        yield* remember(memory, "The red car", "a RED boat and a car", "blue boat", "red paint", "nothing of it")
        const found = yield* memory.search({ query: "Red CAR" })
        assert.deepStrictEqual(contents(found).slice(0, 2).toSorted(), ["The red car", "a RED boat and a car"])
        assert.deepStrictEqual(contents(found).slice(2), ["red paint"])
        for (const { score } of found) assert.isTrue(score !== undefined && score > 0 && score <= 1)
        yield* remember(memory, "same words", "same words", "same words")
        const equals = yield* memory.search({ query: "same words" })
        assert.deepStrictEqual(
          equals.map(({ createdAt }) => createdAt),
          equals.map(({ createdAt }) => createdAt).toSorted()
        )
        assert.strictEqual(equals.length, 3)
      }))

    test("gives five unless told, and nothing for nothing", (memory) =>
      Effect.gen(function* () {
        const stored = yield* remember(memory, ...Arr.makeBy(8, (n) => `word number ${n}`))
        assert.deepStrictEqual(
          (yield* memory.search({ query: "word" })).map(({ id }) => id),
          stored.slice(0, 5).map(({ id }) => id)
        )
        assert.strictEqual((yield* memory.search({ query: "word", limit: 100 })).length, 8)
        assert.strictEqual((yield* memory.search({ query: "word", limit: 1 })).length, 1)
        for (const query of ["", "  ", "!?", "absent"]) assert.deepStrictEqual(yield* memory.search({ query }), [])
        for (const limit of [0, -1, Number.NaN])
          assert.deepStrictEqual(yield* memory.search({ query: "word", limit }), [])
        assert.deepStrictEqual(yield* memory.search({ query: "word", minScore: 1.1 }), [])
      }))

    test("filters by metadata, exactly", (memory) =>
      Effect.gen(function* () {
        const metadata: ReadonlyArray<{ readonly [key: string]: Schema.Json }> = [
          { user: "ann", tags: ["a", { b: 1 }] },
          { user: "ann", level: 1 },
          { user: "bob", level: "1" },
          {}
        ]
        for (const [index, fields] of metadata.entries())
          yield* memory.store({ content: `note ${index}`, metadata: fields })
        const found = (filter: { readonly [key: string]: Schema.Json }) =>
          Effect.map(memory.search({ query: "note", filter }), contents)
        assert.deepStrictEqual(yield* found({ user: "ann" }), ["note 0", "note 1"])
        assert.deepStrictEqual(yield* found({ user: "ann", level: 1 }), ["note 1"])
        assert.deepStrictEqual(yield* found({ level: "1" }), ["note 2"])
        assert.deepStrictEqual(yield* found({ tags: ["a", { b: 1 }] }), ["note 0"])
        assert.deepStrictEqual(yield* found({ user: "' OR 1=1 --" }), [])
        assert.deepStrictEqual(yield* found({ toString: "x", __proto__: "x" }), [])
        assert.strictEqual((yield* found({})).length, 4)
      }))

    test("forgets by id, and says whether there was something", (memory) =>
      Effect.gen(function* () {
        const [first] = yield* remember(memory, "one thing", "one other")
        for (const filter of [{ tenant: "acme" }, { n: 1 }]) {
          assert.isFalse(yield* memory.forget({ id: first?.id ?? "", filter }))
        }
        const own = yield* memory.store({ content: "of acme", metadata: { tenant: "acme", n: 1 } })
        assert.isFalse(yield* memory.forget({ id: own.id, filter: { tenant: "umbrella", n: 1 } }))
        assert.isTrue(yield* memory.forget({ id: own.id, filter: { tenant: "acme" } }))
        assert.isTrue(yield* memory.forget({ id: first?.id ?? "" }))
        assert.isFalse(yield* memory.forget({ id: first?.id ?? "" }))
        assert.isFalse(yield* memory.forget({ id: "'; DROP TABLE kernai_memories; --\u0000" }))
        assert.deepStrictEqual(contents(yield* memory.search({ query: "one" })), ["one other"])
      }))

    test("prunes what passes a filter, except what is kept, and its keys with it", (memory) =>
      Effect.gen(function* () {
        const metadata = { page: "a" }
        const [first, second] = yield* Effect.forEach(["one thing", "one other"], (content) =>
          memory.store({ content, metadata, key: content })
        )
        yield* memory.store({ content: "one more", metadata: { page: "b" } })
        assert.strictEqual(yield* memory.prune({ filter: metadata, keep: new Set([second?.id ?? ""]) }), 1)
        assert.deepStrictEqual(contents(yield* memory.search({ query: "one" })), ["one other", "one more"])
        const again = yield* memory.store({ content: "one thing", metadata, key: "one thing" })
        assert.notStrictEqual(again.id, first?.id)
        assert.strictEqual(yield* memory.prune({ filter: metadata }), 2)
        assert.strictEqual(yield* memory.prune({ filter: metadata }), 0)
        assert.deepStrictEqual(contents(yield* memory.search({ query: "one" })), ["one more"])
      }))

    test("remembers once what is stored twice under a key, also at the same time", (memory) =>
      Effect.gen(function* () {
        const stored = yield* Effect.forEach(
          Arr.range(1, 10),
          (n) => memory.store({ content: `text ${n}`, key: "k\u0000" }),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(new Set(stored.map(({ id }) => id)).size, 1)
        assert.strictEqual((yield* memory.search({ query: "text" })).length, 1)
        yield* memory.forget({ id: stored[0]?.id ?? "" })
        yield* memory.store({ content: "text again", key: "k\u0000" })
        assert.deepStrictEqual(contents(yield* memory.search({ query: "text" })), ["text again"])
      }))

    test("gives back what it took, and searches every script (R-8)", (memory) =>
      Effect.gen(function* () {
        const metadata = { "\u0000": null, n: [1, -0, 1e300], lone: "\ud800", ["__proto__"]: { deep: true } }
        const texts = [
          "nul \u0000 and \ud800 lone",
          "' OR \" AND NOT NEAR(x) * ( ) : ^ -",
          "Zürich CAFÉ naïve",
          "東京タワーに行きました",
          "Привет мир",
          "\u{1f600} smile",
          "x".repeat(100_000)
        ]
        for (const content of texts) {
          const entry = yield* memory.store({ content, metadata })
          assert.deepStrictEqual([entry.content, entry.metadata], [content, metadata])
        }
        const finds = (query: string) => Effect.map(memory.search({ query }), (found) => found[0]?.content)
        assert.strictEqual(yield* finds("LONE"), texts[0])
        assert.strictEqual(yield* finds("near"), texts[1])
        assert.strictEqual(yield* finds("ZÜRICH"), texts[2])
        assert.strictEqual(yield* finds("cafe\u0301"), texts[2])
        assert.strictEqual(yield* finds("タワー"), texts[3])
        assert.strictEqual(yield* finds("МИР"), texts[4])
        const [found] = yield* memory.search({ query: "smile" })
        assert.deepStrictEqual([found?.content, found?.metadata], [texts[5], metadata])
        for (const query of texts) yield* memory.search({ query })
      }))

    test("refuses what is too long or no JSON", (memory) =>
      Effect.gen(function* () {
        const tagOf = (given: Memory.NewMemory) =>
          Effect.match(memory.store(given), { onFailure: (error) => error._tag, onSuccess: () => "stored" })
        assert.strictEqual(yield* tagOf({ content: "é".repeat(100_001) }), "LimitExceeded")
        assert.strictEqual(yield* tagOf({ content: "a", metadata: { x: "x".repeat(200_001) } }), "LimitExceeded")
        assert.strictEqual(yield* tagOf({ content: "a", metadata: { n: Number.NaN } }), "StoreError")
        assert.deepStrictEqual(yield* memory.search({ query: "a" }), [])
      }).pipe(Effect.catchIf((error): error is never => typeof error === "undefined", Effect.die)))

    test(
      "compares by meaning where somebody knows it",
      (memory) =>
        Effect.gen(function* () {
          yield* remember(memory, "the kitten sleeps", "a truck on the road", "cat food", "a fast car")
          const found = yield* memory.search({ query: "cat", limit: 2 })
          assert.deepStrictEqual(contents(found), ["cat food", "the kitten sleeps"])
          assert.deepStrictEqual(contents(yield* memory.search({ query: "car", limit: 2 })), [
            "a fast car",
            "a truck on the road"
          ])
        }),
      embed
    )

    test(
      "goes by words alone for a text that could not be embedded",
      (memory) =>
        Effect.gen(function* () {
          yield* remember(memory, "cat that fails", "cat", "car")
          assert.include(contents(yield* memory.search({ query: "fails" })), "cat that fails")
          assert.strictEqual(contents(yield* memory.search({ query: "cat" }))[0], "cat")
        }),
      embed
    )
  })
}

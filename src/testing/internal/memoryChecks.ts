/** Checks of memories: words, filters, keys, limits, meaning, and texts that are meant to break them. */

import * as assert from "./assert.ts"
import * as Effect from "effect/Effect"
import type { JsonObject } from "../../kit/json.ts"
import * as Memory from "../../Memory.ts"

/** A sentence, and its check of an empty memory. */
export interface MemoryCheck {
  readonly name: string
  readonly body: (memory: Memory.MemoryShape) => Effect.Effect<void, unknown>
  readonly embed?: Memory.Embed
}

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

const contents = (entries: ReadonlyArray<Memory.MemoryEntry>) => entries.map(({ content }) => content)

const remember = (memory: Memory.MemoryShape, ...texts: ReadonlyArray<string>) =>
  Effect.forEach(texts, (content) => memory.store({ content }))

export const memoryChecks: ReadonlyArray<MemoryCheck> = [
  {
    name: "finds by words in any case, the best first and of equals the oldest",
    body: Effect.fnUntraced(function* (memory) {
      yield* remember(memory, "The red car", "a RED boat and a car", "blue boat", "red paint", "nothing of it")
      const found = yield* memory.search({ query: "Red CAR" })
      assert.deepEqual(contents(found).slice(0, 2).toSorted(), ["The red car", "a RED boat and a car"])
      assert.deepEqual(contents(found).slice(2), ["red paint"])
      for (const { score } of found) assert.ok(score !== undefined && score > 0 && score <= 1)
      yield* remember(memory, "same words", "same words", "same words")
      const equals = yield* memory.search({ query: "same words" })
      assert.deepEqual(
        equals.map(({ createdAt }) => createdAt),
        equals.map(({ createdAt }) => createdAt).toSorted()
      )
      assert.equal(equals.length, 3)
    })
  },
  {
    name: "finds an entry with one rare word before entries with two words that most have",
    body: Effect.fnUntraced(function* (memory) {
      yield* remember(memory, "how do cats", "how do dogs", "how do birds", "xylophones")
      const [found] = yield* memory.search({ query: "how do xylophones" })
      assert.equal(found?.content, "xylophones")
    })
  },
  {
    name: "gives five unless told, and nothing for nothing",
    body: Effect.fnUntraced(function* (memory) {
      const stored = yield* remember(memory, ...Array.from({ length: 8 }, (_, n) => `word number ${n}`))
      assert.deepEqual(
        (yield* memory.search({ query: "word" })).map(({ id }) => id),
        stored.slice(0, 5).map(({ id }) => id)
      )
      assert.equal((yield* memory.search({ query: "word", limit: 100 })).length, 8)
      assert.equal((yield* memory.search({ query: "word", limit: 1 })).length, 1)
      for (const query of ["", "  ", "!?", "absent"]) assert.deepEqual(yield* memory.search({ query }), [])
      for (const limit of [0, -1, Number.NaN]) assert.deepEqual(yield* memory.search({ query: "word", limit }), [])
      assert.deepEqual(yield* memory.search({ query: "word", minScore: 1.1 }), [])
    })
  },
  {
    name: "filters by metadata, exactly",
    body: Effect.fnUntraced(function* (memory) {
      const metadata: ReadonlyArray<JsonObject> = [
        { user: "ann", tags: ["a", { b: 1 }] },
        { user: "ann", level: 1 },
        { user: "bob", level: "1" },
        {}
      ]
      for (const [index, fields] of metadata.entries())
        yield* memory.store({ content: `note ${index}`, metadata: fields })
      const found = (filter: JsonObject) => Effect.map(memory.search({ query: "note", filter }), contents)
      assert.deepEqual(yield* found({ user: "ann" }), ["note 0", "note 1"])
      assert.deepEqual(yield* found({ user: "ann", level: 1 }), ["note 1"])
      assert.deepEqual(yield* found({ level: "1" }), ["note 2"])
      assert.deepEqual(yield* found({ tags: ["a", { b: 1 }] }), ["note 0"])
      assert.deepEqual(yield* found({ user: "' OR 1=1 --" }), [])
      assert.deepEqual(yield* found({ toString: "x", __proto__: "x" }), [])
      assert.equal((yield* found({})).length, 4)
    })
  },
  {
    name: "forgets by id, and says whether there was something",
    body: Effect.fnUntraced(function* (memory) {
      const [first] = yield* remember(memory, "one thing", "one other")
      for (const filter of [{ tenant: "acme" }, { n: 1 }]) {
        assert.ok(!(yield* memory.forget({ id: first?.id ?? "", filter })))
      }
      const own = yield* memory.store({ content: "of acme", metadata: { tenant: "acme", n: 1 } })
      assert.ok(!(yield* memory.forget({ id: own.id, filter: { tenant: "umbrella", n: 1 } })))
      assert.ok(yield* memory.forget({ id: own.id, filter: { tenant: "acme" } }))
      assert.ok(yield* memory.forget({ id: first?.id ?? "" }))
      assert.ok(!(yield* memory.forget({ id: first?.id ?? "" })))
      assert.ok(!(yield* memory.forget({ id: "'; DROP TABLE kernai_memories; --\u0000" })))
      assert.deepEqual(contents(yield* memory.search({ query: "one" })), ["one other"])
    })
  },
  {
    name: "prunes what passes a filter, except what is kept, and its keys with it",
    body: Effect.fnUntraced(function* (memory) {
      const metadata = { page: "a" }
      const [first, second] = yield* Effect.forEach(["one thing", "one other"], (content) =>
        memory.store({ content, metadata, key: content })
      )
      yield* memory.store({ content: "one more", metadata: { page: "b" } })
      assert.equal(yield* memory.prune({ filter: metadata, keep: new Set([second?.id ?? ""]) }), 1)
      assert.deepEqual(contents(yield* memory.search({ query: "one" })), ["one other", "one more"])
      const again = yield* memory.store({ content: "one thing", metadata, key: "one thing" })
      assert.notEqual(again.id, first?.id)
      assert.equal(yield* memory.prune({ filter: metadata }), 2)
      assert.equal(yield* memory.prune({ filter: metadata }), 0)
      assert.deepEqual(contents(yield* memory.search({ query: "one" })), ["one more"])
    })
  },
  {
    name: "remembers once what is stored twice under a key, also at the same time",
    body: Effect.fnUntraced(function* (memory) {
      const stored = yield* Effect.forEach(
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        (n) => memory.store({ content: `text ${n}`, key: "k\u0000" }),
        { concurrency: "unbounded" }
      )
      assert.equal(new Set(stored.map(({ id }) => id)).size, 1)
      assert.equal((yield* memory.search({ query: "text" })).length, 1)
      yield* memory.forget({ id: stored[0]?.id ?? "" })
      yield* memory.store({ content: "text again", key: "k\u0000" })
      assert.deepEqual(contents(yield* memory.search({ query: "text" })), ["text again"])
    })
  },
  {
    name: "gives back what it took, and searches every script",
    body: Effect.fnUntraced(function* (memory) {
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
        assert.deepEqual([entry.content, entry.metadata], [content, metadata])
      }
      const finds = (query: string) => Effect.map(memory.search({ query }), (found) => found[0]?.content)
      assert.equal(yield* finds("LONE"), texts[0])
      assert.equal(yield* finds("near"), texts[1])
      assert.equal(yield* finds("ZÜRICH"), texts[2])
      assert.equal(yield* finds("cafe\u0301"), texts[2])
      assert.equal(yield* finds("タワー"), texts[3])
      assert.equal(yield* finds("МИР"), texts[4])
      const [found] = yield* memory.search({ query: "smile" })
      assert.deepEqual([found?.content, found?.metadata], [texts[5], metadata])
      for (const query of texts) yield* memory.search({ query })
    })
  },
  {
    name: "refuses what is too long or no JSON",
    body: Effect.fnUntraced(function* (memory) {
      const tagOf = (given: Memory.NewMemory) =>
        Effect.match(memory.store(given), { onFailure: (error) => error._tag, onSuccess: () => "stored" })
      assert.equal(yield* tagOf({ content: "é".repeat(100_001) }), "LimitExceeded")
      assert.equal(yield* tagOf({ content: "a", metadata: { x: "x".repeat(200_001) } }), "LimitExceeded")
      assert.equal(yield* tagOf({ content: "a", metadata: { n: Number.NaN } }), "StoreError")
      assert.deepEqual(yield* memory.search({ query: "a" }), [])
    })
  },
  {
    name: "compares by meaning where somebody knows it",
    embed,
    body: Effect.fnUntraced(function* (memory) {
      yield* remember(memory, "the kitten sleeps", "a truck on the road", "cat food", "a fast car")
      const found = yield* memory.search({ query: "cat", limit: 2 })
      assert.deepEqual(contents(found), ["cat food", "the kitten sleeps"])
      assert.deepEqual(contents(yield* memory.search({ query: "car", limit: 2 })), [
        "a fast car",
        "a truck on the road"
      ])
    })
  },
  {
    name: "goes by words alone for a text that could not be embedded",
    embed,
    body: Effect.fnUntraced(function* (memory) {
      yield* remember(memory, "cat that fails", "cat", "car")
      assert.ok(contents(yield* memory.search({ query: "fails" })).includes("cat that fails"))
      assert.equal(contents(yield* memory.search({ query: "cat" }))[0], "cat")
    })
  },
  {
    name: "finds by words what was embedded by a model with other dimensions, and by meaning what was embedded by this one",
    body: Effect.fnUntraced(function* (memory) {
      const by = (...vector: ReadonlyArray<number>) =>
        Effect.provideService(Memory.Embedder, () => Effect.succeed(vector))
      yield* by(1, 0)(memory.store({ content: "an old cat" }))
      yield* by(1, 0, 0)(memory.store({ content: "a new dog" }))
      yield* by(0, 0, 1)(memory.store({ content: "a new car" }))
      const found = contents(yield* by(1, 0, 0)(memory.search({ query: "cat" })))
      assert.deepEqual(found.toSorted(), ["a new dog", "an old cat"])
      assert.deepEqual(contents(yield* by(1, 0, 0, 0)(memory.search({ query: "cat" }))), ["an old cat"])
    })
  },
  {
    name: "searches by words alone when the vector is not finite, empty, zero or too long, stored or asked",
    body: Effect.fnUntraced(function* (memory) {
      const vectors = [[Number.NaN, 1], [Infinity, 1], [], [0, 0], Array.from({ length: 20_000 }, () => 1)]
      const by = (vector: ReadonlyArray<number>) => Effect.provideService(Memory.Embedder, () => Effect.succeed(vector))
      for (const [index, vector] of vectors.entries()) yield* by(vector)(memory.store({ content: `tea ${index}` }))
      for (const vector of [...vectors, [1, 0]]) {
        const found = yield* by(vector)(memory.search({ query: "tea", limit: 10 }))
        assert.equal(found.length, vectors.length)
        assert.ok(found.every(({ score = 0 }) => score > 0 && score <= 1))
      }
    })
  },
  {
    name: "takes commands of SQL and of search languages as words, and a question of frequent words alone as one",
    body: Effect.fnUntraced(function* (memory) {
      const [tea] = yield* remember(memory, "the tea is for you", "coffee")
      const hostile = [
        "'; DROP TABLE kernai_memories; --",
        '" OR "1"="1',
        "tea* NEAR/2 (x) AND NOT {words}: ^",
        "'tea' & !coffee | x:*",
        "\\' || pg_sleep(10) --",
        "$1 ? :a @b %s"
      ]
      for (const query of hostile) yield* memory.search({ query })
      for (const query of ["the", "is for you", "and the of"]) {
        assert.deepEqual(
          (yield* memory.search({ query })).map(({ id }) => id),
          [tea?.id]
        )
      }
      assert.equal((yield* memory.search({ query: "word ".repeat(100_000) + "tea" })).length, 0)
    })
  }
]

import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Memory } from "kernai"

describe("a memory in this process", () => {
  it.effect("looks only at entries with a field of the filter, however many others there are", () =>
    Effect.gen(function* () {
      const memory = yield* Memory.makeMemory
      for (let index = 0; index < 1_000; index++) {
        yield* memory.store({ content: `tea ${index}`, metadata: { tenant: { id: index < 2 ? 1 : 2 } } })
      }
      let looked = 0
      const tenant = {
        get id() {
          looked++
          return 1
        }
      }
      assert.lengthOf(yield* memory.search({ query: "tea", filter: { tenant } }), 2)
      assert.strictEqual(yield* memory.prune({ filter: { tenant } }), 2)
      assert.isBelow(looked, 20)
    })
  )

  it.effect("finds what is left in the same order after most entries are gone, and gives their keys free", () =>
    Effect.gen(function* () {
      const memory = yield* Memory.makeMemory
      for (let index = 0; index < 500; index++) {
        const metadata = { part: index % 5, of: "all" }
        yield* memory.store({ content: `tea number${index}`, metadata, key: `${index}` })
      }
      for (const part of [0, 1, 2, 3]) assert.strictEqual(yield* memory.prune({ filter: { part } }), 100)
      const found = yield* memory.search({ query: "tea", limit: 1_000, filter: { of: "all" } })
      assert.deepStrictEqual(
        found.map(({ content }) => content),
        Array.from({ length: 100 }, (_, index) => `tea number${index * 5 + 4}`)
      )
      const [one] = yield* memory.search({ query: "number499" })
      assert.isTrue(yield* memory.forget({ id: one?.id ?? "", filter: { part: 4 } }))
      assert.lengthOf(yield* memory.search({ query: "number499" }), 0)
      yield* memory.store({ content: "again", key: "0" })
      assert.lengthOf(yield* memory.search({ query: "again" }), 1)
    })
  )

  it.effect("finds by meaning among many as among few", () =>
    Effect.gen(function* () {
      const memory = yield* Memory.makeMemory
      for (let index = 0; index < 3_000; index++) yield* memory.store({ content: `${index}` })
      const found = yield* memory.search({ query: "near1500", limit: 3 })
      assert.deepStrictEqual(found.map(({ content }) => content).toSorted(), ["1499", "1500", "1501"])
    }).pipe(
      Effect.provideService(Memory.Embedder, (text) =>
        Effect.succeed(Array.from({ length: 64 }, (_, at) => Math.cos((Number(text.replace("near", "")) / 3_000) * at)))
      )
    )
  )
})

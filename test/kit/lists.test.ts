import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Growing } from "../../src/kit/lists.ts"
import { bytesEach } from "../support/heap.ts"

describe("Growing", () => {
  it("adds to a list without reading the items that it began with", () => {
    let reads = 0
    const first = new Proxy(["a", "b"], {
      get: (target, key, receiver) => {
        if (key !== "length") reads++
        return Reflect.get(target, key, receiver)
      }
    })
    const list = Growing.of(first).append(["c"]).append(["d"])
    assert.deepStrictEqual([list.length, list.last(), list.recent(2), reads], [4, "d", ["c", "d"], 0])
  })

  it("knows that a list extends the one that it began as", () => {
    const first = Growing.of(["a"])
    const longer = first.append(["b"])
    assert.isTrue(longer.grewFrom(first))
    assert.isFalse(first.append(["c"]).grewFrom(longer))
  })

  it("takes no room for more items than one to which one item was added", () => {
    const first = Growing.of<number>([])
    assert.isBelow(
      bytesEach(20_000, (index) => first.append([index])),
      150
    )
  })

  it.prop(
    "keeps every version as it was, whichever version is added to",
    [Schema.Array(Schema.Struct({ to: Schema.Natural, items: Schema.Array(Schema.Int) })), Schema.Array(Schema.Int)],
    ([steps, first]) => {
      const versions = [{ list: Growing.of<number>(first), items: first }]
      for (const { items, to } of steps) {
        const version = versions[to % versions.length]
        if (version === undefined) continue
        versions.push({ list: version.list.append(items), items: version.items.concat(items) })
      }
      for (const { items, list } of versions) {
        assert.strictEqual(list.length, items.length)
        assert.deepStrictEqual(list.after([-1]), [-1, ...items])
        for (let index = 0; index <= items.length; index++) {
          assert.strictEqual(list.at(index), items[index])
          assert.deepStrictEqual(list.recent(index), index === 0 ? [] : items.slice(-index))
        }
        assert.deepStrictEqual(list.array, items)
        assert.deepStrictEqual(list.after([-1]), [-1, ...items])
      }
    }
  )
})

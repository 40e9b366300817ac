/** Checks of a knowledge base in a memory: documents in place of earlier ones, fields, places, and huge documents. */

import * as assert from "./assert.ts"
import * as Effect from "effect/Effect"
import * as Knowledge from "../../Knowledge.ts"
import * as Memory from "../../Memory.ts"
import type { MemoryCheck } from "./memoryChecks.ts"

const guide = `# Guide

Tea comes first.

## Green tea

Steep it for two minutes.

## Black tea

Steep it for four minutes.
`

const over = (memory: Memory.MemoryShape) => Effect.provideService(Knowledge.make(), Memory.Memory, memory)

export const documentChecks: ReadonlyArray<MemoryCheck> = [
  {
    name: "embeds only passages of a document that changed, and removes those that are gone",
    body: Effect.fnUntraced(function* (memory) {
      const embedded: Array<string> = []
      const knowledge = yield* over(memory)
      const index = (content: string) =>
        Effect.provideService(knowledge.index({ name: "guide.md", content }), Memory.Embedder, (text) =>
          Effect.sync(() => (embedded.push(text), [1, text.length]))
        )
      assert.deepEqual(yield* index(guide), { passages: 3, removed: 0 })
      assert.deepEqual(yield* index(guide), { passages: 3, removed: 0 })
      assert.equal(embedded.length, 3)
      assert.deepEqual(yield* index(guide.replace("four", "five")), { passages: 3, removed: 1 })
      assert.equal(embedded.length, 4)
      const [found] = yield* knowledge.search({ query: "five minutes" })
      assert.deepEqual([found?.citation, found?.heading], ["guide.md:9-11", "Guide > Black tea"])
      assert.ok(!JSON.stringify(yield* knowledge.search({ query: "four" })).includes("four"))
      assert.deepEqual(yield* index("# Guide\n"), { passages: 1, removed: 3 })
      assert.equal(yield* knowledge.remove({ name: "guide.md" }), 1)
      assert.deepEqual(yield* knowledge.search({ query: "guide" }), [])
    })
  },
  {
    name: "keeps documents of two tenants apart, by words and by meaning",
    embed: () => Effect.succeed([1, 2, 3]),
    body: Effect.fnUntraced(function* (memory) {
      const knowledge = yield* over(memory)
      const tenants = ["acme", "umbrella", "' OR 1=1 --"]
      for (const tenant of tenants) {
        const content = `# Tea\n\nThe tea of ${tenant}.\n`
        yield* knowledge.index({ name: "tea.md", content, metadata: { tenant, document: "x" } })
      }
      for (const tenant of tenants) {
        const found = yield* knowledge.search({ query: "coffee or tea", filter: { tenant }, limit: 10 })
        assert.deepEqual(
          found.map(({ metadata }) => metadata),
          [{ tenant, document: "x" }]
        )
      }
      assert.deepEqual(yield* knowledge.search({ query: "tea", filter: { tenant: "nobody" } }), [])
      assert.equal(yield* knowledge.remove({ name: "tea.md", metadata: { tenant: "acme" } }), 0)
      assert.equal(yield* knowledge.remove({ name: "tea.md", metadata: { tenant: "acme", document: "x" } }), 1)
      assert.equal((yield* knowledge.search({ query: "tea" })).length, 2)
    })
  },
  {
    name: "finds one line in a document of 20,000 lines, and cites it",
    body: Effect.fnUntraced(function* (memory) {
      const knowledge = yield* over(memory)
      const lines = Array.from({ length: 20_000 }, (_, n) => (n === 15_000 ? "the needle" : n % 2 === 0 ? "hay" : ""))
      yield* knowledge.index({ name: "hay.txt", content: lines.join("\n") })
      const [found] = yield* knowledge.search({ query: "needle", limit: 1 })
      assert.ok(found !== undefined && found.from <= 15_001 && found.to >= 15_001)
      assert.equal(found.content.split("\n")[15_001 - found.from], "the needle")
    })
  }
]

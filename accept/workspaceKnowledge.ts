/**
 * How well searches find the document that answers a question: words alone, vectors alone, and both together, in every
 * store.
 *
 * The corpus is the documentation. The questions, in `test/fixtures/knowledge/questions.txt`, were written for this
 * project and are under its license: 177 of them, each below the name of the document that answers it.
 * The vectors are made of hashed pieces of words, so they know spelling and no meaning; a model's embedding does better.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Layer, Redacted } from "effect"
import { Knowledge, Memory } from "../src/index.ts"
import { SqlMemory } from "../src/sql/index.ts"
import * as Postgres from "../test/support/postgres.ts"
import { type Line, root } from "./support.ts"

interface Question {
  readonly text: string
  readonly document: string
}

/** The questions below the name of the document that answers them. */
const questions = (): ReadonlyArray<Question> => {
  let document = ""
  return readFileSync(join(root, "test/fixtures/knowledge/questions.txt"), "utf8")
    .split("\n")
    .flatMap((line) => {
      if (line.startsWith("# ")) document = line.slice(2)
      return line.startsWith("# ") || line === "" ? [] : [{ text: line, document }]
    })
}

const dimensions = 1_024

/** Counts pieces of three to five characters of each word, in a vector of fixed length. */
const embed: Memory.Embed = (text) =>
  Effect.sync(() => {
    const counts = Array.from({ length: dimensions }, () => 0)
    for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
      const marked = `<${word}>`
      for (let size = 3; size <= 5; size++) {
        for (let start = 0; start + size <= marked.length; start++) {
          const place = hash(marked.slice(start, start + size)) % dimensions
          counts[place] = (counts[place] ?? 0) + 1
        }
      }
    }
    // Frequent pieces count less than in proportion.
    return counts.map((count) => Math.log1p(count))
  })

const hash = (text: string): number => {
  let value = 2_166_136_261
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 16_777_619)
  return value >>> 0
}

/** A memory that compares vectors alone: the words of every entry are the same. */
const vectorsAlone = Effect.gen(function* () {
  const kept: Array<{ readonly entry: Memory.MemoryEntry; readonly vector: ReadonlyArray<number> }> = []
  const unit = (text: string) =>
    Effect.map(embed(text), (vector) => vector.map((value) => value / Math.hypot(...vector)))
  return {
    store: ({ content, metadata = {} }: Memory.NewMemory) =>
      Effect.gen(function* () {
        const entry = yield* Memory.entryOf(content, metadata)
        kept.push({ entry, vector: yield* Effect.orDie(unit(content)) })
        return entry
      }),
    search: ({ limit, query }: Memory.Query) =>
      Effect.map(Effect.orDie(unit(query)), (asked) =>
        kept
          .map(({ entry, vector }) => ({
            ...entry,
            score: vector.reduce((sum, value, index) => sum + value * (asked[index] ?? 0), 0)
          }))
          .toSorted((a, b) => b.score - a.score)
          .slice(0, limit)
      ),
    forget: () => Effect.succeed(false),
    prune: () => Effect.succeed(0)
  }
})

/** What a search reached: the share of questions whose document is first, and among the first five passages. */
interface Quality {
  readonly first: number
  readonly five: number
  /** The mean of 1, 1/2, 1/3 … for the place of the document among ten passages. */
  readonly rank: number
  readonly milliseconds: number
}

const measure = Effect.fnUntraced(function* (asked: ReadonlyArray<Question>) {
  const knowledge = yield* Knowledge.Knowledge
  for (const name of new Set(asked.map(({ document }) => document))) {
    yield* knowledge.index({ name, content: readFileSync(join(root, "docs", name), "utf8") })
  }
  const started = performance.now()
  const places = yield* Effect.forEach(asked, ({ document, text }) =>
    Effect.map(knowledge.search({ query: text, limit: 10 }), (found) =>
      found.findIndex((passage) => passage.document === document)
    )
  )
  const share = (worth: (place: number) => number) =>
    places.reduce((sum, place) => sum + (place === -1 ? 0 : worth(place)), 0) / places.length
  return {
    first: share((place) => (place === 0 ? 1 : 0)),
    five: share((place) => (place < 5 ? 1 : 0)),
    rank: share((place) => 1 / (place + 1)),
    milliseconds: (performance.now() - started) / places.length
  }
})

/** Every store of memories, each with its own way to search words and to compare vectors. */
const stores: { readonly [name: string]: Layer.Layer<Memory.Memory, unknown> } = {
  "in memory": Memory.layerMemory,
  "in SQLite with sqlite-vec": SqlMemory.layerSqlite(":memory:"),
  "in SQLite alone": SqlMemory.layerSqlite({ filename: ":memory:", extensions: [] }),
  ...(Postgres.available && {
    "in PostgreSQL alone": Layer.unwrap(
      Effect.map(Postgres.database, ({ url }) => SqlMemory.layerPg({ url: Redacted.make(url) }))
    )
  }),
  "in PostgreSQL with pgvector (PGlite)": Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("../test/support/pglite.ts")),
      ({ layer }) => Layer.provide(SqlMemory.layer(), layer)
    )
  )
}

/** The qualities of searches on the same documents and questions: by vectors, and in each store by words and by both. */
export const searchQuality = async (names: ReadonlyArray<string> = Object.keys(stores)) => {
  const asked = questions()
  const of = (memory: Layer.Layer<Memory.Memory, unknown>, embedder?: Memory.Embed) =>
    Effect.runPromise(
      measure(asked).pipe(
        Effect.provide(Layer.provide(Knowledge.layer(), Layer.fresh(memory))),
        Effect.provideService(Memory.Embedder, embedder)
      )
    )
  const vectors = await of(Layer.effect(Memory.Memory, vectorsAlone))
  const each: Array<{ readonly store: string; readonly words: Quality; readonly both: Quality }> = []
  for (const store of names) {
    const memory = stores[store] ?? Memory.layerMemory
    each.push({ store, words: await of(memory), both: await of(memory, embed) })
  }
  return { vectors, each }
}

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`

const figure = ({ first, five, milliseconds, rank }: Quality): string =>
  `first ${percent(first)}, among five ${percent(five)}, mean reciprocal rank ${rank.toFixed(3)}, ${milliseconds.toFixed(1)} ms each`

/** The table as lines, and that both together find more than either alone, in every store. */
export const knowledge = async (): Promise<ReadonlyArray<Line>> => {
  const title = `${questions().length} questions over the documentation by`
  const { each, vectors } = await searchQuality()
  return [
    { line: `${title} vectors`, pass: vectors.five > 0, figure: figure(vectors) },
    ...each.flatMap(({ both, store, words }) => [
      { line: `${title} words, ${store}`, pass: words.five > 0, figure: figure(words) },
      {
        line: `${title} both, ${store}, rank better than by either alone`,
        pass: both.rank > Math.max(words.rank, vectors.rank),
        figure: figure(both)
      }
    ]),
    {
      line: "every store was measured",
      pass: Postgres.available,
      figure: Postgres.available ? `${each.length} stores` : "no PostgreSQL here, so it was not measured"
    }
  ]
}

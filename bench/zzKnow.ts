/**
 * Searches of a memory in this process against a scan of all its entries, by words and vectors, at three sizes.
 *
 * Entries have 60 words, some of them frequent, and a vector of 256 numbers around one of 500 topics, as those of texts
 * are. The scan looks at every entry, as the memory did before it had an index. CPU time per search; beside it, how many
 * of the ten best entries of the scan the index finds.
 */
import * as Effect from "effect/Effect"
import * as Memory from "../dist/Memory.js"
import * as MemoryRules from "../dist/store-kit/MemoryRules.js"
import { compare, cpu, ratioRow, type Row, row } from "./support.ts"

const dimensions = 256

/** Numbers from 0 to 1, the same in every run. */
const numbers = (from: number) => {
  let seed = from
  return () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return seed / 2 ** 32
  }
}

const next = numbers(1)

/** Frequent words are as frequent as in texts: the n-th of 20,000 about as often as 1/n. */
const word = () => `w${Math.floor(20_000 ** next())}`
const text = (words: number) => Array.from({ length: words }, word).join(" ")

const direction = (random: () => number) => Array.from({ length: dimensions }, () => random() - 0.5)
const topics = Array.from({ length: 500 }, () => direction(next))

const embed: Memory.Embed = (text) =>
  Effect.sync(() => {
    let hash = 7
    for (let index = 0; index < text.length; index++) hash = (Math.imul(hash, 31) + text.charCodeAt(index)) >>> 0
    const noise = direction(numbers(hash))
    return (topics[hash % topics.length] ?? noise).map((value, at) => value + (noise[at] ?? 0))
  })

interface Scanned {
  readonly words: ReadonlySet<string>
  readonly vector: Float32Array | undefined
}

const vectorOf = (text: string) => Effect.map(Effect.orDie(embed(text)), MemoryRules.unit)

/** Returns the places of the best entries, by looking at all of them. */
const scan = (entries: ReadonlyArray<Scanned>, query: string) =>
  Effect.map(vectorOf(query), (vector) => {
    const asked = MemoryRules.asked({ query, limit: 10 })
    const fits = new Map<number, number>()
    let total = 0
    for (const word of asked.words) {
      const places = entries.flatMap(({ words }, place) => (words.has(word) ? [place] : []))
      const weight = Math.log(1 + (entries.length - places.length + 0.5) / (places.length + 0.5))
      total += weight
      for (const place of places) fits.set(place, (fits.get(place) ?? 0) + weight)
    }
    const words = new Map([...fits].map(([place, weight]) => [place, weight / total]))
    const meanings =
      vector && new Map(entries.map((entry, place) => [place, MemoryRules.likeness(vector, entry.vector)]))
    return MemoryRules.ranked(words, meanings, asked).map(({ id }) => id)
  })

export const measure = async (size: number): Promise<ReadonlyArray<Row>> => {
  const memory = await Effect.runPromise(Effect.provideService(Memory.makeMemory, Memory.Embedder, embed))
  const entries: Array<Scanned> = []
  for (let place = 0; place < size; place++) {
    const content = text(60)
    await Effect.runPromise(memory.store({ content, metadata: { place } }))
    entries.push({ words: new Set(content.split(" ")), vector: await Effect.runPromise(vectorOf(content)) })
  }
  const queries = Array.from({ length: 8 }, () => text(6))
  const ours = Effect.forEach(queries, (query) => memory.search({ query, limit: 10 }))
  const peer = Effect.forEach(queries, (query) => scan(entries, query))
  const each = async (work: Effect.Effect<unknown, unknown>) =>
    (await cpu(() => Effect.runPromise(work))) / queries.length / 1_000
  const rounds = { warm: 1, counted: size > 50_000 ? 3 : 7 }
  const times = await compare(
    () => each(ours),
    () => each(peer),
    rounds
  )
  const [found, all] = await Effect.runPromise(Effect.all([ours, peer]))
  const missed = all.flatMap((places, at) => {
    const had = new Set(found[at]?.map(({ metadata }) => metadata["place"]))
    return places.filter((place) => !had.has(place))
  })
  const name = `a search of ${size.toLocaleString("en")} passages`
  return [
    ratioRow(`knowledge.${size}`, `${name} over a scan of them`, times, "ms", size < 10_000 ? 1 : 0.2),
    row(
      `knowledge.${size}.missed`,
      `${name}: share of the scan's ten best that it misses`,
      missed.length / all.flat().length,
      0.05
    )
  ]
}

export default async (): Promise<ReadonlyArray<Row>> => [
  ...(await measure(1_000)),
  ...(await measure(10_000)),
  ...(await measure(100_000))
]

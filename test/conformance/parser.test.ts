/**
 * Runs parser.json: every vector under every way of cutting it that the file
 * names (BP-1 to BP-29, W-1, W-6, W-7). Sizes count code points.
 */
import { assert, describe, it } from "@effect/vitest"
import { faults, feed, merged, reading } from "../support/parts.ts"
import * as Vectors from "../support/vectors.ts"

interface Found {
  readonly type: string
  readonly name: string | null
  readonly content: string
}
interface Result {
  readonly chunkings: ReadonlyArray<string>
  readonly blocks: ReadonlyArray<Found>
  readonly text: string
  readonly events: ReadonlyArray<ReadonlyArray<string | null>>
}
interface Vector {
  readonly id: string
  readonly category: string
  readonly input: string
  readonly chunk_sizes: { readonly [name: string]: ReadonlyArray<number> }
  readonly results: readonly [Result, ...ReadonlyArray<Result>]
  readonly disputed?: {
    readonly reasons: ReadonlyArray<string>
    readonly preferred: {
      readonly blocks: ReadonlyArray<Found>
      readonly text: string
      readonly unclosed: Found | null
    }
  }
}

const { vectors } = Vectors.load<{ readonly vectors: ReadonlyArray<Vector> }>("parser", {
  vectors: [
    {
      ...Vectors.about,
      input: true,
      chunk_sizes: true,
      results: [{ chunkings: true, blocks: true, text: true, events: true }],
      // The recorded library's second parser, which ours is not (BP-29).
      whole_text_parser: true,
      whole_text_parser_agrees: true
    }
  ]
})
const tally = Vectors.tally("parser.json")
const counts = { chunkings: 0, agreed: 0, disputed: 0, preferred: 0 }

/** Cuts into pieces of these sizes; what is left over is the last piece. */
const bySizes = (points: ReadonlyArray<string>, sizes: Iterable<number>): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  let at = 0
  for (const size of sizes) {
    pieces.push(points.slice(at, at + size).join(""))
    at += size
    if (at >= points.length) return pieces
  }
  return [...pieces, points.slice(at).join("")]
}

const every = (size: number, length: number) => Array.from({ length: Math.ceil(length / size) }, () => size)

/** The cuts a name stands for: one, or one for each k of a `split@` range; none when the name is unknown. */
const cuts = (vector: Vector, name: string): ReadonlyArray<ReadonlyArray<string>> => {
  const points = Array.from(vector.input)
  if (name === "whole") return [[vector.input]]
  if (name === "chars") return [points]
  if (/^by\d+$/.test(name)) return [bySizes(points, every(Number(name.slice(2)), points.length))]
  if (/^split@[\d,-]+$/.test(name)) {
    return name
      .slice(6)
      .split(",")
      .flatMap((range) => {
        const [from = 0, to = from] = range.split("-").map(Number)
        return Array.from({ length: to - from + 1 }, (_, k) => bySizes(points, [from + k]))
      })
  }
  const sizes = vector.chunk_sizes[name]
  return sizes === undefined ? [] : [bySizes(points, sizes)]
}

const json = (value: unknown) => JSON.stringify(value)

describe("parser.json", () => {
  for (const vector of vectors) {
    const names = vector.results.flatMap((result) => result.chunkings)
    const unknown = names.filter((name) => cuts(vector, name).length === 0)
    if (unknown.length > 0) {
      tally.skip(`${vector.id}: ${unknown.join(" ")}`)
      continue
    }
    it(`${vector.id} ${vector.category}: ${json(vector.input).slice(0, 60)}`, () => {
      tally.ran()
      const pieces = names.flatMap((name) => cuts(vector, name))
      const readings = pieces.map((cut) => feed(cut))
      counts.chunkings += pieces.length
      for (const { failure, parts } of readings) {
        assert.isUndefined(failure)
        assert.deepStrictEqual(faults(parts), [])
      }
      assert.deepStrictEqual(
        pieces.map((cut) => cut.join("")),
        pieces.map(() => vector.input)
      )

      const answers = new Set(readings.map(({ parts }) => json(merged(parts))))
      assert.strictEqual(answers.size, 1, "the answer depends on the cuts")

      const parts = readings[0]?.parts ?? []
      const found = reading(parts)
      if (vector.disputed === undefined) {
        counts.agreed += 1
        assert.deepStrictEqual(merged(parts), vector.results[0].events)
        assert.deepStrictEqual(found.blocks, vector.results[0].blocks)
        assert.strictEqual(found.text, vector.results[0].text)
        return
      }
      const { preferred } = vector.disputed
      counts.disputed += 1
      if (json(found) === json({ ...preferred, unclosed: preferred.unclosed ?? undefined })) counts.preferred += 1
      const accepted = [preferred.blocks, ...vector.results.map((result) => result.blocks)]
      assert.include(accepted.map(json), json(found.blocks))
    })
  }
  it("every vector of the file was run", () => {
    const { agreed, chunkings, disputed, preferred } = counts
    console.log(
      `parser.json: ${agreed} undisputed and ${disputed} disputed (${preferred} read as preferred), ${chunkings} cuts`
    )
    assert.strictEqual(agreed + disputed, vectors.length)
  })
  tally.report()
})

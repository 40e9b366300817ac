/**
 * Plays the costs of durable-run.json: what runs of many equal turns write (DR-5).
 *
 * A cost says how many turns of one tool call each, and how much is said in
 * them; its numbers are known by the words in their keys. What it expects are
 * bounds: a small number is how much more twice the turns may write, a large
 * one is bytes.
 */
import { assert } from "@effect/vitest"
import { Effect, Result } from "effect"
import { RunCodec, RunStore } from "kernai"
import { play } from "./durable/play.ts"

/** One file may hold costs apart from its scenarios, or among them. */
export interface Cost {
  readonly id?: string
  readonly title?: string
  readonly cost?: unknown
  readonly expect?: unknown
}

interface Asked {
  readonly turns: ReadonlyArray<number>
  readonly sizes: Sizes
  readonly bounds: ReadonlyArray<readonly [key: string, bound: number]>
}

interface Sizes {
  input: number
  output: number
  reply: number
}

/** What a value holds besides objects, under its last key. */
const leaves = (value: unknown, name = ""): ReadonlyArray<readonly [name: string, value: unknown]> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.entries(value).flatMap(([key, part]) => leaves(part, key))
    : [[name, value]]

const isNumber = (value: unknown) => typeof value === "number"

/** What a cost asks for; nothing where a key speaks of something else. */
export const asked = ({ cost, expect, id: _id, title: _title, ...rest }: Cost): Asked | undefined => {
  const { expect: within, ...given } = Object(cost ?? rest)
  const { note: _note, rules: _rules, ...about } = given
  const sizes: Sizes = { input: 2, output: 1, reply: 0 }
  let turns: ReadonlyArray<number> = []
  for (const [name, value] of leaves(about)) {
    const amounts = [value].flat().filter(isNumber)
    const [amount] = amounts
    if (amount === undefined) return undefined
    const bytes = /ki?b/i.test(name) ? amount * 1024 : amount
    if (/turns|turn_?count|^n$/i.test(name)) turns = amounts
    else if (/input|arg/i.test(name)) sizes.input = bytes
    else if (/output|result|tool/i.test(name)) sizes.output = bytes
    else if (/repl|text|answer|model/i.test(name)) sizes.reply = bytes
    else return undefined
  }
  const expected = leaves({ ...Object(within), ...Object(expect) })
  const bounds = expected.flatMap(([name, value]) => (isNumber(value) ? [[name, value] as const] : []))
  // What is said to be so, or not, is what always must be.
  const isStrange = expected.some(([name, value]) =>
    isNumber(value) ? value <= 10 && !/ratio|factor|times|grow|doubl|max|most/i.test(name) : typeof value !== "boolean"
  )
  const [one, ...more] = turns
  if (one === undefined || isStrange) return undefined
  return { turns: more.length === 0 ? [one, 2 * one] : turns.toSorted((a, b) => a - b), sizes, bounds }
}

/** A run of so many turns, in a store that counts the bytes of each commit. */
const written = Effect.fnUntraced(function* (turns: number, { input, output, reply }: Sizes) {
  const store = yield* RunStore.makeMemory
  const commits: Array<number> = []
  const counting: RunStore.RunStoreShape = {
    ...store,
    append: (records, state) =>
      Effect.map(store.append(records, state), () => {
        commits.push(Buffer.byteLength(Result.getOrThrow(RunCodec.encodeRecords(records))))
      })
  }
  const call = { id: "call-a", name: "A", input: { x: "x".repeat(input) } }
  const differences = yield* play({
    id: "cost",
    title: `${turns} turns`,
    config: {
      tools: { A: { output: "o".repeat(output) } },
      script: [{ text: "r".repeat(reply), toolCalls: [call] }],
      maxTurns: turns
    },
    steps: [{ do: "run", expect: { status: { type: "completed", source: "max_turns" } } }],
    final: { turnsCompleted: turns }
  }).pipe(Effect.provideService(RunStore.RunStore, counting))
  assert.deepStrictEqual(differences, [])
  return { turns, total: commits.reduce((sum, bytes) => sum + bytes, 0), largest: Math.max(...commits) }
})

/** Twice the turns write twice the bytes, and no commit grows with them; then what else is expected. */
export const playCost = Effect.fnUntraced(function* ({ bounds, sizes, turns }: Asked) {
  const runs = yield* Effect.forEach(turns, (count) => written(count, sizes))
  const factors = bounds.filter(([, bound]) => bound <= 10).map(([, bound]) => bound)
  for (const [index, more] of runs.entries()) {
    const less = runs[index - 1]
    if (less === undefined) continue
    const times = more.turns / less.turns
    for (const factor of [2.2, ...factors]) assert.isAtMost(more.total / less.total, (factor * times) / 2)
    // Numbers of turns and revisions are longer.
    assert.isAtMost(more.largest - less.largest, 20)
  }
  for (const [name, bound] of bounds.filter(([, bound]) => bound > 10)) {
    const run = runs.find((one) => String(one.turns) === name) ?? runs.at(-1)
    assert.isAtMost((/commit|largest/i.test(name) ? run?.largest : run?.total) ?? 0, bound, name)
  }
})

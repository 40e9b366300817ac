/**
 * Checks that the runs of a conversation keep their earlier messages, however a store shares them.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as assert from "../assert.ts"
import * as Contents from "../../../Content.ts"
import type { Message } from "../../../Message.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, loads, put, putAll } from "../sampleJournal.ts"

/** A conversation of this many messages, of about 1,000 characters each. */
const messages = (count: number): ReadonlyArray<Message> =>
  Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: [Contents.text(`message ${index} ${"says something ".repeat(66)}`)]
  }))

/** The runs of a conversation, each of which begins with the messages before it. */
const conversation = (name: string, runs: number): ReadonlyArray<Journal.Writer> => {
  const all = messages(2 * runs)
  return Array.from({ length: runs }, (_, index) =>
    Journal.begin(`${name}/${index}`, { history: all.slice(0, 2 * index) })
  )
}

const idOf = (run: Journal.Writer): string => run.last().state.runId

export const histories: ReadonlyArray<Check> = [
  {
    name: "keeps all earlier messages of a run when the other runs of its conversation are removed",
    body: Effect.fnUntraced(function* (one, two) {
      const runs = conversation("histories/removed", 12)
      for (const run of runs) yield* put(one, [run.last()])
      for (const run of runs) yield* loads(two, run.last())
      const kept = runs.slice(8, 9)
      yield* one.remove(runs.filter((run) => !kept.includes(run)).map(idOf))
      for (const run of kept) {
        yield* loads(one, run.last())
        yield* loads(two, run.last())
        assert.deepEqual(yield* Stream.runCollect(two.read(idOf(run))), [run.last().record])
        // Appending again what is stored changes nothing.
        yield* put(two, [run.last()])
      }
      yield* two.remove(kept.map(idOf))
      assert.deepEqual(yield* one.load("histories/removed/8"), Option.none())
      // What was removed can be stored again.
      yield* put(one, [runs[10]?.last() ?? Journal.begin("histories/removed/10").last()])
      yield* loads(two, runs[10]?.last() ?? Journal.begin("histories/removed/10").last())
    })
  },
  {
    name: "keeps all earlier messages of a run that is stored while the run before it is removed",
    body: Effect.fnUntraced(function* (one, two) {
      const history = messages(24)
      let before = Journal.begin("histories/race/0", { history })
      yield* put(one, [before.last()])
      for (let round = 1; round <= 20; round++) {
        const next = Journal.begin(`histories/race/${round}`, { history })
        yield* Effect.all([one.remove([idOf(before)]), put(two, [next.last()])], { concurrency: 2 })
        yield* loads(one, next.last())
        before = next
      }
    })
  },
  {
    name: "keeps all earlier messages of a long run, which a store may keep in parts",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("histories/long", { history: messages(24) })
      yield* put(one, [run.last()])
      for (let turn = 0; turn < 70; turn++) yield* putAll(one, Journal.turn(run))
      yield* loads(one, run.last())
      yield* loads(two, run.last())
    })
  }
]

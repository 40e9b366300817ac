/**
 * Checks: records taken at once are all there or none, as if they had come one by one.
 *
 * A store that takes each record by itself passes: it has no group to break.
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import type * as RunStore from "../../../RunStore.ts"
import type { Commit } from "../sampleJournal.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, loads, put, putAll, tagOf } from "./runCheck.ts"

const recordsOf = (store: RunStore.RunStoreShape, runId: string) => Stream.runCollect(store.read(runId))

export const groups: ReadonlyArray<Check> = [
  {
    name: "takes what happened between two effects at once, and gives each record of it",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/turns")
      const first = run.last()
      yield* put(one, [first])
      const turns = [Journal.turn(run), Journal.turn(run), Journal.finish(run)]
      for (const commits of turns) {
        yield* putAll(one, commits)
        yield* loads(two, commits.at(-1) ?? first)
      }
      const records = [first, ...turns.flat()].map(({ record }) => record)
      assert.deepEqual(yield* recordsOf(two, "groups/turns"), records)
      const { status } = run.last().state
      const heads = yield* two.list({ rootRunId: "groups/turns", status: [status.type] })
      assert.deepEqual(
        heads.map((head) => [head.revision, head.status, head.turns]),
        [[records.length, status, run.last().state.turns.length]]
      )
    })
  },
  {
    name: "takes the same records once more as a success, all at once or one by one (R-6)",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/again")
      yield* put(one, [run.last()])
      const commits = Journal.turn(run)
      yield* putAll(one, commits)
      yield* putAll(two, commits)
      for (const { record, state } of commits) yield* two.commit(record, state)
      assert.strictEqual((yield* recordsOf(two, "groups/again")).length, commits.length + 1)
    })
  },
  {
    name: "takes none of the records of a worker that is behind, or ahead (R-5)",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/behind")
      const other = Journal.begin("groups/behind", { workerId: "worker-2" })
      yield* put(one, [run.last()])
      const [mine, theirs] = [Journal.turn(run), Journal.turn(other)]
      const [first, second, third, ...rest] = mine
      if (first === undefined || second === undefined || third === undefined) return assert.fail("a turn is longer")
      yield* put(one, [first, second])
      // Some of its places are taken, and some are free.
      assert.strictEqual(yield* tagOf(putAll(two, theirs)), "ConcurrentAppendError")
      const [, another] = theirs
      if (another === undefined) return assert.fail("a turn is longer")
      assert.strictEqual(yield* tagOf(putAll(two, [first, another])), "ConcurrentAppendError")
      // What it follows is not there yet.
      assert.strictEqual(yield* tagOf(putAll(two, rest)), "ConcurrentAppendError")
      assert.strictEqual((yield* recordsOf(two, "groups/behind")).length, 3)
      yield* putAll(one, [third, ...rest])
      yield* loads(two, run.last())
    })
  },
  {
    name: "takes no record that does not follow the one before it in a list (R-5)",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/gap")
      yield* put(one, [run.last()])
      const commits = Journal.turn(run)
      const [first, second, third, fourth, ...rest] = commits
      if (first === undefined || second === undefined || third === undefined || fourth === undefined) {
        return assert.fail("a turn is longer")
      }
      for (const list of [
        [first, second, fourth],
        [first, second, fourth, third]
      ]) {
        assert.strictEqual(yield* tagOf(putAll(one, list)), "ConcurrentAppendError")
        // Nothing is stored of it, or what comes before the gap where each record is stored by itself.
        const stored = yield* recordsOf(two, "groups/gap")
        assert.ok(stored.length === 1 || stored.length === 3)
        assert.deepEqual(stored.slice(1), stored.length === 1 ? [] : [first.record, second.record])
      }
      yield* putAll(two, [first, second, third, fourth, ...rest])
      yield* loads(one, run.last())
    })
  },
  {
    name: "takes no records of several runs as those of one",
    body: Effect.fnUntraced(function* (one, two) {
      const [run, other] = [Journal.begin("groups/mine"), Journal.begin("groups/other")]
      yield* put(one, [run.last(), other.last()])
      const [mine] = Journal.turn(run)
      const [, theirs] = Journal.turn(other)
      if (mine === undefined || theirs === undefined) return assert.fail("a turn is longer")
      if (one.commitAll === undefined) return
      for (const [first, second] of [
        [mine, theirs],
        [theirs, mine]
      ] as const) {
        const refused = one.commitAll([first.record, second.record], [first.state, second.state])
        assert.strictEqual(yield* tagOf(refused), "StoreError")
        assert.strictEqual((yield* recordsOf(two, "groups/mine")).length, 1)
        assert.strictEqual((yield* recordsOf(two, "groups/other")).length, 1)
      }
    })
  },
  {
    name: "takes records of one of two workers that send several at once (R-5)",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/race")
      const other = Journal.begin("groups/race", { workerId: "worker-2" })
      yield* put(one, [run.last()])
      const ends = yield* Effect.all(
        [Effect.exit(putAll(one, Journal.turn(run))), Effect.exit(putAll(two, Journal.turn(other)))],
        { concurrency: "unbounded" }
      )
      assert.strictEqual(ends.filter((exit) => exit._tag === "Success").length, 1)
      const workers = (yield* recordsOf(one, "groups/race")).slice(1).map(({ workerId }) => workerId)
      assert.strictEqual(new Set(workers).size, 1)
    })
  },
  {
    name: "gives the state of a long run whose turns never end with a group (DR-5)",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/long")
      const first = run.last()
      yield* put(one, [first])
      let held: ReadonlyArray<Commit> = []
      for (let turn = 0; turn < 70; turn++) {
        const [start, prepared, asked, ...rest] = Journal.turn(run)
        if (start === undefined || prepared === undefined || asked === undefined) return assert.fail("a turn is longer")
        yield* putAll(one, [...held, start, prepared, asked])
        held = rest
      }
      yield* putAll(one, held)
      yield* loads(two, run.last())
    })
  }
]

/** Checks that an append stores all of its records or none. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import * as RunStore from "../../../RunStore.ts"
import type { Commit } from "../sampleJournal.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, loads, put, putAll, refused, tagOf } from "./runCheck.ts"

const recordsOf = (store: RunStore.RunStoreShape, runId: string) => Stream.runCollect(store.read(runId))

export const groups: ReadonlyArray<Check> = [
  {
    name: "stores the records of an append together, and returns each of them",
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
      const { state } = run.last()
      const heads = yield* two.list({ rootRunId: "groups/turns", status: ["completed"] })
      assert.deepEqual(
        heads.map((head) => [head.revision, head.status, head.turns]),
        [[records.length, state.status, state.turns.length]]
      )
    })
  },
  {
    name: "accepts the same records again, all at once or one by one",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/again")
      yield* put(one, [run.last()])
      const commits = Journal.turn(run)
      yield* putAll(one, commits)
      yield* putAll(two, commits)
      yield* put(two, commits)
      yield* putAll(one, [run.last()])
      const [first, ...rest] = commits
      assert.ok(first !== undefined)
      yield* putAll(two, rest)
      assert.strictEqual((yield* recordsOf(two, "groups/again")).length, commits.length + 1)
    })
  },
  {
    name: "accepts no record of a worker that is behind or ahead",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/behind")
      const other = Journal.begin("groups/behind", { workerId: "worker-2" })
      yield* put(one, [run.last()])
      const [mine, theirs] = [Journal.turn(run), Journal.turn(other)]
      const [first, second, third, ...rest] = mine
      if (first === undefined || second === undefined || third === undefined) return assert.fail("a turn is longer")
      yield* put(one, [first, second])
      // Some of its revisions are taken, and some are free.
      assert.strictEqual(yield* tagOf(putAll(two, theirs)), "ConcurrentAppendError")
      const [, another] = theirs
      if (another === undefined) return assert.fail("a turn is longer")
      assert.strictEqual(yield* tagOf(putAll(two, [first, another])), "ConcurrentAppendError")
      // Its predecessor is not stored yet.
      assert.strictEqual(yield* tagOf(putAll(two, rest)), "ConcurrentAppendError")
      assert.strictEqual((yield* recordsOf(two, "groups/behind")).length, 3)
      yield* putAll(one, [third, ...rest])
      yield* loads(two, run.last())
    })
  },
  {
    name: "refuses records that do not lead to their state one by one, and stores none of them",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/gap")
      const begun = run.last()
      yield* put(one, [begun])
      const commits = Journal.turn(run)
      const [first, second, third, fourth, ...rest] = commits
      if (first === undefined || second === undefined || third === undefined || fourth === undefined) {
        return assert.fail("a turn is longer")
      }
      const other = Journal.begin("groups/gap").commit("pause", [])
      for (const list of [
        [first, second, fourth],
        [first, third, second],
        [first, first],
        [first, { ...second, record: { ...second.record, runId: "groups/other" } }],
        [{ ...first, record: { ...first.record, runId: "groups/other" } }, second],
        [first, { ...second, state: third.state }],
        [first, { ...second, state: { ...second.state, runId: "groups/other" } }],
        [{ ...other, record: { ...other.record, revision: 0 }, state: { ...other.state, revision: 0 } }]
      ]) {
        const error = yield* refused(putAll(one, list))
        assert.ok(error._tag === "StoreError" && error.reason === "invalid", error.message)
        assert.deepEqual(yield* recordsOf(two, "groups/gap"), [begun.record])
        assert.deepEqual(yield* recordsOf(two, "groups/other"), [])
      }
      yield* putAll(two, [first, second, third, fourth, ...rest])
      yield* loads(one, run.last())
    })
  },
  {
    name: "creates a run with all of its records at once, or refuses all of them",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/created")
      const commits = [run.last(), ...Journal.turn(run), ...Journal.finish(run)]
      yield* putAll(one, commits)
      yield* loads(two, run.last())
      yield* putAll(two, commits)
      assert.deepEqual(Option.getOrThrow(yield* two.head("groups/created")), RunStore.headOf(run.last().state))
      const other = Journal.begin("groups/created", { workerId: "worker-2" })
      assert.strictEqual(yield* tagOf(putAll(two, [other.last(), ...Journal.turn(other)])), "RunExists")
      assert.deepEqual(
        yield* recordsOf(two, "groups/created"),
        commits.map(({ record }) => record)
      )
    })
  },
  {
    name: "gives the records after any revision, also one in the middle of an append",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/middle")
      const first = run.last()
      const turns = [Journal.turn(run), Journal.turn(run)]
      yield* putAll(one, [first])
      for (const commits of turns) yield* putAll(one, commits)
      const records = [first, ...turns.flat()].map(({ record }) => record)
      for (let from = 0; from <= records.length; from++) {
        assert.deepEqual(yield* Stream.runCollect(two.read("groups/middle", from)), records.slice(from))
        const followed = Stream.take(two.tail("groups/middle", from), records.length - from)
        assert.deepEqual(yield* Stream.runCollect(followed), records.slice(from))
      }
      // A worker whose revision is in the middle of another's append is behind.
      const other = Journal.begin("groups/middle", { workerId: "worker-2" })
      const theirs = Journal.turn(other)
      assert.strictEqual(yield* tagOf(putAll(two, theirs.slice(4))), "ConcurrentAppendError")
      assert.strictEqual((yield* recordsOf(two, "groups/middle")).length, records.length)
    })
  },
  {
    name: "accepts the records of one of two workers that append several at once",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("groups/race")
      const other = Journal.begin("groups/race", { workerId: "worker-2" })
      yield* put(one, [run.last()])
      const [mine, theirs] = [Journal.turn(run), Journal.turn(other)]
      for (const count of [1, 2, 3, 4]) {
        const before = (yield* recordsOf(one, "groups/race")).length
        const race = [
          putAll(one, mine.slice(before - 1, before)),
          putAll(two, theirs.slice(before - 1, before - 1 + count))
        ]
        const ends = yield* Effect.all(race.map(Effect.exit), { concurrency: "unbounded" })
        assert.strictEqual(ends.filter((exit) => exit._tag === "Success").length, 1)
        const added = (yield* recordsOf(one, "groups/race")).slice(before)
        assert.strictEqual(new Set(added.map(({ workerId }) => workerId)).size, 1)
        assert.strictEqual(added.length, ends[0]?._tag === "Success" ? 1 : count)
      }
    })
  },
  {
    name: "gives the state of a long run whose turns never end with a group",
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

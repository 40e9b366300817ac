/**
 * Checks: for each revision there is one commit, and for each run one owner.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound } from "../../../KernelError.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, loads, put, refused, tagOf } from "./runCheck.ts"

export const claims: ReadonlyArray<Check> = [
  {
    name: "refuses a record that does not follow, and writes nothing of it",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("claims/order")
      const first = run.last()
      const [second, third, fourth] = Journal.turn(run)
      assert.ok(second !== undefined && third !== undefined && fourth !== undefined)
      const early = yield* refused(put(one, [second]))
      assert.deepEqual(early, new ConcurrentAppendError({ runId: "claims/order", expectedSeq: 1, actualSeq: 0 }))
      yield* put(one, [first, second])
      const skipping = new ConcurrentAppendError({ runId: "claims/order", expectedSeq: 3, actualSeq: 2 })
      assert.deepEqual(yield* refused(put(one, [fourth])), skipping)
      assert.deepEqual(yield* refused(put(two, [fourth])), skipping)
      yield* loads(two, second)
      assert.equal((yield* Stream.runCollect(two.read("claims/order"))).length, 2)
      yield* put(two, [third, fourth])
      yield* loads(one, fourth)
    })
  },
  {
    name: "refuses another worker's record at a revision that is taken",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("claims/taken")
      yield* put(one, [run.last()])
      const [second, third] = Journal.turn(run)
      assert.ok(second !== undefined && third !== undefined)
      yield* put(one, [second])
      const zombie = { ...second, record: { ...second.record, workerId: "worker-2" } }
      const taken = new ConcurrentAppendError({ runId: "claims/taken", expectedSeq: 1, actualSeq: 2 })
      for (const store of [one, two]) assert.deepEqual(yield* refused(put(store, [zombie])), taken)
      yield* put(one, [third])
      const later = new ConcurrentAppendError({ runId: "claims/taken", expectedSeq: 1, actualSeq: 3 })
      assert.deepEqual(yield* refused(put(two, [zombie])), later)
      yield* loads(two, third)
    })
  },
  {
    name: "takes a record whose acknowledgement was lost for the success it was",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("claims/again")
      const first = run.last()
      const commits = [first, ...Journal.turn(run)]
      for (const commit of commits) {
        yield* put(one, [commit])
        yield* put(one, [commit])
        yield* put(two, [{ ...commit, record: structuredClone(commit.record) }])
      }
      yield* put(two, [first])
      yield* loads(one, run.last())
      assert.equal(Option.getOrUndefined(yield* two.head("claims/again"))?.revision, commits.length)
      assert.equal((yield* Stream.runCollect(two.read("claims/again"))).length, commits.length)
    })
  },
  {
    name: "refuses to create a run that is there, and to continue a run that is not there",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("claims/exists")
      yield* put(one, [run.last()])
      const other = Journal.begin("claims/exists", { input: "something else" }).last()
      for (const store of [one, two]) {
        const error = yield* refused(put(store, [other]))
        assert.deepEqual(error, new RunExists({ runId: "claims/exists" }))
      }
      yield* loads(two, run.last())
      const late = Journal.turn(Journal.begin("claims/late"))[0]
      assert.ok(late !== undefined)
      const missing = new ConcurrentAppendError({ runId: "claims/late", expectedSeq: 1, actualSeq: 0 })
      assert.deepEqual(yield* refused(put(one, [late])), missing)
      assert.deepEqual(yield* one.head("claims/late"), Option.none())
    })
  },
  {
    name: "lets one of two workers that commit at once go on, at every revision",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("claims/race")
      const begun = run.last()
      const beginnings = yield* Effect.all(
        [one, two].map((store, index) =>
          Effect.exit(store.append([{ ...begun.record, workerId: `worker-${index}` }], begun.state))
        ),
        { concurrency: "unbounded" }
      )
      assert.equal(beginnings.filter((exit) => exit._tag === "Success").length, 1)
      /** Who of two was faster; the other is told so. */
      const race = Effect.fnUntraced(function* ({ record, state }: Journal.Commit) {
        const told = yield* Effect.all(
          [one, two].map((store, index) => {
            const workerId = `worker-${index}`
            return Effect.match(store.append([{ ...record, workerId }], state), {
              onFailure: ({ _tag }) => _tag,
              onSuccess: () => workerId
            })
          }),
          { concurrency: "unbounded" }
        )
        const winners = told.filter((said) => said !== "ConcurrentAppendError")
        assert.equal(winners.length, 1, told.join(" and "))
        return winners
      })
      const commits = [...Journal.turn(run), ...Journal.turn(run), ...Journal.finish(run)]
      const winners = (yield* Effect.forEach(commits, race)).flat()
      const records = yield* Stream.runCollect(one.read("claims/race", 1))
      assert.deepEqual(
        records.map(({ workerId }) => workerId),
        winners
      )
      assert.deepEqual(yield* Stream.runCollect(two.read("claims/race", 1)), records)
      yield* loads(two, run.last())
      // What ends a run is stored with more than what comes before.
      for (const runId of ["claims/race/1", "claims/race/2", "claims/race/3", "claims/race/4"]) {
        const short = Journal.begin(runId)
        yield* put(one, [short.last(), ...Journal.finish(short).slice(0, -1)])
        yield* race(short.last())
      }
    })
  },
  {
    name: "holds a run for one worker until the lease ends or is given back",
    body: Effect.fnUntraced(function* (one, two) {
      const runId = "claims/lease"
      const lease = (workerId: string, expiresAt: number) => ({ workerId, expiresAt })
      const holder = (store: typeof one) => Effect.map(store.head(runId), (head) => Option.getOrThrow(head).lease)
      assert.deepEqual(yield* refused(one.acquire(runId, lease("a", 100), 0)), new RunNotFound({ runId }))
      yield* put(one, [Journal.begin(runId).last()])
      assert.equal(yield* holder(two), undefined)
      yield* one.acquire(runId, lease("a", 100), 0)
      assert.deepEqual(yield* holder(two), lease("a", 100))
      const busy = new RunBusy({ runId, workerId: "a", expiresAt: 100 })
      assert.deepEqual(yield* refused(two.acquire(runId, lease("b", 200), 99)), busy)
      yield* two.release(runId, "b")
      yield* one.acquire(runId, lease("a", 150), 99)
      assert.equal(yield* tagOf(two.acquire(runId, lease("b", 200), 149)), "RunBusy")
      yield* two.acquire(runId, lease("b", 200), 150)
      assert.equal(yield* tagOf(one.acquire(runId, lease("a", 300), 150)), "RunBusy")
      yield* one.release(runId, "a")
      assert.deepEqual(yield* holder(one), lease("b", 200))
      yield* two.release(runId, "b")
      assert.equal(yield* holder(one), undefined)
      yield* one.acquire(runId, lease("a\u0000\ud800%", 300), 160)
      assert.deepEqual(yield* holder(two), lease("a\u0000\ud800%", 300))
    })
  },
  {
    name: "gives a lease to one of many who ask at once",
    body: Effect.fnUntraced(function* (one, two) {
      const runId = "claims/leases"
      yield* put(one, [Journal.begin(runId).last()])
      for (let round = 0; round < 5; round++) {
        const now = round * 100
        const exits = yield* Effect.all(
          [one, two, one, two].map((store, index) =>
            Effect.exit(store.acquire(runId, { workerId: `${round}-${index}`, expiresAt: now + 100 }, now))
          ),
          { concurrency: "unbounded" }
        )
        assert.equal(exits.filter((exit) => exit._tag === "Success").length, 1)
        const head = Option.getOrThrow(yield* two.head(runId))
        assert.equal(head.lease?.workerId, `${round}-${exits.findIndex((exit) => exit._tag === "Success")}`)
      }
    })
  },
  {
    name: "stops a worker that wakes up after its run was resumed by another",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("claims/zombie")
      yield* put(one, [run.last()])
      yield* one.acquire("claims/zombie", { workerId: "worker-1", expiresAt: 100 }, 0)
      const asleep = Journal.begin("claims/zombie")
      const next = asleep.commit("phase", [{ type: "turn_started", turnId: "claims/zombie:t1" }])
      yield* two.acquire("claims/zombie", { workerId: "worker-2", expiresAt: 300 }, 200)
      const resumed = run.commit("resume", [], { resumed: true }, { workerId: "worker-2" })
      yield* put(two, [resumed])
      const error = yield* refused(put(one, [next]))
      assert.deepEqual(error, new ConcurrentAppendError({ runId: "claims/zombie", expectedSeq: 1, actualSeq: 2 }))
      yield* loads(one, resumed)
    })
  }
]

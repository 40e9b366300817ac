/** Checks that each revision has one commit, and each run one owner. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as assert from "../assert.ts"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound } from "../../../KernelError.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, loads, put, refused, tagOf } from "../sampleJournal.ts"

/** The interval at which a check looks for an expired lease. */
const poll = Schedule.spaced("5 millis")

export const claims: ReadonlyArray<Check> = [
  {
    name: "emits the runs that are offered through another store, where it emits offers",
    body: Effect.fnUntraced(function* (one, two) {
      const runIds = ["claims/offered", "claims/OFFERED %o.é"]
      for (const runId of runIds) yield* put(one, [Journal.begin(runId).last()])
      if (two.offers === undefined) return
      const seen = new Set<string>()
      yield* Effect.forkScoped(Stream.runForEach(two.offers, (runId) => Effect.sync(() => seen.add(runId))))
      // It may take a while until it listens.
      const offering = Effect.forEach(runIds, (runId) => one.acquire(runId, { workerId: "worker-1", lease: 0 }))
      yield* Effect.repeat(Effect.andThen(offering, Effect.sleep("5 millis")), {
        until: () => runIds.every((runId) => seen.has(runId))
      })
    }, Effect.scoped)
  },
  {
    name: "refuses a record that does not follow, and writes nothing of it",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("claims/order")
      const first = run.last()
      const [second, third, fourth] = Journal.turn(run)
      assert.ok(second !== undefined && third !== undefined && fourth !== undefined)
      const early = yield* refused(put(one, [second]))
      assert.deepEqual(early, new ConcurrentAppendError({ runId: "claims/order", expected: 1, actual: 0 }))
      yield* put(one, [first, second])
      const skipping = new ConcurrentAppendError({ runId: "claims/order", expected: 3, actual: 2 })
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
      const taken = new ConcurrentAppendError({ runId: "claims/taken", expected: 1, actual: 2 })
      for (const store of [one, two]) assert.deepEqual(yield* refused(put(store, [zombie])), taken)
      yield* put(one, [third])
      const later = new ConcurrentAppendError({ runId: "claims/taken", expected: 1, actual: 3 })
      assert.deepEqual(yield* refused(put(two, [zombie])), later)
      yield* loads(two, third)
    })
  },
  {
    name: "accepts a record again whose acknowledgement was lost",
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
    name: "refuses to create a run that exists, and to continue a run that does not exist",
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
      const missing = new ConcurrentAppendError({ runId: "claims/late", expected: 1, actual: 0 })
      assert.deepEqual(yield* refused(put(one, [late])), missing)
      assert.deepEqual(yield* one.head("claims/late"), Option.none())
    })
  },
  {
    name: "lets one of two workers that append at once continue, at every revision",
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
      /** Returns the worker that was faster. The other one must fail. */
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
      // The last record of a run is stored with more data than the others.
      for (const runId of ["claims/race/1", "claims/race/2", "claims/race/3", "claims/race/4"]) {
        const short = Journal.begin(runId)
        yield* put(one, [short.last(), ...Journal.finish(short).slice(0, -1)])
        yield* race(short.last())
      }
    })
  },
  {
    name: "holds a run for one worker until the lease expires or is released",
    body: Effect.fnUntraced(function* (one, two) {
      const runId = "claims/lease"
      const minute = (workerId: string) => ({ workerId, lease: "1 minute" as const })
      const leaseIn = (store: typeof one) => Effect.map(store.head(runId), (head) => Option.getOrThrow(head).lease)
      const holder = (store: typeof one) => Effect.map(leaseIn(store), (lease) => lease?.workerId)
      assert.deepEqual(yield* refused(one.acquire(runId, minute("a"))), new RunNotFound({ runId }))
      yield* put(one, [Journal.begin(runId).last()])
      assert.equal(yield* leaseIn(two), undefined)
      yield* one.acquire(runId, minute("a"))
      const held = yield* leaseIn(two)
      assert.deepEqual([held?.workerId, held?.isLive], ["a", true])
      const busy = new RunBusy({ runId, workerId: "a", expiresAt: held?.expiresAt ?? 0 })
      assert.deepEqual(yield* refused(two.acquire(runId, minute("b"))), busy)
      yield* two.release(runId, "b")
      yield* one.acquire(runId, { workerId: "a", lease: "30 millis" })
      const renewed = yield* leaseIn(two)
      assert.ok(held?.since !== undefined && held.since <= held.expiresAt - 59_999)
      assert.equal(renewed?.since, held.since)
      // Another worker takes the lease once it has expired, and then only that worker renews it.
      yield* Effect.retry(two.acquire(runId, minute("b")), { while: ({ _tag }) => _tag === "RunBusy", schedule: poll })
      assert.equal(yield* tagOf(one.acquire(runId, minute("a"))), "RunBusy")
      assert.ok(((yield* leaseIn(one))?.since ?? 0) > held.since)
      yield* one.release(runId, "a")
      assert.equal(yield* holder(one), "b")
      yield* two.acquire(runId, { workerId: "b", lease: 0 })
      assert.deepEqual(yield* leaseIn(one), { workerId: "b", expiresAt: 0, isLive: false })
      yield* one.acquire(runId, minute("a"))
      yield* one.release(runId, "a")
      assert.equal(yield* leaseIn(two), undefined)
      yield* one.acquire(runId, minute("a\u0000\ud800%"))
      assert.equal(yield* holder(two), "a\u0000\ud800%")
    })
  },
  {
    name: "uses its own clock: a worker whose clock is a day ahead or behind takes no run that is held",
    body: Effect.fnUntraced(function* (one, two) {
      const runId = "claims/clocks"
      const clock = Clock.Clock.defaultValue()
      yield* put(one, [Journal.begin(runId, { agent: "claims-clocks" }).last()])
      for (const days of [1, -1]) {
        const millis = () => clock.currentTimeMillisUnsafe() + days * 86_400_000
        const skewed: Clock.Clock = Object.assign(Object.create(clock), {
          currentTimeMillisUnsafe: millis,
          currentTimeMillis: Effect.sync(millis)
        })
        const there = Effect.provideService(Clock.Clock, skewed)
        const free = Effect.map(two.list({ agent: "claims-clocks", unleased: true }), (heads) => heads.length)
        yield* one.acquire(runId, { workerId: "a", lease: "1 minute" })
        assert.equal(yield* tagOf(there(two.acquire(runId, { workerId: "b", lease: "1 minute" }))), "RunBusy")
        assert.equal(yield* there(free), 0)
        yield* one.release(runId, "a")
        yield* there(two.acquire(runId, { workerId: "b", lease: "1 minute" }))
        assert.equal(yield* tagOf(one.acquire(runId, { workerId: "a", lease: "1 minute" })), "RunBusy")
        assert.equal(yield* free, 0)
        yield* two.release(runId, "b")
      }
    })
  },
  {
    name: "refuses a lease that is endless or no time",
    body: Effect.fnUntraced(function* (one) {
      const runId = "claims/endless"
      yield* put(one, [Journal.begin(runId).last()])
      for (const lease of [Infinity, -1, NaN, "-1 second", "Infinity"] as const) {
        const error = yield* refused(one.acquire(runId, { workerId: "a", lease }))
        assert.deepEqual([error._tag, "reason" in error ? error.reason : ""], ["StoreError", "invalid"])
      }
      assert.equal(Option.getOrThrow(yield* one.head(runId)).lease, undefined)
    })
  },
  {
    name: "refuses the claim of a worker that saw the run at another revision or with another status",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("claims/seen")
      const runId = "claims/seen"
      yield* put(one, [run.last()])
      const seen = Option.getOrThrow(yield* two.head(runId))
      const claim = (workerId: string) => ({ workerId, lease: "1 minute" as const, seen })
      yield* two.acquire(runId, claim("a"))
      yield* two.release(runId, "a")
      const end = Journal.finish(run)
      yield* put(one, end)
      const moved = new ConcurrentAppendError({ runId, expected: 1, actual: 1 + end.length })
      for (const store of [one, two]) assert.deepEqual(yield* refused(store.acquire(runId, claim("b"))), moved)
      const now = Option.getOrThrow(yield* one.head(runId))
      assert.equal(now.lease, undefined)
      const guess = { ...claim("b"), seen: { ...now, status: seen.status } }
      assert.equal(yield* tagOf(two.acquire(runId, guess)), "ConcurrentAppendError")
      yield* two.acquire(runId, { ...claim("b"), seen: now })
      assert.equal(yield* tagOf(one.acquire(runId, { workerId: "c", lease: "1 minute", seen: now })), "RunBusy")
    })
  },
  {
    name: "gives a lease to one of many concurrent claims",
    body: Effect.fnUntraced(function* (one, two) {
      const runId = "claims/leases"
      yield* put(one, [Journal.begin(runId).last()])
      for (let round = 0; round < 5; round++) {
        const exits = yield* Effect.all(
          [one, two, one, two].map((store, index) =>
            Effect.exit(store.acquire(runId, { workerId: `${round}-${index}`, lease: "1 minute" }))
          ),
          { concurrency: "unbounded" }
        )
        assert.equal(exits.filter((exit) => exit._tag === "Success").length, 1)
        const head = Option.getOrThrow(yield* two.head(runId))
        const winner = `${round}-${exits.findIndex((exit) => exit._tag === "Success")}`
        assert.equal(head.lease?.workerId, winner)
        yield* one.release(runId, winner)
      }
    })
  },
  {
    name: "stops a worker that wakes up after its run was resumed by another",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("claims/zombie")
      yield* put(one, [run.last()])
      yield* one.acquire("claims/zombie", { workerId: "worker-1", lease: 0 })
      const asleep = Journal.begin("claims/zombie")
      const next = asleep.commit("phase", [{ type: "turn_started", turnId: "claims/zombie:t1" }])
      yield* two.acquire("claims/zombie", { workerId: "worker-2", lease: "1 minute" })
      const resumed = run.commit("resume", [], { resumed: true }, { workerId: "worker-2" })
      yield* put(two, [resumed])
      const error = yield* refused(put(one, [next]))
      assert.deepEqual(error, new ConcurrentAppendError({ runId: "claims/zombie", expected: 1, actual: 2 }))
      yield* loads(one, resumed)
    })
  }
]

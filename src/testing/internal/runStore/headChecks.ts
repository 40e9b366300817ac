/** Checks that runs can be found and followed without reading their journals. */

import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as assert from "../assert.ts"
import type { Caller } from "../../../Caller.ts"
import * as Contents from "../../../Content.ts"
import type { Content } from "../../../Content.ts"
import type { RunRecord } from "../../../RunState.ts"
import * as RunStore from "../../../RunStore.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, put } from "../sampleJournal.ts"

export const heads: ReadonlyArray<Check> = [
  {
    name: "gives a head that agrees with the state, at every revision",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("heads/each", { agent: "writer", rootRunId: "heads/root", parentRunId: "heads/root" })
      const commits = [
        run.last(),
        run.commit("pause", [{ type: "paused", reason: "wait", metadata: { "a b": [null] } }]),
        run.commit("resume", [], { resumed: true }),
        run.commit("phase", [{ type: "run_failed", error: { tag: "StoreError", message: "full" } }]),
        run.commit("resume", [])
      ]
      for (const commit of [...commits, ...Journal.turn(run), ...Journal.finish(run)]) {
        yield* put(one, [commit])
        const head = Option.some(RunStore.headOf(commit.state))
        assert.deepEqual(yield* one.head("heads/each"), head)
        assert.deepEqual(yield* two.head("heads/each"), head)
      }
    })
  },
  {
    name: "lists the runs that pass a filter, newest first",
    body: Effect.fnUntraced(function* (one, two) {
      const agent = "heads-list"
      const begin = (id: string, createdAt: number, more: Journal.Options = {}) =>
        Journal.begin(`heads/list/${id}`, { agent, createdAt, ...more })
      const root = begin("root", 100)
      const child = begin("child", 200, {
        rootRunId: "heads/list/root",
        parentRunId: "heads/list/root",
        agent: "other"
      })
      const done = begin("done", 300)
      const asked = begin("asked", 300)
      yield* put(one, [root.last(), ...Journal.turn(root)])
      yield* put(one, [child.last(), child.commit("pause", [{ type: "paused", reason: "wait", metadata: null }])])
      yield* put(one, [done.last(), ...Journal.finish(done)])
      yield* put(two, [
        asked.last(),
        asked.commit("phase", [{ type: "run_failed", error: { tag: "ProviderError", message: "" } }])
      ])
      const ids = (filter: RunStore.RunFilter) =>
        Effect.map(two.list(filter), (found) =>
          found
            .map(({ runId }) => runId)
            .filter((id) => id.startsWith("heads/list/"))
            .map((id) => id.slice(11))
        )
      assert.deepEqual(yield* ids({ agent }), ["asked", "done", "root"])
      assert.deepEqual(yield* ids({ agent: "other" }), ["child"])
      assert.deepEqual(yield* ids({ agent, limit: 2 }), ["asked", "done"])
      for (const none of [0, -1, 0.5, NaN]) assert.deepEqual(yield* ids({ agent, limit: none }), [])
      for (const all of [3.5, Infinity]) assert.deepEqual(yield* ids({ agent, limit: all }), ["asked", "done", "root"])
      assert.deepEqual(yield* ids({ rootRunId: "heads/list/root" }), ["child", "root"])
      assert.deepEqual(yield* ids({ rootRunId: "heads/list/root", roots: true }), ["root"])
      assert.deepEqual(yield* ids({ status: ["waiting", "failed"] }), ["asked", "child"])
      assert.deepEqual(yield* ids({ agent, status: ["completed"] }), ["done"])
      assert.deepEqual(yield* ids({ agent, status: [] }), [])
      assert.deepEqual(yield* ids({ agent, updatedBefore: 301 }), ["root"])
      yield* one.acquire("heads/list/root", { workerId: "w", lease: "1 minute" })
      assert.deepEqual(yield* ids({ agent, unleased: true }), ["asked", "done"])
      yield* one.acquire("heads/list/root", { workerId: "w", lease: 0 })
      assert.deepEqual(yield* ids({ agent, unleased: true }), ["asked", "done", "root"])
      assert.deepEqual(yield* ids({ agent }), ["asked", "done", "root"])
      const [first] = yield* two.list({ agent, limit: 1 })
      assert.deepEqual(first, RunStore.headOf(asked.last().state))
    })
  },
  {
    name: "lists the runs whose ids begin with a text, whatever the ids hold",
    body: Effect.fnUntraced(function* (one, two) {
      const long = "n".repeat(600)
      const short = ["a~1", "a~2", "a~2/task", "A~1", "ab~1", "a", "con", "a%~1", "a%7E~1"]
      const odd = ["\u00e9~1", "\u{1f600}~1", "a\uffff"]
      const ids = [...short, ...odd, `${long}~1`, `${long}~2`, `${long}o~1`, `${long.slice(1)}~1`]
      const place = "heads-prefix/"
      for (const [index, id] of ids.entries()) {
        yield* put(one, [Journal.begin(place + id, { agent: "heads-prefix", createdAt: index }).last()])
      }
      yield* put(one, [Journal.begin("con", { agent: "heads-prefix", createdAt: 0 }).last()])
      const begun = (prefix: string, filter: RunStore.RunFilter = {}) =>
        Effect.map(two.list({ order: "oldest", ...filter, prefix }), (found) => found.map(({ runId }) => runId))
      const some = ["a~", "a", "a~2", "A", "a%", "a%7E~", "\u00e9", "\u{1f600}", "\ud83d", "a\uffff", "none"]
      const prefixes = [...some, long, `${long}~`, `${long}~1`, long.slice(0, 40)]
      for (const prefix of prefixes) {
        const wanted = ids.filter((id) => id.startsWith(prefix)).map((id) => place + id)
        assert.deepEqual(yield* begun(place + prefix), wanted)
      }
      assert.deepEqual(yield* begun("co", { agent: "heads-prefix" }), ["con"])
      assert.deepEqual(yield* begun("con", { agent: "heads-prefix" }), ["con"])
      assert.equal((yield* begun("", { agent: "heads-prefix" })).length, ids.length + 1)
      assert.deepEqual(yield* begun(`${place}a~`, { limit: 1 }), [`${place}a~1`])
      const [last] = yield* two.list({ prefix: `${place}a~`, order: "oldest", limit: 1 })
      assert.deepEqual(yield* begun(`${place}a~`, { after: last }), [`${place}a~2`, `${place}a~2/task`])
      assert.deepEqual(yield* begun(`${place}a~`, { order: "newest", limit: 2 }), [`${place}a~2/task`, `${place}a~2`])
    })
  },
  {
    name: "lists the runs of a caller, those of a tenant, and those that have all of some labels",
    body: Effect.fnUntraced(function* (one, two) {
      const agent = "heads-tenants"
      const begin = Effect.fnUntraced(function* (id: string, caller: Caller) {
        const run = Journal.begin(`heads/tenants/${id}`, { agent, caller })
        yield* put(one, [run.last()])
        return run
      })
      const whole = {
        id: "ada",
        tenant: "acme",
        roles: ["boss"],
        labels: { team: "a=b", "cost/centre": "\u0000%'\ud83d" }
      }
      const full = yield* begin("full", whole)
      yield* begin("same", { id: "bob", tenant: "acme", labels: { team: "a=b" } })
      yield* begin("other", { id: "eva", tenant: "acm\u0000e", labels: { team: "a" } })
      yield* begin("none", { id: "ada" })
      yield* put(one, [Journal.begin("heads/tenants/nobody", { agent }).last()])
      const ids = (filter: RunStore.RunFilter) =>
        Effect.map(two.list({ agent, order: "oldest", ...filter }), (found) =>
          found.map(({ runId }) => runId.slice(14))
        )
      assert.deepEqual(yield* ids({}), ["full", "nobody", "none", "other", "same"])
      assert.deepEqual(yield* ids({ caller: "ada" }), ["full", "none"])
      assert.deepEqual(yield* ids({ caller: "ada", tenant: "acme" }), ["full"])
      assert.deepEqual(yield* ids({ caller: "" }), [])
      assert.deepEqual(yield* ids({ tenant: "acme" }), ["full", "same"])
      assert.deepEqual(yield* ids({ tenant: "acm\u0000e" }), ["other"])
      assert.deepEqual(yield* ids({ tenant: "" }), [])
      assert.deepEqual(yield* ids({ labels: {} }), ["full", "nobody", "none", "other", "same"])
      assert.deepEqual(yield* ids({ labels: { team: "a=b" } }), ["full", "same"])
      assert.deepEqual(yield* ids({ labels: { team: "a" } }), ["other"])
      assert.deepEqual(yield* ids({ labels: { "team=a": "b" } }), [])
      assert.deepEqual(yield* ids({ tenant: "acme", labels: whole.labels }), ["full"])
      assert.deepEqual(yield* ids({ tenant: "acme", labels: { team: "a" } }), [])
      assert.deepEqual(yield* ids({ labels: { team: "a=b" }, order: "newest", limit: 1 }), ["full"])
      const [first] = yield* two.list({ labels: whole.labels })
      assert.deepEqual(first, RunStore.headOf(full.last().state))
      yield* two.remove(["heads/tenants/full"])
      yield* begin("full", { id: "ada" })
      assert.deepEqual(yield* ids({ tenant: "acme" }), ["same"])
      assert.deepEqual(yield* ids({ labels: { team: "a=b" } }), ["same"])
    })
  },
  {
    name: "gives the status of each run, and lists runs by status",
    body: Effect.fnUntraced(function* (one, two) {
      const agent = "heads-status"
      const begin = Effect.fnUntraced(function* (id: string, event?: Journal.Draft) {
        const run = Journal.begin(`heads/status/${id}`, { agent })
        yield* put(one, [run.last(), ...(event === undefined ? [] : [run.commit("phase", [event])])])
      })
      const hold = (id: string, lease: Duration.Input) =>
        one.acquire(`heads/status/${id}`, { workerId: `worker of ${id}`, lease })
      for (const id of ["free", "queued", "running", "interrupted"]) yield* begin(id)
      yield* begin("waiting", { type: "paused", reason: "approval_required", metadata: null })
      yield* begin("cancelled", { type: "run_cancelled", reason: "wrong", by: "Ada", inFlight: [] })
      yield* begin("completed", { type: "run_completed", source: "model_done" })
      yield* begin("failed", { type: "run_failed", error: { tag: "StoreError", message: "full" } })
      const limit = { source: "max_turns", reason: "Answer in JSON." } as const
      yield* begin("no_answer", { type: "run_completed", ...limit })
      yield* begin("poisoned", { type: "run_failed", error: { tag: "RunPoisoned", message: "it crashed" } })
      yield* hold("queued", 0)
      yield* hold("running", "1 hour")
      yield* hold("interrupted", "1 millis")
      yield* Effect.repeat(two.head("heads/status/interrupted"), {
        until: (head) => Option.getOrUndefined(head)?.lease?.isLive !== true,
        schedule: Schedule.spaced("5 millis")
      })
      for (const word of RunStore.statusWords) {
        const found = yield* two.list({ agent, status: [word] })
        assert.deepEqual(
          found.map(({ runId, status }) => [runId.slice(13), status.type]),
          word === "running"
            ? [
                ["free", word],
                ["running", word]
              ]
            : word === "failed"
              ? [
                  ["failed", word],
                  ["poisoned", word]
                ]
              : [[word, word === "poisoned" ? "failed" : word]]
        )
      }
      assert.equal((yield* two.list({ agent, status: ["queued", "no_answer", "waiting"] })).length, 3)
      assert.equal((yield* two.list({ agent, status: ["failed", "poisoned"] })).length, 2)
      const statusOf = (id: string) =>
        Effect.map(two.head(`heads/status/${id}`), (head) => Option.getOrUndefined(head)?.status)
      const phase = "run_started"
      assert.deepEqual(yield* statusOf("free"), { type: "running", phase })
      const running = Option.getOrThrow(yield* two.head("heads/status/running"))
      const since = (running.lease?.expiresAt ?? 0) - 3_600_000
      assert.deepEqual(running.status, { type: "running", phase, by: "worker of running", since: running.lease?.since })
      assert.ok(Math.abs((running.lease?.since ?? 0) - since) <= 1)
      assert.deepEqual(yield* statusOf("interrupted"), { type: "interrupted", phase, by: "worker of interrupted" })
      const cancelled = { type: "cancelled", phase, reason: "wrong", by: "Ada", createdAt: 1_001 }
      assert.deepEqual(yield* statusOf("cancelled"), cancelled)
    })
  },
  {
    name: "ends the wait for a run once it is cancelled, by this process or another",
    body: Effect.fnUntraced(function* (one, two) {
      for (const canceller of [one, two]) {
        const runId = canceller === one ? "heads/cancelled/one" : "heads/cancelled/two"
        const run = Journal.begin(runId)
        const other = Journal.begin(`${runId}/other`)
        yield* put(one, [run.last(), ...Journal.turn(run)])
        yield* put(one, [other.last()])
        const wait = (id: string) =>
          Effect.forkChild(Effect.provideService(one.cancelled(id), Clock.Clock, Clock.Clock.defaultValue()), {
            startImmediately: true
          })
        const waiting = yield* wait(runId)
        const left = yield* wait(`${runId}/other`)
        yield* put(canceller, [run.commit("pause", [{ type: "run_cancelled", inFlight: [] }])])
        yield* Fiber.join(waiting)
        yield* one.cancelled(runId)
        assert.equal(left.pollUnsafe(), undefined)
        yield* Fiber.interrupt(left)
      }
    })
  },
  {
    name: "lists the oldest first on request, page by page, even if runs change in between",
    body: Effect.fnUntraced(function* (one, two) {
      const agent = "heads-pages"
      const begin = (id: string, createdAt: number) => Journal.begin(`heads/pages/${id}`, { agent, createdAt })
      const last = begin("e", 9)
      for (const run of [last, begin("c", 5), begin("a", 5), begin("d", 7), begin("b", 5)])
        yield* put(one, [run.last()])
      const ids = (filter: RunStore.RunFilter) =>
        Effect.map(two.list({ agent, ...filter }), (found) => found.map(({ runId }) => runId.slice(12)).join(""))
      assert.equal(yield* ids({ order: "oldest" }), "abcde")
      assert.equal(yield* ids({ order: "newest" }), "edabc")
      assert.equal(yield* ids({ order: "oldest", limit: 2 }), "ab")
      const b = { createdAt: 5, runId: "heads/pages/b" }
      assert.equal(yield* ids({ order: "oldest", after: b }), "cde")
      assert.equal(yield* ids({ order: "oldest", after: b, limit: 2 }), "cd")
      assert.equal(yield* ids({ after: b }), "c")
      assert.equal(yield* ids({ after: { createdAt: 7, runId: "heads/pages/d" }, limit: 2 }), "ab")
      yield* one.remove(["heads/pages/b"])
      assert.equal(yield* ids({ order: "oldest", after: b }), "cde")
      // A run that does not pass the filter takes no place on a page.
      yield* one.acquire("heads/pages/c", { workerId: "w", lease: "1 minute" })
      yield* put(one, Journal.finish(last))
      assert.equal(yield* ids({ order: "oldest", unleased: true, limit: 2 }), "ad")
      assert.equal(yield* ids({ order: "oldest", after: b, unleased: true, status: ["running"], limit: 2 }), "d")
      // Runs of several statuses are in one order.
      const both = { status: ["running", "completed", "failed"], limit: 2 } as const
      assert.equal(yield* ids(both), "ed")
      assert.equal(yield* ids({ ...both, after: { createdAt: 7, runId: "heads/pages/d" } }), "ac")
      assert.equal(yield* ids({ ...both, order: "oldest", after: b }), "cd")
    })
  },
  {
    name: "lists waiting runs by the earliest deadline of their questions, page by page",
    body: Effect.fnUntraced(function* (one, two) {
      const agent = "heads-due"
      const asked = (id: string, ...deadlines: ReadonlyArray<number | undefined>) => {
        const run = Journal.begin(`heads/due/${id}`, { agent, createdAt: 1 })
        const questions = deadlines.map((answerBy) => (answerBy === undefined ? {} : { answerBy }))
        return [
          run.last(),
          run.commit("pause", [{ type: "paused", reason: "asked", metadata: { questions } }])
        ] as const
      }
      for (const id of ["b", "a"]) yield* put(one, asked(id, 50))
      yield* put(one, asked("c", undefined, 90.5, 20))
      yield* put(one, asked("d", undefined))
      yield* put(one, asked("e", 1e300))
      const moved = Journal.begin("heads/due/f", { agent, createdAt: 1 })
      const pause = (answerBy: number) =>
        moved.commit("pause", [{ type: "paused", reason: "asked", metadata: { questions: [{ answerBy }] } }])
      yield* put(one, [moved.last(), pause(10)])
      const due = (filter: RunStore.RunFilter = {}) => two.list({ agent, order: "due", ...filter })
      const ids = (heads: ReadonlyArray<RunStore.RunHead>) => heads.map(({ runId }) => runId.slice(10)).join("")
      assert.equal(ids(yield* due()), "fcabe")
      yield* put(one, [pause(70)])
      assert.equal(ids(yield* due()), "cabfe")
      const page = yield* due({ limit: 2, status: ["waiting"], roots: true })
      assert.equal(ids(page), "ca")
      assert.equal(ids(yield* due({ after: page[1] })), "bfe")
      assert.equal(ids(yield* due({ after: page[1], prefix: "heads/due/", limit: 2 })), "bf")
      assert.equal(ids(yield* due({ after: (yield* due()).at(-1) })), "")
      yield* put(one, [moved.commit("resume", [], { resumed: true })])
      assert.equal(ids(yield* due()), "cabe")
    })
  },
  {
    name: "finds runs by the words of their questions and answers",
    body: Effect.fnUntraced(function* (one, two) {
      const agent = "heads-search"
      const ask = Effect.fnUntraced(function* (id: string, input: string, answer: string) {
        const run = Journal.begin(`heads/${id}`, { agent, input, createdAt: 1 })
        yield* put(one, [run.last(), ...Journal.turn(run, { text: "secret thought" }), ...Journal.finish(run, answer)])
      })
      yield* ask("a", "Wie spät ist es in Ōsaka?", "Es ist 100% Teezeit\u0000.")
      yield* ask("b", "What about O'Brien's \"tea\"?\n\\_/", "Tea is served.")
      const ids = (search: string) =>
        Effect.map(two.list({ agent, search }), (found) => found.map(({ runId }) => runId.slice(6)))
      assert.deepEqual(yield* ids(""), ["a", "b"])
      assert.deepEqual(yield* ids("TEE"), ["a"])
      assert.deepEqual(yield* ids("tea"), ["b"])
      assert.deepEqual(yield* ids("ōsaka SPÄT teezeit"), ["a"])
      assert.deepEqual(yield* ids("100%"), ["a"])
      assert.deepEqual(yield* ids("o'brien's \"tea\" \\_/ served"), ["b"])
      for (const nothing of ["coffee", "tea tee", "%", "_", "secret", "'; DROP TABLE kernai_runs;--"]) {
        const found = yield* ids(nothing)
        assert.deepEqual(found, nothing === "%" ? ["a"] : nothing === "_" ? ["b"] : [])
      }
      const [first, ...others] = yield* two.list({ agent, search: "is", limit: 1 })
      assert.deepEqual([first?.runId, others], ["heads/a", []])
      yield* ask("c", `${"long ".repeat(14_000)}question`, "A short answer.")
      assert.deepEqual(yield* ids("short long"), ["c"])
    })
  },
  {
    name: "finds runs that wait, failed or were answered by the results of their calls, each by its beginning",
    body: Effect.fnUntraced(function* (one, two) {
      const agent = "heads-search-results"
      const call = Effect.fnUntraced(function* (id: string, output: ReadonlyArray<Content>) {
        const run = Journal.begin(`heads/${id}`, { agent, createdAt: 1 })
        yield* put(one, [run.last(), ...Journal.turn(run, { output })])
        return run
      })
      const ids = (search: string) =>
        Effect.map(two.list({ agent, search }), (found) => found.map(({ runId }) => runId.slice(6)))
      const waiting = yield* call("a", [Contents.text("Parcel 4711 is in Zürich.")])
      yield* put(one, [waiting.commit("pause", [{ type: "paused", reason: "asked", metadata: {} }])])
      const failed = yield* call("b", [Contents.data({ parcel: 4712 })])
      const error = { tag: "ProviderError", message: "no", fields: { reason: "timeout" } }
      yield* put(one, [failed.commit("phase", [{ type: "run_failed", error }])])
      const answered = yield* call("c", [Contents.text(`parcel ${"and ".repeat(300)}4713`)])
      yield* put(one, Journal.finish(answered, "It is lost."))
      assert.deepEqual(yield* ids("PARCEL"), ["a", "b", "c"])
      assert.deepEqual(yield* ids("zürich 4711"), ["a"])
      assert.deepEqual(yield* ids('"parcel":4712'), ["b"])
      assert.deepEqual(yield* ids("lost parcel and"), ["c"])
      assert.deepEqual(yield* ids("4713"), [])
      yield* put(one, [waiting.commit("resume", [], { resumed: true })])
      yield* put(one, Journal.finish(waiting, "It arrived."))
      assert.deepEqual(yield* ids("arrived zürich"), ["a"])
    })
  },
  {
    name: "prunes whole trees whose root has ended, with tasks it left behind, and no others",
    body: Effect.fnUntraced(function* (one, two) {
      const agent = "heads-prune"
      const begin = (id: string, createdAt: number, rootRunId?: string) =>
        Journal.begin(`heads/prune/${id}`, {
          agent,
          createdAt,
          ...(rootRunId === undefined
            ? {}
            : { rootRunId: `heads/prune/${rootRunId}`, parentRunId: `heads/prune/${rootRunId}` })
        })
      const store = Effect.fnUntraced(function* (run: Journal.Writer, isDone: boolean) {
        yield* put(one, [run.last()])
        if (isDone) yield* put(one, Journal.finish(run))
      })
      yield* store(begin("old", 1_000), true)
      yield* store(begin("old-child", 1_000, "old"), true)
      yield* store(begin("cut", 1_000), true)
      yield* store(begin("cut-child", 1_000, "cut"), false)
      yield* store(begin("open", 1_000), false)
      yield* store(begin("open-child", 1_000, "open"), true)
      yield* store(begin("late", 1_000), true)
      yield* store(begin("late-child", 9_000, "late"), true)
      yield* store(begin("waiting", 1_000), false)
      yield* store(begin("new", 9_000), true)
      const prune = (updatedBefore: number) =>
        RunStore.prune({ updatedBefore, agent }).pipe(Effect.provide(Layer.succeed(RunStore.RunStore, two)))
      const removed = yield* prune(5_000)
      assert.deepEqual([...removed].sort(), [
        "heads/prune/cut",
        "heads/prune/cut-child",
        "heads/prune/old",
        "heads/prune/old-child"
      ])
      const left = (yield* one.list({ agent })).map(({ runId }) => runId.slice(12))
      assert.deepEqual(left, ["late-child", "new", "late", "open", "open-child", "waiting"])
      assert.deepEqual(yield* prune(5_000), [])
    })
  },
  {
    name: "emits every record once to a follower: stored ones, then new ones, whichever worker appends them",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("heads/tail")
      const seen: Array<RunRecord> = []
      const late: Array<number> = []
      const follow = <A>(
        tail: Stream.Stream<RunRecord, RunStore.StoreError>,
        count: number,
        each: (record: RunRecord) => A
      ) =>
        Effect.forkChild(
          // Other workers do not follow a test's virtual time.
          Stream.runForEach(Stream.take(tail, count), (record) => Effect.sync(() => each(record))).pipe(
            Effect.provideService(Clock.Clock, Clock.Clock.defaultValue())
          ),
          { startImmediately: true }
        )
      const early = yield* follow(one.tail("heads/tail"), 27, (record) => seen.push(record))
      const far: Array<number> = []
      const ahead = yield* follow(one.tail("heads/tail", 20), 7, (record) => far.push(record.revision))
      const other = Journal.begin("heads/tail-not")
      const commits = [run.last(), ...Journal.turn(run)]
      yield* put(two, commits)
      yield* put(one, [other.last(), ...Journal.turn(other)])
      const after = yield* follow(two.tail("heads/tail", 9), 18, (record) => late.push(record.revision))
      for (const commit of [...Journal.turn(run), ...Journal.finish(run)]) {
        commits.push(commit)
        yield* put(commits.length % 2 === 0 ? one : two, [commit])
        if (commits.length % 5 === 0) yield* Effect.yieldNow
      }
      yield* Fiber.join(early)
      yield* Fiber.join(after)
      yield* Fiber.join(ahead)
      assert.deepEqual(
        seen,
        commits.map(({ record }) => record)
      )
      assert.deepEqual(
        late,
        Array.from({ length: 18 }, (_, index) => index + 10)
      )
      assert.deepEqual(far, late.slice(11))
    })
  },
  {
    name: "releases a follower that is interrupted",
    body: Effect.fnUntraced(function* (one) {
      const follower = yield* Effect.forkChild(Stream.runDrain(one.tail("heads/nobody")), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(follower)
    })
  }
]

/**
 * Checks that committed records and states read back unchanged, and that an append stores all of its records or none.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as assert from "../assert.ts"
import * as Contents from "../../../Content.ts"
import * as RunStore from "../../../RunStore.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, type Commit, loads, put, putAll, refused, resume, tagOf } from "../sampleJournal.ts"

export const journals: ReadonlyArray<Check> = [
  {
    name: "has nothing of a run that was never stored",
    body: Effect.fnUntraced(function* (store) {
      assert.deepEqual(yield* store.load("journals/none"), Option.none())
      assert.deepEqual(yield* store.head("journals/none"), Option.none())
      assert.deepEqual(yield* Stream.runCollect(store.read("journals/none")), [])
      yield* store.release("journals/none", "worker-1")
      yield* store.remove(["journals/none"])
    })
  },
  {
    name: "gives the state of the last commit after every commit, to every worker",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("journals/state", { context: { tries: 1 }, taskId: "a task", depth: 1 })
      const commits = [run.last(), ...Journal.turn(run), ...Journal.turn(run), ...Journal.finish(run)]
      for (const commit of commits) {
        yield* put(one, [commit])
        yield* loads(one, commit)
        yield* loads(two, commit)
      }
    })
  },
  {
    name: "gives the records as they were committed, from any revision on",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("journals/records", { parentRunId: "journals/parent", rootRunId: "journals/parent" })
      const commits = [run.last(), ...Journal.turn(run), ...Journal.finish(run)]
      yield* put(one, commits)
      const records = commits.map(({ record }) => record)
      for (const from of [0, 1, records.length - 1, records.length, records.length + 5]) {
        assert.deepEqual(yield* Stream.runCollect(two.read("journals/records", from)), records.slice(from))
      }
      assert.deepEqual(yield* Stream.runCollect(one.read("journals/records")), records)
    })
  },
  {
    name: "keeps pauses, failures, resumes, answers and changes by hooks",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("journals/pauses")
      const commits = [run.last(), ...failing(run), ...asking(run), ...answered(run)]
      for (const commit of commits) {
        yield* put(one, [commit])
        yield* loads(two, commit)
      }
      const records = commits.map(({ record }) => record)
      assert.deepEqual(yield* Stream.runCollect(two.read("journals/pauses")), records)
    })
  },
  {
    name: "keeps events whose scope is not that of their record",
    body: Effect.fnUntraced(function* (one, two) {
      const { record, state } = Journal.begin("journals/scopes", { taskId: "t" }).last()
      const events = record.events.map((event) => ({ ...event, at: 7, step: 3, taskId: undefined }))
      const odd = { ...record, events }
      yield* one.append([odd], state)
      assert.deepEqual(yield* Stream.runCollect(two.read("journals/scopes")), [odd])
    })
  },
  {
    name: "gives the state of a long run whose conversation was compacted",
    body: Effect.fnUntraced(function* (one, two) {
      const run = Journal.begin("journals/long")
      // A few turns with long texts, so that the store writes parts of the state on the way.
      const text = "much ".repeat(70_000)
      const commits = [run.last()]
      for (let turn = 0; turn < 16; turn++) {
        // Compaction: a summary replaces the earlier messages, twice.
        const compact = turn === 7 || turn === 11
        commits.push(...Journal.turn(run, compact ? { text, compact: `summary ${turn}` } : { text }))
      }
      yield* put(one, commits)
      yield* loads(one, run.last())
      yield* loads(two, run.last())
      // The second worker continues where the first one stopped.
      const more = [...Array(7).keys()].flatMap(() => Journal.turn(run, { text }))
      yield* resume(two, "journals/long", more.concat(Journal.finish(run)))
      yield* loads(one, run.last())
      assert.equal((yield* Stream.runCollect(one.read("journals/long"))).length, run.last().record.revision)
    })
  },
  {
    name: "deletes removed runs, and nothing else",
    body: Effect.fnUntraced(function* (one, two) {
      const gone = Journal.begin("journals/gone", { agent: "removal" })
      const stays = Journal.begin("journals/gone-not", { agent: "removal" })
      yield* put(one, [gone.last(), ...Journal.turn(gone, { text: "much ".repeat(220_000) })])
      yield* put(one, [stays.last()])
      yield* one.acquire("journals/gone", { workerId: "worker-1", lease: "1 minute" })
      yield* two.remove(["journals/gone", "journals/never"])
      assert.deepEqual(yield* one.load("journals/gone"), Option.none())
      assert.deepEqual(yield* one.head("journals/gone"), Option.none())
      assert.deepEqual(yield* Stream.runCollect(one.read("journals/gone")), [])
      assert.deepEqual(
        (yield* one.list({ agent: "removal" })).map(({ runId }) => runId),
        ["journals/gone-not"]
      )
      yield* loads(two, stays.last())
      const anew = Journal.begin("journals/gone", { agent: "removal", input: "again" })
      yield* put(one, [anew.last(), ...Journal.turn(anew)])
      yield* loads(two, anew.last())
      assert.equal(Option.getOrThrow(yield* two.head("journals/gone")).lease, undefined)
    })
  }
]

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
      assert.equal((yield* recordsOf(two, "groups/again")).length, commits.length + 1)
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
      assert.equal(yield* tagOf(putAll(two, theirs)), "ConcurrentAppendError")
      const [, another] = theirs
      if (another === undefined) return assert.fail("a turn is longer")
      assert.equal(yield* tagOf(putAll(two, [first, another])), "ConcurrentAppendError")
      // Its predecessor is not stored yet.
      assert.equal(yield* tagOf(putAll(two, rest)), "ConcurrentAppendError")
      assert.equal((yield* recordsOf(two, "groups/behind")).length, 3)
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
      assert.equal(yield* tagOf(putAll(two, [other.last(), ...Journal.turn(other)])), "RunExists")
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
      assert.equal(yield* tagOf(putAll(two, theirs.slice(4))), "ConcurrentAppendError")
      assert.equal((yield* recordsOf(two, "groups/middle")).length, records.length)
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
        assert.equal(ends.filter((exit) => exit._tag === "Success").length, 1)
        const added = (yield* recordsOf(one, "groups/race")).slice(before)
        assert.equal(new Set(added.map(({ workerId }) => workerId)).size, 1)
        assert.equal(added.length, ends[0]?._tag === "Success" ? 1 : count)
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

const turnId = "journals/pauses:t1"

const call = { callId: "c", name: "send", input: { to: "a" }, kind: "skill", review: "unreviewed" } as const

type Run = ReturnType<typeof Journal.begin>

/** Adds a turn whose model call fails. */
const failing = (run: Run) => [
  run.commit("phase", [{ type: "turn_started", turnId }], { settled: true, context: { seen: [] } }),
  run.commit("phase", [
    {
      type: "turn_prepared",
      model: "mock/a",
      dialect: "tools",
      prompt: { base: 1, append: [{ role: "user", content: [Contents.text("more")] }], system: "Be brief." },
      tools: ["send"],
      args: { generation: { temperature: 0.5 }, cacheBreakpoints: [0] },
      spent: { usage: { inputTokens: 9, cachedTokens: 0, outputTokens: 3, reasoningTokens: 1 }, costUsd: 0.5 }
    }
  ]),
  run.commit("phase", [{ type: "model_started", attempt: 1 }]),
  run.commit(
    "phase",
    [{ type: "run_failed", error: { tag: "ProviderError", message: "no", fields: { status: 500 } } }],
    { spent: { usage: { inputTokens: 7, cachedTokens: 2, outputTokens: 0, reasoningTokens: 0 }, costUsd: 0 } }
  )
]

/** Adds the turn again, after the failure, with a call that asks a person. */
const asking = (run: Run) => [
  run.commit("resume", [], { resumed: true, rewind: true, context: { again: true } }),
  run.commit("phase", [
    {
      type: "turn_prepared",
      model: "mock/b",
      dialect: "blocks",
      prompt: { base: 0, append: [{ role: "user", content: [Contents.text("other")] }], system: null },
      tools: []
    }
  ]),
  run.commit("phase", [{ type: "model_started", attempt: 1 }]),
  run.commit("phase", [{ type: "model_restarted", attempt: 2 }]),
  run.commit("phase", [
    {
      type: "model_completed",
      message: { role: "assistant", content: [Contents.toolUse("c", "send", { to: "a" })] },
      model: "mock/b",
      usage: null,
      finishReason: "tool-calls",
      latencyMs: 1.5,
      outcome: { type: "tools", note: "your final was ignored" },
      calls: [call]
    }
  ]),
  run.commit("phase", [
    {
      type: "tool_calls_started",
      calls: [call],
      questions: [{ callId: "c", name: "send", input: { to: "a" }, reason: "effects: write" }]
    },
    { type: "paused", reason: "approval_required", metadata: { callIds: ["c"] } }
  ])
]

/** Adds the answer, the call, and the rest of the run. */
const answered = (run: Run) => [
  run.commit("resume", [], { answers: [{ callId: "c", approved: true, by: "ada", input: { to: "b" } }] }),
  run.commit("phase", [
    {
      type: "tool_call_started",
      callId: "c",
      change: { type: "rewrite", call: { ...call, input: { to: "b" } } }
    }
  ]),
  run.commit("launch", [], { launched: ["c"] }),
  run.commit("resume", [], { retried: ["c"] }),
  run.commit("launch", [], { launched: ["c"] }),
  run.commit("resume", [], {
    resolved: [{ callId: "c", name: "send", kind: "skill", input: { to: "b" }, output: [Contents.text("sent")] }]
  }),
  run.commit("phase", [{ type: "tool_calls_completed" }]),
  run.commit("phase", [{ type: "turn_completed", turnId }]),
  run.commit("pause", [{ type: "paused", reason: "wait", metadata: null }], {
    completing: { source: "caller", reason: "enough" }
  }),
  run.commit("resume", []),
  run.commit("phase", [{ type: "run_completed", source: "caller", reason: "enough", metadata: { ok: true } }])
]

/** Checks that committed records and states read back unchanged. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as assert from "node:assert/strict"
import * as Contents from "../../../Content.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, loads, put, resume } from "./runCheck.ts"

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

/** Adds the turn again, after the failure, with a call that asks for approval. */
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

/** Adds the approval, the call, and the rest of the run. */
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

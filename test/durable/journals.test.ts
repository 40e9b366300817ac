import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import {
  Array as Arr,
  Clock,
  Context,
  Effect,
  Layer,
  Option,
  Redacted,
  Result,
  Schema,
  type Scope,
  Stream,
  Struct
} from "effect"
import {
  Agent,
  Kernel,
  MediaStore,
  Message,
  ProtocolRegistry,
  RunCodec,
  RunState,
  RunStore,
  Skill,
  SkillRegistry,
  Usage
} from "kernai"
import { FileRunStore } from "kernai/file"
import { PgRunStore, SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import * as fs from "node:fs"
import * as path from "node:path"
import { gunzipSync } from "node:zlib"
import { result } from "../../src/internal/state/state.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { folder } from "../support/folder.ts"
import { quickly } from "../support/longRun.ts"
import * as Postgres from "../support/postgres.ts"

const fixtures = path.join(import.meta.dirname, "../fixtures/runs-v2")

type Json = Schema.Json
type JsonObject = Schema.JsonObject
const decodeJson = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.JsonObject)))
const expected = decodeJson(fs.readFileSync(path.join(fixtures, "expected.json"), "utf8"))

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

// ---------------------------------------------------------------- stores

type Opened = Effect.Effect<Layer.Layer<RunStore.RunStore, RunStore.StoreError>, unknown, Scope.Scope>

/** A clock that stands still, so that a lease ends exactly where it is said to. */
const still = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Clock.clockWith((clock) => {
    const now = clock.currentTimeMillisUnsafe()
    const stopped = { currentTimeMillisUnsafe: () => now, currentTimeMillis: Effect.succeed(now) }
    return Effect.provideService(effect, Clock.Clock, Object.assign(Object.create(clock), stopped))
  })

/** Appends the runs of the folder to the store in context, and gives each its lease. */
const fill = Effect.gen(function* () {
  const store = yield* RunStore.RunStore
  const codec = RunCodec.make()
  const journals = fs.readdirSync(path.join(fixtures, "file")).filter((name) => name.endsWith(".jsonl"))
  for (const name of journals) {
    const lines = fs
      .readFileSync(path.join(fixtures, "file", name), "utf8")
      .trimEnd()
      .split("\n")
    let state: RunState.RunState | undefined
    for (const line of lines) {
      const { fault, records } = codec.decodeRecords(line)
      for (const record of records) state = RunState.advance(state, record)
      if (!Arr.isReadonlyArrayNonEmpty(records) || state === undefined) return yield* Effect.die(fault)
      yield* store.append(records, state)
    }
    const head = expected[state?.runId ?? ""]?.["head"]
    const lease = isObject(head) ? head["lease"] : undefined
    if (state !== undefined && isObject(lease)) {
      const rest = Math.max(0, Number(lease["expiresAt"]) - (yield* Clock.currentTimeMillis))
      yield* store.acquire(state.runId, { workerId: String(lease["workerId"]), lease: rest })
    }
  }
}).pipe(still)

const memory: Opened = Effect.gen(function* () {
  const store = yield* RunStore.makeMemory
  yield* Effect.provideService(fill, RunStore.RunStore, store)
  return Layer.succeed(RunStore.RunStore, store)
})

const file: Opened = Effect.map(folder, (directory) => {
  fs.cpSync(path.join(fixtures, "file"), directory, { recursive: true })
  return Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer)
})

const database = Effect.map(folder, (directory) => {
  const filename = `${directory}/runs.db`
  fs.writeFileSync(filename, gunzipSync(fs.readFileSync(path.join(fixtures, "sqlite.db.gz"))))
  return filename
})

const sqlite: Opened = Effect.map(database, (filename) => SqlRunStore.layerSqlite(filename))

const postgres: Opened = Effect.gen(function* () {
  const server = yield* Postgres.database
  const layer = PgRunStore.layer({ url: Redacted.make(server.url), maxConnections: 2 })
  yield* Effect.provide(fill, layer)
  return layer
})

// ---------------------------------------------------------------- what is read

const orNull = <A>(value: A | undefined) => value ?? null

const toHour = (millis: number) => Math.round(millis / 3_600_000) * 3_600_000

/** A run as expected.json describes it. */
const described = Effect.fnUntraced(function* (runId: string) {
  const store = yield* RunStore.RunStore
  const state = Option.getOrThrow(yield* store.load(runId))
  // Heads of format 2 had no model.
  const head = Struct.omit(Option.getOrThrow(yield* store.head(runId)), ["model"])
  // Stores on a database or a disk have a clock of their own.
  const lease = head.lease && { workerId: head.lease.workerId, expiresAt: toHour(head.lease.expiresAt) }
  const turns = state.currentTurn === undefined ? state.turns : [...state.turns, state.currentTurn]
  const questions = yield* Kernel.questions(runId)
  const inFlight = yield* RunStore.inFlight(runId)
  return {
    // A worker may hold the run, which the journal does not say.
    head: { ...head, status: state.status, parentRunId: orNull(head.parentRunId), lease: orNull(lease) },
    depth: state.depth,
    taskId: orNull(state.taskId),
    forkedFrom: orNull(state.forkedFrom),
    answer: orNull(RunState.answer(state)),
    context: state.context,
    usage: Usage.encode(state.usage),
    // Zero stood for an unknown cost.
    costUsd: state.costUsd ?? 0,
    unreportedTurns: state.unreportedTurns,
    phaseRevision: state.phaseRevision,
    settledRevision: state.settledRevision,
    completing: orNull(state.completing),
    deferred: orNull(state.deferred),
    questions: questions.map(({ callId, input, name, reason }) => ({ callId, name, input, reason })),
    asked: state.questions.map(({ answer, callId, name }) => ({
      callId,
      name,
      answer:
        answer === undefined
          ? null
          : {
              callId: answer.callId,
              approved: answer.approved,
              reason: orNull(answer.reason),
              by: orNull(answer.by),
              input: orNull(answer.input)
            }
    })),
    inFlight: inFlight.map(({ callId, idempotencyKey, input, name, runId }) => ({
      callId,
      name,
      input,
      runId,
      idempotencyKey
    })),
    pending: (state.currentTurn?.pending ?? []).map(({ callId, name, review }) => ({ callId, name, review })),
    calls: result(state, undefined).calls.map((call) => ({
      ...call,
      error: orNull(call.error),
      durationMs: orNull(call.durationMs)
    })),
    outcomes: turns.map(({ outcome }) =>
      outcome?.type === "corrective" ? `corrective: ${outcome.reason}` : orNull(outcome?.type)
    ),
    records: (yield* Stream.runCollect(store.read(runId))).length,
    system: state.system,
    history: state.history,
    prompt: state.prompt.map((message) => encodeMessage(message))
  }
})

const encodeMessage = Schema.encodeSync(Message.Message)

/** A value as JSON keeps it. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const skill = (name: string, effects: Skill.Effects) =>
  Skill.dynamic(name, {
    description: name,
    effects,
    inputSchema: { type: "object" },
    execute: () => Effect.succeed(`${name} is done`)
  })

const kernel = Kernel.layerNoProvider.pipe(
  Layer.provide([
    SkillRegistry.layer(skill("send", "write"), skill("pay", "write"), skill("add", "read")),
    ProtocolRegistry.layer(),
    MediaStore.layerMemory
  ])
)

const clerk = Agent.make({ name: "clerk", instructions: "Be brief.", model: "scripted", skills: "all" })

const all = [
  ["memory", true, memory],
  ["file", true, file],
  ["sqlite", true, sqlite],
  ["postgres", Postgres.available, postgres]
] as const
const places = quickly(all, ([name]) => name === "file" || name === "sqlite")

describe.each(places)("runs that are stored in format 2: %s", (_, isThere, opened) => {
  const on = <A, E>(body: Effect.Effect<A, E, RunStore.RunStore>) =>
    Effect.gen(function* () {
      const context = yield* Layer.build(yield* opened)
      return yield* Effect.provideContext(body, Context.pick(RunStore.RunStore)(context))
    })

  it.live.skipIf(!isThere)(
    "are listed and read as they were when they were stored (R-9)",
    () =>
      on(
        Effect.gen(function* () {
          const store = yield* RunStore.RunStore
          const heads = yield* store.list({ order: "oldest" })
          assert.sameMembers(
            heads.map(({ runId }) => runId),
            Object.keys(expected)
          )
          for (const { runId } of heads) assert.deepStrictEqual(plain(yield* described(runId)), expected[runId], runId)
        })
      ),
    60_000
  )

  it.live.skipIf(!isThere)(
    "continue where a model was asked, where a person was asked, and where a call was in flight",
    () =>
      on(
        Effect.gen(function* () {
          const store = yield* RunStore.RunStore
          const end = '<block type="final">at last</block>'
          const resumptions = [
            ["asking", "at last", {}],
            ["waiting", end, { answers: [{ callId: "waiting:t1.0", approved: true }] }],
            [
              "inflight",
              end,
              { recover: { "inflight:t1.1": { resolve: { output: [{ type: "text", text: "paid" }] } } } }
            ]
          ] as const
          for (const [runId, reply, options] of resumptions) {
            const before = Option.getOrThrow(yield* store.head(runId))
            const { text } = yield* Kernel.resume(clerk, runId, {
              provider: MockProvider.make(reply),
              as: "a test",
              ...options
            })
            assert.strictEqual(text, "at last", runId)
            const state = Option.getOrThrow(yield* store.load(runId))
            const records = yield* Stream.runCollect(store.read(runId))
            assert.deepStrictEqual(
              records.map(({ revision }) => revision),
              records.map((_, index) => index + 1)
            )
            assert.isAbove(state.revision, before.revision)
            assert.deepStrictEqual(plain(RunState.fold(records)), plain(state))
          }
          const calls = result(Option.getOrThrow(yield* store.load("waiting")), undefined).calls
          assert.deepStrictEqual(
            calls.map(({ callId, isError }) => [callId, isError]),
            [
              ["waiting:t1.0", false],
              ["waiting:t1.1", false],
              ["waiting:t1.2", false]
            ]
          )
        }).pipe(Effect.provide(kernel))
      ),
    60_000
  )

  it.live.skipIf(!isThere)(
    "stand beside new runs of callers and of conversations, and the version before reads those that need nothing new",
    () =>
      on(
        Effect.gen(function* () {
          const store = yield* RunStore.RunStore
          const caller = { id: "ada", tenant: "acme", labels: { team: "a" } }
          const history = Array.from({ length: 12 }, (_, turn) => Message.user(`${turn} ${"some words ".repeat(100)}`))
          const started = [
            Journal.begin("new", { caller }),
            Journal.begin("talk", { history }),
            Journal.begin("talk on", { history })
          ]
          for (const run of started) {
            yield* Journal.put(store, [run.last(), ...Journal.turn(run)])
            yield* Journal.loads(store, run.last())
          }
          assert.deepStrictEqual(
            (yield* store.list({ caller: "ada" })).map(({ runId }) => runId),
            ["new"]
          )
          const texts = started.map((run) => Result.getOrThrow(RunCodec.encodeRecord(run.last().record)))
          for (const text of texts) assert.include(text, `"format":${RunCodec.oldestFormat},`)
        })
      ),
    60_000
  )
})

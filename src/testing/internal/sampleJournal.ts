/**
 * Builds journals without a kernel: the records of a run, the states they lead to, and how the checks of a run store put
 * and load them.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as assert from "./assert.ts"
import type { Call } from "../../Call.ts"
import type { Caller } from "../../Caller.ts"
import * as Contents from "../../Content.ts"
import type { Content, Json, JsonObject } from "../../Content.ts"
import type { ConcurrentAppendError, RunExists, StoreError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { PhaseEvent, RunScope } from "../../RunEvent.ts"
import { type Delta, type RunRecord, type RunState, advance } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"

/** One commit: a record and the state after it. */
export interface Commit {
  readonly record: RunRecord
  readonly state: RunState
}

/** The facts of an event that its run fills in. */
export type Draft = PhaseEvent extends infer E
  ? E extends PhaseEvent
    ? Omit<E, keyof RunScope | "revision">
    : never
  : never

/** Options of a sample run. */
export interface Options {
  readonly agent?: string
  readonly version?: string
  readonly caller?: Caller
  readonly parentRunId?: string
  readonly rootRunId?: string
  readonly taskId?: string
  readonly depth?: number
  readonly workerId?: string
  readonly createdAt?: number
  readonly input?: string
  readonly history?: ReadonlyArray<Message>
  readonly context?: JsonObject
}

/** A run that is built record by record. */
export interface Writer {
  /** The last commit. */
  readonly last: () => Commit
  /** Adds one record. `change` replaces parts of the record. */
  readonly commit: (
    op: RunRecord["op"],
    events: ReadonlyArray<Draft>,
    delta?: Delta,
    change?: Partial<Pick<RunRecord, "workerId" | "createdAt">>
  ) => Commit
}

/** Begins a journal. Its first commit is `last()`. */
export const begin = (runId: string, options: Options = {}): Writer => {
  const workerId = options.workerId ?? "worker-1"
  const createdAt = options.createdAt ?? 1_000
  const history = options.history ?? []
  const scope = {
    runId,
    rootRunId: options.rootRunId ?? runId,
    depth: options.depth ?? 0,
    taskId: options.taskId
  }
  let current: Commit | undefined
  const commit: Writer["commit"] = (op, drafts, delta = {}, change = {}) => {
    const revision = (current?.record.revision ?? 0) + 1
    const at = change.createdAt ?? createdAt + revision - 1
    const step = current?.state.turns.length ?? 0
    const events: ReadonlyArray<PhaseEvent> = drafts.map((draft) => ({ ...draft, ...scope, step, at, revision }))
    const record: RunRecord = { runId, revision, op, events, delta, createdAt: at, workerId, ...change }
    current = { record, state: advance(current?.state, record) }
    return current
  }
  const first = commit("phase", [
    {
      type: "run_started",
      agent: options.agent ?? "agent",
      parentRunId: options.parentRunId,
      ...(options.version === undefined ? {} : { version: options.version }),
      ...(options.caller === undefined ? {} : { caller: options.caller }),
      messages: history.concat({ role: "user", content: [Contents.text(options.input ?? "What is a fiber?")] }),
      history: history.length,
      context: options.context ?? {}
    }
  ])
  return { last: () => current ?? first, commit }
}

/** The content of a turn. */
interface Said {
  readonly text?: string
  readonly input?: Json
  readonly output?: ReadonlyArray<Content>
  /** Replaces the conversation before this turn, except its last message. */
  readonly compact?: string
}

/** Adds a turn with one call: ten commits. */
export const turn = (run: Writer, said: Said = {}): ReadonlyArray<Commit> => {
  const { state } = run.last()
  const turnId = `${state.runId}:t${state.turns.length + 1}`
  const callId = `${turnId}.0`
  const input = said.input ?? { query: "fiber" }
  const call: Call = { callId, name: "search", input, kind: "skill", review: "unreviewed" }
  const output = said.output ?? [Contents.text("a thread of execution")]
  return [
    run.commit("phase", [{ type: "turn_started", turnId }]),
    prepared(run, said.compact),
    run.commit("phase", [{ type: "model_started", attempt: 1 }]),
    answered(run, said.text ?? "Let me look.", { type: "tools" }, [call]),
    run.commit("phase", [{ type: "tool_calls_started" }]),
    run.commit("phase", [{ type: "tool_call_started", callId }]),
    run.commit("launch", [], { launched: [callId] }),
    run.commit("phase", [{ type: "tool_call_completed", callId, result: { output, durationMs: 3 } }]),
    run.commit("phase", [{ type: "tool_calls_completed" }]),
    run.commit("phase", [{ type: "turn_completed", turnId }])
  ]
}

/** Adds a turn with the answer, and the end of the run: six commits. */
export const finish = (run: Writer, text = "A light thread."): ReadonlyArray<Commit> => {
  const { state } = run.last()
  const turnId = `${state.runId}:t${state.turns.length + 1}`
  return [
    run.commit("phase", [{ type: "turn_started", turnId }]),
    prepared(run),
    run.commit("phase", [{ type: "model_started", attempt: 1 }]),
    answered(run, text, { type: "final", text }, []),
    run.commit("phase", [{ type: "turn_completed", turnId }]),
    run.commit("phase", [{ type: "run_completed", source: "model_done" }])
  ]
}

/** A sentence, and its check of two stores on the same runs. */
export interface Check {
  readonly name: string
  readonly body: (one: RunStore.RunStoreShape, two: RunStore.RunStoreShape) => Effect.Effect<void, unknown>
}

/** Appends commits of one run one by one. */
export const put = (store: RunStore.RunStoreShape, commits: ReadonlyArray<Commit>) =>
  Effect.forEach(commits, ({ record, state }) => store.append([record], state), { discard: true })

/** Appends commits of one run all at once. */
export const putAll = (
  store: RunStore.RunStoreShape,
  commits: ReadonlyArray<Commit>
): Effect.Effect<void, AppendError> => {
  const records = commits.map(({ record }) => record)
  const last = commits.at(-1)
  return last !== undefined && Arr.isArrayNonEmpty(records) ? store.append(records, last.state) : Effect.void
}

/** Loads a run and appends more commits to it, like a worker that resumes it. */
export const resume = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  runId: string,
  commits: ReadonlyArray<Commit>
) {
  let state = Option.getOrUndefined(yield* store.load(runId))
  for (const { record } of commits) {
    state = advance(state, record)
    yield* store.append([record], state)
  }
})

/** Checks that a store returns the state of a commit. */
export const loads = (store: RunStore.RunStoreShape, { state }: Commit) =>
  Effect.map(store.load(state.runId), (loaded) => {
    assert.deepEqual(Option.map(loaded, plain), Option.some(plain(state)))
  })

/** Returns the failure of an operation that a store must refuse. */
export const refused = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<E, never, R> =>
  Effect.matchEffect(effect, {
    onFailure: Effect.succeed,
    onSuccess: () => Effect.sync(() => assert.fail("the store accepted what it must refuse"))
  })

/** Returns the tag of the failure of an effect that must fail. */
export const tagOf = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>): Effect.Effect<string> =>
  Effect.map(refused(effect), (error) => error._tag)

const prepared = (run: Writer, compact?: string): Commit => {
  const { prompt } = run.last().state
  const summary = { role: "user", content: [Contents.text(compact ?? "")] } as const
  return run.commit("phase", [
    {
      type: "turn_prepared",
      model: "mock/scripted",
      dialect: "blocks",
      prompt:
        compact === undefined
          ? { base: prompt.length, append: [] }
          : { base: 0, system: compact, append: [summary, ...prompt.slice(-1)] },
      tools: ["search"]
    }
  ])
}

const answered = (
  run: Writer,
  text: string,
  outcome: Extract<Draft, { type: "model_completed" }>["outcome"],
  calls: ReadonlyArray<Call>
): Commit =>
  run.commit("phase", [
    {
      type: "model_completed",
      model: "mock/scripted",
      costUsd: 0.001,
      finishReason: "stop",
      latencyMs: 12,
      outcome,
      message: { role: "assistant", content: [Contents.text(text)] },
      usage: { inputTokens: 100, cachedTokens: 10, outputTokens: 20, reasoningTokens: 5 },
      calls
    }
  ])

type AppendError = ConcurrentAppendError | RunExists | StoreError

/** Returns a state as plain data, whatever its class. */
const plain = (state: RunState): RunState => ({ ...state, turns: state.turns, prompt: state.prompt })

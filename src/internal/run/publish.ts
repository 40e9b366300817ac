/**
 * Publishes the events of a run. The loop writes events without their scope, which is filled in here. Events are
 * published in order, each after the records before it are stored.
 *
 * Also computes cache forecasts and the request options that a model drops.
 */

import type { Generation } from "../../Generation.ts"
import type { Kind } from "../../Media.ts"
import type { ModelCall } from "../../Middleware.ts"
import type { ToolDefinition } from "../../Provider.ts"
import type {
  CacheForecast,
  CallEvent,
  DroppedOptions,
  PhaseEvent,
  RunEvent,
  RunScope,
  TaskEvent,
  TurnEvent
} from "../../RunEvent.ts"
import type { LeftOut } from "../../RunModel.ts"
import type { RunState } from "../../RunState.ts"
import type { Usage } from "../../Usage.ts"
import { type JsonObject, plain } from "../../kit/json.ts"
import * as PromptCache from "../prompt/promptCache.ts"
import { answer, promptLog, result, stepOf } from "../state/state.ts"
import { Reports } from "./reports.ts"
import { type Run, now } from "./run.ts"

/** A phase event without its scope and revision. */
export type Draft = PhaseEvent extends infer E
  ? E extends PhaseEvent
    ? Omit<E, keyof RunScope | "revision">
    : never
  : never

/** An event that is not part of the journal, without its scope. */
export type LiveEvent =
  | Unscoped<TurnEvent | CallEvent | TaskEvent>
  | {
      readonly type: "skill_progress"
      readonly skill: string
      readonly callId: string
      readonly progress?: unknown
      readonly output?: unknown
    }
  | {
      readonly type: "skill_execute"
      readonly skill: string
      readonly callId: string
      readonly input: unknown
      readonly produces?: ReadonlyArray<Kind>
    }
  | {
      readonly type: "skill_result"
      readonly skill: string
      readonly callId: string
      readonly output: unknown
      readonly durationMs: number
      readonly metadata?: JsonObject
      readonly truncated?: boolean
    }

/**
 * Adds the scope to an event of the record after a state. The shared fields come first, which keeps the objects small.
 */
export const scoped = (state: RunState, step: number, at: number, draft: Draft): PhaseEvent => {
  const { depth, revision, rootRunId, runId, taskId } = state
  return { runId, rootRunId, step, depth, taskId, at, revision: revision + 1, ...draft }
}

/** Returns a live event with its scope. */
const scopedLive = (run: Run, event: LiveEvent): RunEvent => {
  const { depth, rootRunId, runId, taskId } = run.state
  return { runId, rootRunId, step: stepOf(run.state), depth, taskId, at: timeOf(run), ...event }
}

/** Publishes an event that is not part of the journal, behind all events that wait for the store. Synchronous. */
export const emit = (run: Run, event: LiveEvent): void => {
  if (run.live.publish === undefined) return
  const published = scopedLive(run, event)
  if (run.records.length + run.events.length > 0) run.events.push(published)
  else run.live.publish(published, run.agent.name)
}

/** Keeps the latest reports of a call for followers that join, until `endReports`. Synchronous. */
export const keepReports = (run: Run, callId: string, latest: () => ReadonlyArray<LiveEvent>): void => {
  run.reports ??= new Reports()
  run.reports.set(callId, () => latest().map((event) => scopedLive(run, event)))
}

/** Drops the reports of a call that has ended. Synchronous. */
export const endReports = (run: Run, callId: string): void => run.reports?.delete(callId)

/** Publishes the events of stored records, and live events behind them that wait for no other record. */
export const publish = (run: Run, stored: number): void => {
  const count = run.records.length === 0 ? run.events.length : stored
  const events = run.events
  run.events = events.slice(count)
  for (let index = 0; index < count && run.live.publish !== undefined; index++) {
    const event = events[index]
    if (event !== undefined) run.live.publish(withResult(run, event), run.agent.name)
  }
}

/**
 * Adds the result to the completion of a root run. It is computed from the journal, so it is published but not stored.
 */
const withResult = ({ output, state }: Run, event: RunEvent): RunEvent =>
  event.type !== "run_completed" || state.depth > 0 || answer(state) === undefined
    ? event
    : { ...event, result: result(state, output) }

/** Returns the time for a new record. Records that are stored together have the same time. */
export const timeOf = (run: Run): number => run.records.at(-1)?.createdAt ?? now(run)

/** Returns a value without the secrets known to the redactor. */
export const shown = ({ redactor }: Pick<Run, "redactor">, value: unknown): unknown =>
  redactor === undefined ? value : plain(value, redactor.text)

/** Returns the cache forecast of a prompt that is about to be sent, or undefined if none of it can be cached. */
export const forecastCache = (
  run: Run,
  model: string,
  tools: ReadonlyArray<ToolDefinition>,
  now: number
): CacheForecast | undefined => {
  if (run.live.publish === undefined) return undefined
  const prompt = { model, tools, system: run.state.system, messages: promptLog(run.state) }
  const { cache, lost, possible, tokens } = PromptCache.send(run.cache, prompt, now)
  run.cache = cache
  return possible > 0 ? { tokens, possible, lost: lost ?? null } : undefined
}

/** Returns what a vendor read if it is less than half of the expected tokens. Estimates are that rough. */
export const cacheMissed = (expected: number, usage: Usage | null): Response["cacheMissed"] =>
  expected === 0 || usage === null || usage.cachedTokens >= expected / 2
    ? undefined
    : { expected, read: usage.cachedTokens }

/** Notes and returns the media that a request left out, or undefined if they are those of the request before. */
export const noteLeftOut = (
  run: Run,
  media: ReadonlyArray<LeftOut> | undefined
): ReadonlyArray<LeftOut> | undefined => {
  const before = run.leftOut
  run.leftOut = media === undefined ? "" : JSON.stringify(media)
  return run.leftOut === before ? undefined : media
}

/** Notes and returns the options that a call drops, or undefined if they are those of the call before. */
export const noteDropped = (run: Run, { provider, request }: ModelCall): DroppedOptions | undefined => {
  const { generation, grammar, model } = request
  if (run.live.publish === undefined) return undefined
  // In the dialect of blocks a schema is one of several forms of a grammar.
  const isHeld = run.agent.dialect !== "tools" || grammar === undefined || provider.constrains?.(request) !== false
  const options = [
    ...(provider.takes === undefined ? [] : missing(generation, provider.takes(request))),
    ...(isHeld ? [] : ["output"])
  ]
  const before = run.dropped
  run.dropped = options.length === 0 ? "" : [provider.name, model.id, ...options].join(" ")
  return run.dropped === "" || run.dropped === before
    ? undefined
    : { provider: provider.name, model: model.id, options }
}

type Response = Extract<RunEvent, { readonly type: "llm_response" }>

type Unscoped<E> = E extends RunScope ? Omit<E, keyof RunScope> : never

/** Returns the names of options that are given but not supported. */
const missing = (given: Generation, taken: Generation): ReadonlyArray<string> => [
  ...missingOf(["temperature", "maxTokens", "topP", "stopSequences", "seed"], given, taken),
  ...missingOf(["budget", "effort"], given.thinking ?? {}, taken.thinking ?? {}).map((name) => `thinking.${name}`)
]

const missingOf = <Name extends string>(
  names: ReadonlyArray<Name>,
  given: { readonly [name in Name]?: unknown },
  taken: { readonly [name in Name]?: unknown }
): ReadonlyArray<string> =>
  names.filter((name) => (given[name] ?? undefined) !== undefined && (taken[name] ?? undefined) === undefined)

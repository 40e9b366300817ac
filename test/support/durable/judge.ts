/** Compares what a step left behind with what its scenario expects. */
import { RunStore, type RunState } from "kernai"
import { Cause, Effect, Exit, Option, Stream } from "effect"
import { type JsonObject, type Expectation, type World, type Seen, scripted, inScript, object } from "./script.ts"
import { labelOf } from "./point.ts"

type Compare = (where: string, expected: unknown, actual: unknown) => void

/** Errors of hooks, middleware and the model may have any tag: the vectors say that they failed, not how. */
const anyTag = new Set(["RunFailed", "MiddlewareError", "ModelError"])

export const judge = Effect.fnUntraced(function* (
  world: World,
  store: RunStore.RunStoreShape,
  runId: string,
  expected: Expectation,
  seen: Seen,
  outcome: Exit.Exit<unknown, unknown> | undefined,
  where: string,
  compare: Compare
) {
  if (expected.events !== undefined) compare(`${where} events`, expected.events, seen.events)
  if (expected.toolsRun !== undefined) compare(`${where} toolsRun`, expected.toolsRun, seen.toolsRun)
  if (expected.hooks !== undefined) compare(`${where} hooks`, expected.hooks, seen.hooks)
  const head = Option.getOrUndefined(yield* store.head(runId))
  if (expected.revision !== undefined) compare(`${where} revision`, expected.revision, head?.revision)
  const status = Option.getOrUndefined(yield* store.load(runId))?.status
  if (expected.status !== undefined && status !== undefined) {
    judgeStatus(world, where, expected.status, status, compare)
  }
  const actual = errorOf(outcome)
  const paused = expected.status?.["type"] === "paused" || status?.type === "paused"
  if (expected.error === undefined) {
    const ended =
      actual === undefined || paused || ["MaxStepsReached", "RunFinished", "RunPaused"].includes(String(actual["tag"]))
    if (outcome !== undefined && !ended) compare(`${where} error`, undefined, actual)
  } else if (anyTag.has(expected.error)) {
    compare(`${where} failed`, true, actual !== undefined && actual["tag"] !== "Interrupted")
  } else {
    compare(`${where} error`, expected.error, actual?.["tag"])
  }
  for (const [key, value] of Object.entries(expected.errorFields ?? {})) {
    // The revisions of a conflict are `expected_seq` and `actual_seq` in scripts.
    const camel = key.replace(/_seq$/, "").replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    compare(`${where} error.${key}`, value, inScript(world, actual?.[camel]))
  }
})

const judgeStatus = (world: World, where: string, expected: JsonObject, actual: RunState.Status, compare: Compare) => {
  for (const [key, value] of Object.entries(expected)) {
    const found: unknown = Object.entries(actual).find(([name]) => name === key)?.[1]
    if (key === "metadata") compare(`${where} status.metadata`, value, pick(value, asWritten(inScript(world, found))))
    else if (key === "error") {
      const info = actual.type === "failed" ? actual.error : undefined
      if (!anyTag.has(String(value)))
        compare(`${where} status.error`, true, info?.tag === value || info?.message.includes(String(value)) === true)
    } else compare(`${where} status.${key}`, value, found)
  }
}

/** The metadata of a pause under the names that scripts have for its fields. */
const asWritten = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(asWritten)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [written[name] ?? name, asWritten(field)]))
}

const written: { readonly [name: string]: string } = {
  callIds: "toolCallIds",
  questions: "approvals",
  callId: "toolCallId",
  name: "toolName"
}

/** The part of `actual` that `expected` asks for. */
const pick = (expected: unknown, actual: unknown): unknown => {
  if (Array.isArray(expected) && Array.isArray(actual)) return actual.map((item, index) => pick(expected[index], item))
  if (typeof expected !== "object" || expected === null || typeof actual !== "object" || actual === null) return actual
  return Object.fromEntries(
    Object.entries(actual).flatMap(([key, value]) => {
      const wanted = Object.entries(expected).find(([name]) => name === key)
      return wanted === undefined ? [] : [[key, pick(wanted[1], value)]]
    })
  )
}

const errorOf = (outcome: Exit.Exit<unknown, unknown> | undefined): { readonly [key: string]: unknown } | undefined => {
  if (outcome === undefined || Exit.isSuccess(outcome)) return undefined
  if (Cause.hasInterruptsOnly(outcome.cause)) return { tag: "Interrupted" }
  const error: unknown = Cause.squash(outcome.cause)
  if (typeof error !== "object" || error === null) return { tag: String(error) }
  return { ...error, tag: "_tag" in error ? error._tag : "Defect" }
}

export const judgeEnd = Effect.fnUntraced(function* (
  world: World,
  store: RunStore.RunStoreShape,
  runId: string,
  compare: Compare
) {
  const { final, id } = world.scenario
  const state = Option.getOrUndefined(yield* store.load(runId))
  if (state === undefined) return compare(`${id} final`, "a run", undefined)
  const records = yield* Stream.runCollect(store.read(runId))
  const where = `${id} final`
  const journal = records.map((record) => [
    record.revision,
    record.op,
    record.events.map((event) => labelOf(world, event))
  ])
  const actual: { readonly [key: string]: unknown } = {
    modelCalls: world.modelCalls,
    toolExecutions: world.executions,
    toolInputs: world.inputs,
    turnsCompleted: state.turns.length,
    context: state.context,
    journal
  }
  for (const [key, value] of Object.entries(final)) {
    if (key === "status") judgeStatus(world, where, object(value), state.status, compare)
    else if (key === "openTurn") {
      const turn = state.currentTurn
      const open = {
        pending: turn?.pending.map((call) => scripted(world, call.callId)),
        inFlight: turn?.inFlight.map((call) => scripted(world, call.callId)),
        completed: turn?.completed.map((result) => scripted(world, result.callId))
      }
      compare(`${where} openTurn`, pick(open, value), pick(value, open))
    } else compare(`${where} ${key}`, value, actual[key])
  }
})

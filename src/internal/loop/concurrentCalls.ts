/**
 * Several calls of one reply at once.
 */

import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Call, CallOutcome, CallResult } from "../../Call.ts"
import { RunPaused } from "../../KernelError.ts"
import type { Delta, Stop } from "../../RunState.ts"
import type * as Usage from "../../Usage.ts"
import { plusExpense } from "../run/sharedBudget.ts"
import { isJsonObject, type Json } from "../base/json.ts"
import { ask, defer, deferred, hookArgs, pause, stopDeferred } from "./askHooks.ts"
import { type AskingResult, isAsking } from "../target/callAsks.ts"
import { commit, flush, manyRecords, record } from "./commit.ts"
import { type CallsError, type HookError, type Run, carry, openTurn } from "../run/run.ts"
import { short } from "../skill/failureText.ts"
import { questionMetadata } from "./review.ts"
import { effectsOf } from "../target/targets.ts"

/**
 * Puts one of several calls through launch and result. A child run that waits for a person has no result: its call stays
 * in flight, and the run pauses with its questions once the other calls have ended.
 */
export type Beside = (
  call: Call,
  body: Effect.Effect<CallResult | undefined, CallsError>
) => Effect.Effect<CallResult | undefined, CallsError>

/** The calls that wait for a person, in a child run or themselves, by their ids. */
export type Waits = ReadonlyMap<string, RunPaused>

/** Runs several calls at once. A stop that a hook or a child asks for waits until all have ended. */
export const together = (
  run: Run,
  calls: (beside: Beside, waits: Waits) => Effect.Effect<void, CallsError>
): Effect.Effect<void, CallsError> =>
  Effect.suspend(() => {
    run.lock ??= Semaphore.makeUnsafe(1)
    const waits = new Map<string, RunPaused>()
    const asking: Array<AskingResult> = []
    const waiting = (callId: string, body: Effect.Effect<CallResult | undefined, CallsError>) =>
      Effect.catchTag(body, "RunPaused", (error) =>
        Effect.sync(() => {
          waits.set(callId, error)
          return undefined
        })
      )
    const oneHook = Semaphore.makeUnsafe(1).withPermits(1)
    const beside: Beside = (call, body) =>
      Effect.suspend(() => {
        if (deferred(run) !== undefined && !isRecovered(run, call)) return Effect.undefined
        commit(run, "launch", [], { launched: [call.callId], effects: effectsOf(run, call) })
        return Effect.uninterruptible(
          Effect.andThen(
            flush(run),
            Effect.tap(run.restore(waiting(call.callId, body)), (result) => {
              if (result === undefined) return Effect.void
              if (!isAsking(result)) return oneHook(finish(run, result))
              asking.push(result)
              return Effect.void
            })
          )
        )
      })
    return Effect.andThen(
      Effect.andThen(flush(run), run.restore(calls(beside, waits))),
      Effect.suspend(() => {
        for (const result of asking) waits.set(result.callId, pausedBy(run, result))
        const asked = questionsOf(openTurn(run).order, waits)
        if (asked !== undefined) defer(run, asked)
        if (asking.length > 0) carry(run, returning(asking))
        return stopDeferred(run)
      })
    )
  })

/** Pauses the run with the questions of its calls, which go back to those that wait. */
export const pauseAsking = (run: Run, asking: ReadonlyArray<AskingResult>): Effect.Effect<void, HookError> =>
  pause(run, "approval_required", questionMetadata(asking.map(({ asks }) => asks)), returning(asking))

const pausedBy = (run: Run, { asks }: AskingResult): RunPaused =>
  new RunPaused({ runId: run.state.runId, reason: "approval_required", metadata: questionMetadata([asks]) })

const returning = (asking: ReadonlyArray<AskingResult>): Delta => {
  const spent = asking.reduce<Usage.Expense | undefined>(
    (sum, { spent }) => (spent === undefined ? sum : plusExpense(sum, spent)),
    undefined
  )
  return {
    returned: asking.map(({ callId }) => callId),
    asked: asking.map(({ asks }) => asks),
    ...(spent === undefined ? {} : { spent })
  }
}

/** The pause of a run whose children wait, in the order of their calls. */
const questionsOf = (order: ReadonlyArray<string>, waits: Waits): Stop | undefined =>
  order.reduce<Stop | undefined>((asked, callId) => {
    const waiting = waits.get(callId)
    return waiting === undefined ? asked : alsoAsking(asked, waiting)
  }, undefined)

/** Asks the questions of several children together. */
const alsoAsking = (before: Stop | undefined, { metadata, reason }: RunPaused): Stop =>
  before === undefined
    ? { type: "pause", reason, metadata }
    : before.type === "pause" && before.reason === reason
      ? { ...before, metadata: joined(before.metadata ?? null, metadata) }
      : before

const joined = (a: Json, b: Json): Json => {
  if (!isJsonObject(a) || !isJsonObject(b)) return a
  const lists = Object.entries(b).flatMap(([key, value]) => {
    const known = a[key]
    return Array.isArray(known) && Array.isArray(value) ? [[key, [...known, ...value]] as const] : []
  })
  return { ...a, ...Object.fromEntries(lists) }
}

/** Stores the result of one of several calls and asks its hook. A call without a result stays in flight. */
const finish = Effect.fnUntraced(function* (run: Run, result: CallResult): Effect.fn.Return<void, HookError> {
  recordResult(run, result)
  // Thousands of calls that end at once leave others a moment.
  if (run.state.revision % manyRecords < 2) yield* Effect.yieldNow
  const hook = run.hooks.onToolCallCompleted
  if (hook === undefined) return yield* flush(run)
  carry(run, { settled: true })
  const { control } = yield* ask(run, "onToolCallCompleted", () => hook(hookArgs(run, { result })))
  if (control !== undefined && control.type !== "continue") defer(run, control)
})

/** Records the result of a call. Synchronous. */
export const recordResult = (run: Run, completed: CallResult): void => {
  const { callId, spent } = completed
  record(run, { type: "tool_call_completed", callId, result: outcomeOf(run, completed), ...(spent && { spent }) })
}

const outcomeOf = (run: Run, completed: CallResult): CallOutcome => {
  const { callId: _, error, input: _input, kind: _kind, name: _name, spent: _spent, ...rest } = completed
  return error === undefined ? rest : { ...rest, error: short(error, run.limits) }
}

/** Was this call launched before the run was cut off, and is it launched again? */
export const isRecovered = (run: Run, call: Call): boolean => openTurn(run).recovered?.includes(call.callId) === true

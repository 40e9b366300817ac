/**
 * Runs hooks and applies the controls they return.
 *
 * All records of a run are stored before a hook runs. A settle hook runs once per phase: the next record marks it as
 * settled.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Control, HookArgs, HookResult, Hooks } from "../../Hooks.ts"
import type { Delta, RunSource, Stop } from "../../RunState.ts"
import { guarded, observed } from "../../kit/foreignCode.ts"
import { extensionError } from "../errors/extensionError.ts"
import { isJsonObject, type Json, type JsonObject } from "../../kit/json.ts"
import { freeze, take } from "../../kit/snapshot.ts"
import { sealed, turnLog } from "../state/state.ts"
import { commit, flush } from "./commit.ts"
import type { FlushError } from "../../store-kit/internal/storeGuard.ts"
import { type HookError, type Run, carry, drop, mergeContext } from "./run.ts"

/** Returns the arguments of a hook, frozen at every depth so that the hook cannot mutate the run. */
export const hookArgs = <More extends object>(run: Run, more: More): HookArgs & More =>
  freeze({
    state: sealed(run.state),
    turn: run.state.currentTurn ?? turnLog(run.state).last(),
    context: run.state.context,
    caller: run.state.caller,
    commitKey: `${run.state.runId}:${run.state.phaseRevision}`,
    ...more
  })

/** The value of a hook, and the stop or further turn it requested. */
interface Asked<out A> {
  readonly value?: A | undefined
  readonly control?: Stop | { readonly type: "continue" } | undefined
}

/** Flushes the run, runs a hook, and merges the context it returns into the run. */
export const ask = Effect.fnUntraced(function* <A>(
  run: Run,
  name: keyof Hooks,
  hook: () => Effect.Effect<HookResult<A> | void, unknown>
): Effect.fn.Return<Asked<A>, HookError> {
  yield* flush(run)
  const result = yield* guarded(
    name,
    () => run.restore(Effect.suspend(hook)),
    (error) => extensionError(name, error)
  )
  if (result === undefined) return {}
  const { context, control, value } = result
  if (context !== undefined) mergeContext(run, ownContext(context))
  return { value, control: control === undefined ? undefined : stopOf(control) }
})

/** Returns the control of a hook in its stored form. */
const stopOf = (control: Control): Asked<never>["control"] => {
  switch (control._tag) {
    case "Pause": {
      const { _tag, ...rest } = control
      return { type: "pause", ...rest }
    }
    case "Finish": {
      const { _tag, ...rest } = control
      return { type: "finish", ...rest }
    }
    case "Continue":
      return { type: "continue" }
  }
}

/** Returns a private copy of a context. A context that is not JSON is returned unchanged, and the store rejects it. */
export const ownContext = (context: JsonObject): JsonObject => {
  const copy = take(context)
  return Result.isSuccess(copy) && isJsonObject(copy.success) ? copy.success : context
}

/** Returns whether the settle hook of the last recorded phase has run. */
const isSettled = ({ next, state }: Run): boolean =>
  next.settled === true || state.settledRevision >= state.phaseRevision

/** A hook that runs after its phase is stored. */
type SettleHook<More> = (args: HookArgs & More) => Effect.Effect<HookResult | void, unknown>

/**
 * Runs the settle hook of the last recorded phase unless it ran before. Returns the control that replaces the next
 * step. A hook that fails counts as run.
 */
export const settle = <More extends object>(
  run: Run,
  name: keyof Hooks,
  hook: SettleHook<More> | undefined,
  more: More
): Effect.Effect<Asked<never>["control"], HookError> =>
  hook === undefined || isSettled(run) ? Effect.undefined : runSettleHook(run, name, hook, more)

const runSettleHook = Effect.fnUntraced(function* <More extends object>(
  run: Run,
  name: keyof Hooks,
  hook: SettleHook<More>,
  more: More
): Effect.fn.Return<Asked<never>["control"], HookError> {
  carry(run, { settled: true })
  const { control } = yield* ask<never>(run, name, () => hook(hookArgs(run, more)))
  return control?.type === "continue" && name !== "onTurnCompleted" ? undefined : control
})

/** Runs the settle hook of the last recorded phase and stops the run if it asks for that. Returns whether it did. */
export const stopsAt = <More extends object>(
  run: Run,
  name: keyof Hooks,
  hook: SettleHook<More> | undefined,
  more: More
): Effect.Effect<boolean, HookError> => (hook === undefined ? isContinued : settleOrStop(run, name, hook, more))

const isContinued = Effect.succeed(false)

const settleOrStop = Effect.fnUntraced(function* <More extends object>(
  run: Run,
  name: keyof Hooks,
  hook: SettleHook<More>,
  more: More
): Effect.fn.Return<boolean, HookError> {
  const control = yield* settle(run, name, hook, more)
  if (control === undefined || control.type === "continue") return false
  yield* obeyOnce(run, control)
  return true
})

/** Runs the hook of a run that continues. */
export const onResume = (run: Run): Effect.Effect<void, HookError> => {
  const { onRunResumed } = run.hooks
  return onRunResumed === undefined
    ? Effect.void
    : Effect.asVoid(ask(run, "onRunResumed", () => onRunResumed(hookArgs(run, {}))))
}

/** Stops the run as a settle hook requested. A crash before the stop is recorded runs the hook again. */
export const obeyOnce = Effect.fnUntraced(function* (run: Run, control: Stop): Effect.fn.Return<void, HookError> {
  drop(run, "settled")
  yield* obey(run, control)
})

/** Pauses or finishes the run as a hook requested. */
export const obey = (run: Run, control: Stop): Effect.Effect<void, HookError> =>
  control.type === "pause"
    ? pause(run, control.reason ?? noReason, control.metadata ?? null)
    : complete(run, "caller", control.reason, control.metadata)

// A stored pause always has a reason, but a hook may leave it out.
const noReason = "paused by a hook"

/** Returns the stop that a hook or a task requested while calls were in flight, in this process or an earlier one. */
export const deferred = ({ next, state }: Run): Stop | undefined => state.deferred ?? next.deferred

/** Defers a stop until the calls in flight have ended. The first requested stop wins. */
export const defer = (run: Run, control: Stop): void => {
  if (deferred(run) === undefined) carry(run, { deferred: control })
}

/** Applies the deferred stop, if there is one. */
export const stopDeferred = (run: Run): Effect.Effect<void, HookError> => {
  const control = deferred(run)
  return control === undefined ? Effect.void : obey(run, control)
}

/** Pauses the run at its current phase. */
export const pause = Effect.fnUntraced(function* (
  run: Run,
  reason: string,
  metadata: Json,
  delta: Delta = {}
): Effect.fn.Return<void, HookError> {
  commit(run, "pause", [{ type: "paused", reason, metadata }], delta)
  yield* observePause(run, reason, metadata)
})

/** Runs `onPause`. A failure of the hook is logged and ignored. */
export const observePause = Effect.fnUntraced(function* (
  run: Run,
  reason: string,
  metadata: Json
): Effect.fn.Return<void, FlushError> {
  const hook = run.hooks.onPause
  if (hook === undefined) return
  yield* flush(run)
  yield* run.restore(observed("onPause", () => hook(hookArgs(run, { reason, metadata }))))
})

/** Completes the run. `onRunCompleted` can pause it first; then it completes when it is resumed. */
export const complete = Effect.fnUntraced(function* (
  run: Run,
  source: RunSource,
  reason?: string | undefined,
  metadata?: Json | undefined
): Effect.fn.Return<void, HookError> {
  const end = { source, ...(reason === undefined ? {} : { reason }), ...(metadata === undefined ? {} : { metadata }) }
  const hook = run.hooks.onRunCompleted
  if (hook !== undefined) {
    const { control } = yield* ask(run, "onRunCompleted", () => hook(hookArgs(run, { source, reason })))
    if (control?.type === "pause") {
      return yield* pause(run, control.reason ?? noReason, control.metadata ?? null, { completing: end })
    }
  }
  commit(run, "phase", [{ type: "run_completed", ...end }], {})
})

/**
 * Where hooks are asked, and what they may do to a run (DR-4, DR-8).
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Control, HookArgs, HookResult, Hooks } from "../../Hooks.ts"
import type { ExtensionFailed, KernelError, MiddlewareTermination } from "../../KernelError.ts"
import type { Delta, RunSource, Stop } from "../../RunState.ts"
import { seal, turnLog, withContext } from "../state/state.ts"
import { commit, type CommitError, flush } from "./commit.ts"
import { extensionError } from "../base/extension.ts"
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts"
import { observed } from "../base/passedOver.ts"
import type { Run } from "./run.ts"
import { freeze, take } from "../base/snapshot.ts"

/** What a hook is given: frozen at every depth, so that nothing it does to it reaches the run (DR-2). */
export const hookArgs = <More extends object>(run: Run, more: More): HookArgs & More =>
  freeze({
    state: seal(run.state),
    turn: run.state.currentTurn ?? turnLog(run.state).last(),
    context: run.state.context,
    commitKey: `${run.state.runId}:${run.state.phaseRevision}`,
    ...more
  })

/** What a hook asked for. */
export interface Asked<out A> {
  readonly value?: A | undefined
  readonly control?: Stop | { readonly type: "continue" } | undefined
}

/** Asks a hook about what is stored; its context change is part of the state from here on. */
export const ask = <A>(
  run: Run,
  name: keyof Hooks,
  hook: () => Effect.Effect<HookResult<A> | void, unknown>
): Effect.Effect<Asked<A>, ExtensionFailed | MiddlewareTermination | CommitError> =>
  Effect.flatMap(flush(run), () =>
    Effect.map(
      Effect.mapError(hook(), (error) => extensionError(name, error)),
      (result) => {
        if (result === undefined) return {}
        if (result.context !== undefined) {
          const context = ownContext(result.context)
          run.changed = { ...run.changed, ...context }
          run.state = withContext(run.state, { ...run.state.context, ...context })
        }
        const { control, value } = result
        return { value, control: control === undefined ? undefined : stopOf(control) }
      }
    )
  )

/** The control of a hook as a stop is stored. */
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

/** A copy of a context that nobody else can change; what is no JSON is left to the store to refuse. */
export const ownContext = (context: JsonObject): JsonObject => {
  const copy = take(context)
  return Result.isSuccess(copy) && isJsonObject(copy.success) ? copy.success : context
}

/**
 * Goes on after the settle hook of the phase just committed, which runs once;
 * stops when the hook paused or ended the run.
 */
export const settle = <More extends object>(
  run: Run,
  name: keyof Hooks,
  hook: ((args: HookArgs & More) => Effect.Effect<HookResult | void, unknown>) | undefined,
  more: More,
  next: (run: Run) => Effect.Effect<void, KernelError>,
  stop: (run: Run, control: Stop) => Effect.Effect<void, KernelError> = obey
): Effect.Effect<void, KernelError> => {
  if (hook === undefined || run.settled || run.state.settledRevision >= run.state.phaseRevision) return next(run)
  // A failing hook has been asked too, and is not asked again (DR-8).
  run.settled = true
  return Effect.flatMap(
    ask(run, name, () => hook(hookArgs(run, more))),
    ({ control }) => {
      if (control === undefined || (control.type === "continue" && name !== "onTurnCompleted")) return next(run)
      // No record tells what it asked for: until that turn begins, or the run has ended, it was not heard.
      run.settled = stop !== obey
      if (control.type !== "continue") return stop(run, control)
      run.goesOn = true
      return next(run)
    }
  )
}

/** Pauses or finishes the run as a hook asked. */
export const obey = (run: Run, control: Stop): Effect.Effect<void, KernelError> =>
  control.type === "pause"
    ? pause(run, control.reason ?? noReason, control.metadata ?? null, run.unkept)
    : complete(run, "caller", control.reason, control.metadata)

// A pause needs no reason (DR-3), whoever reads of it wants a word.
const noReason = "paused by a hook"

/** What was asked for while calls are under way, in this life of the run or in an earlier one. */
export const deferred = (run: Run): Stop | undefined => run.state.deferred ?? run.deferred

/** Lets what a hook or a task asks for wait until the calls under way have ended: the first to ask is heard. */
export const defer = (run: Run, control: Stop): void => {
  if (deferred(run) === undefined) run.deferred = control
}

/** Pauses the run where it stands (DR-9). */
export const pause = (run: Run, reason: string, metadata: Json, delta?: Delta): Effect.Effect<void, KernelError> =>
  Effect.andThen(
    commit(run, "pause", [{ type: "paused", reason, metadata }], delta),
    observePause(run, reason, metadata)
  )

/** Tells the observer; what it does wrong is logged and changes nothing (DR-8). */
export const observePause = (run: Run, reason: string, metadata: Json): Effect.Effect<unknown, CommitError> => {
  const hook = run.hooks.onPause
  return hook === undefined
    ? Effect.void
    : Effect.flatMap(flush(run), () => observed("onPause", () => hook(hookArgs(run, { reason, metadata }))))
}

/** Ends the run: onRunCompleted may pause this, but not undo it (DR-10). */
export const complete = Effect.fnUntraced(function* (
  run: Run,
  source: RunSource,
  reason?: string | undefined,
  metadata?: Json | undefined
) {
  const end = { source, ...(reason === undefined ? {} : { reason }), ...(metadata === undefined ? {} : { metadata }) }
  const hook = run.hooks.onRunCompleted
  if (hook !== undefined) {
    const result = yield* ask(run, "onRunCompleted", () => hook(hookArgs(run, { source, reason })))
    if (result.control?.type === "pause") {
      const { metadata = null, reason = noReason } = result.control
      return yield* pause(run, reason, metadata, { ...run.unkept, completing: end })
    }
  }
  yield* commit(run, "phase", [{ type: "run_completed", ...end }], run.unkept)
})

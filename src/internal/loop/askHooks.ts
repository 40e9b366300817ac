/**
 * Asks hooks, and does what they ask for.
 *
 * A hook is asked about a run whose records are all stored, so whatever it does rests on facts. A settle hook is asked
 * once for its phase: the next record says so.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Control, HookArgs, HookResult, Hooks } from "../../Hooks.ts"
import type { Delta, RunSource, Stop } from "../../RunState.ts"
import { extensionError, guarded, observed } from "../base/foreignCode.ts"
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts"
import { freeze, take } from "../base/snapshot.ts"
import { sealed, turnLog } from "../state/state.ts"
import { commit, flush } from "./commit.ts"
import type { FlushError } from "../store/storeGuard.ts"
import { type HookError, type Run, carry, drop, mergeContext } from "../run/run.ts"

/** The arguments of a hook, frozen at every depth: a hook cannot change the run through them. */
export const hookArgs = <More extends object>(run: Run, more: More): HookArgs & More =>
  freeze({
    state: sealed(run.state),
    turn: run.state.currentTurn ?? turnLog(run.state).last(),
    context: run.state.context,
    commitKey: `${run.state.runId}:${run.state.phaseRevision}`,
    ...more
  })

/** The value of a hook, and the stop or the further turn it asked for. */
export interface Asked<out A> {
  readonly value?: A | undefined
  readonly control?: Stop | { readonly type: "continue" } | undefined
}

/** Stores what is pending and asks a hook. The context it returns is merged into the run. */
export const ask = <A>(
  run: Run,
  name: keyof Hooks,
  hook: () => Effect.Effect<HookResult<A> | void, unknown>
): Effect.Effect<Asked<A>, HookError> => {
  const asked = guarded(
    name,
    () => run.restore(Effect.suspend(hook)),
    (error) => extensionError(name, error)
  )
  return Effect.flatMap(flush(run), () =>
    Effect.map(asked, (result) => {
      if (result === undefined) return {}
      const { context, control, value } = result
      if (context !== undefined) mergeContext(run, ownContext(context))
      return { value, control: control === undefined ? undefined : stopOf(control) }
    })
  )
}

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

/** A copy of a context that nobody else can change. A store refuses what is not JSON. */
export const ownContext = (context: JsonObject): JsonObject => {
  const copy = take(context)
  return Result.isSuccess(copy) && isJsonObject(copy.success) ? copy.success : context
}

/** Does the settle hook of the phase just recorded still have to be asked? */
const isSettled = ({ next, state }: Run): boolean =>
  next.settled === true || state.settledRevision >= state.phaseRevision

/**
 * Asks the settle hook of the phase just recorded, unless it was asked before. Returns what it asked for instead of the
 * next step. A hook that fails has been asked, too.
 */
export const settle = <More extends object>(
  run: Run,
  name: keyof Hooks,
  hook: ((args: HookArgs & More) => Effect.Effect<HookResult | void, unknown>) | undefined,
  more: More
): Effect.Effect<Asked<never>["control"], HookError> => {
  if (hook === undefined || isSettled(run)) return Effect.undefined
  return Effect.suspend(() => {
    carry(run, { settled: true })
    return Effect.map(
      ask(run, name, () => hook(hookArgs(run, more))),
      ({ control }) => (control?.type === "continue" && name !== "onTurnCompleted" ? undefined : control)
    )
  })
}

/** Continues after a settle hook, or stops the run as the hook asked. */
export const settled = <More extends object, E>(
  run: Run,
  name: keyof Hooks,
  hook: ((args: HookArgs & More) => Effect.Effect<HookResult | void, unknown>) | undefined,
  more: More,
  next: (run: Run) => Effect.Effect<void, E>
): Effect.Effect<void, E | HookError> =>
  hook === undefined
    ? next(run)
    : Effect.flatMap(settle(run, name, hook, more), (control): Effect.Effect<void, E | HookError> =>
        control === undefined || control.type === "continue" ? next(run) : obeyOnce(run, control)
      )

/** Stops the run as a settle hook asked. Until that is recorded the hook counts as not asked, so a crash asks again. */
export const obeyOnce = (run: Run, control: Stop): Effect.Effect<void, HookError> =>
  Effect.suspend(() => {
    drop(run, "settled")
    return obey(run, control)
  })

/** Pauses or finishes the run as a hook asked. */
export const obey = (run: Run, control: Stop): Effect.Effect<void, HookError> =>
  control.type === "pause"
    ? pause(run, control.reason ?? noReason, control.metadata ?? null)
    : complete(run, "caller", control.reason, control.metadata)

// A hook may pause without a reason; readers of the journal want one.
const noReason = "paused by a hook"

/** The stop that a hook or a task asked for while calls were under way, in this process or in an earlier one. */
export const deferred = ({ next, state }: Run): Stop | undefined => state.deferred ?? next.deferred

/** Keeps a stop until the calls under way have ended. The first one asked for wins. */
export const defer = (run: Run, control: Stop): void => {
  if (deferred(run) === undefined) carry(run, { deferred: control })
}

/** Does what was asked for while calls were under way, if anything was. */
export const stopDeferred = (run: Run): Effect.Effect<void, HookError> => {
  const control = deferred(run)
  return control === undefined ? Effect.void : obey(run, control)
}

/** Pauses the run where it stands. */
export const pause = (run: Run, reason: string, metadata: Json, delta: Delta = {}): Effect.Effect<void, HookError> =>
  Effect.suspend(() => {
    commit(run, "pause", [{ type: "paused", reason, metadata }], delta)
    return observePause(run, reason, metadata)
  })

/** Reports a pause to its observer, whose failures are logged and change nothing. */
export const observePause = (run: Run, reason: string, metadata: Json): Effect.Effect<unknown, FlushError> => {
  const hook = run.hooks.onPause
  return hook === undefined
    ? Effect.void
    : Effect.flatMap(flush(run), () =>
        run.restore(observed("onPause", () => hook(hookArgs(run, { reason, metadata }))))
      )
}

/** Ends the run. `onRunCompleted` may pause it before; resumed, it ends. */
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

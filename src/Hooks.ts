/**
 * What happens next at a phase of a run (DR-8 to DR-11).
 *
 * A hook sees the state at its phase and may answer with a change of the run's
 * context, a value the phase asks for, or a control: pause, finish, continue.
 * `onTurnPrepared`, `onToolCallsStarted` and `onToolCallStarted` are asked before
 * the commit of their phase, and again after a pause; `onRunCompleted` and
 * `onRunFailed` before the run ends. The others are asked after it, so that no
 * hook can lose a result. Observers (`onStreamPart`, `onModelRestarted`,
 * `onPause`) change nothing.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Call, CallError, CallResult } from "./Call.ts"
import type { Content } from "./Content.ts"
import * as Contents from "./Content.ts"
import type { Generation } from "./Generation.ts"
import { closeOver, type Needs } from "./internal/base/effects.ts"
import type { Json, JsonObject } from "./internal/base/json.ts"
import type { ErrorInfo, RunSource, RunState, Turn } from "./RunState.ts"
import type { Message } from "./Message.ts"
import type { Model } from "./Model.ts"
import type { StreamPart } from "./StreamPart.ts"

/**
 * What a hook may ask for instead of going on.
 *
 * @category models
 * @since 0.1.0
 */
export type Control =
  | { readonly _tag: "Pause"; readonly reason?: string; readonly metadata?: Json }
  | { readonly _tag: "Finish"; readonly reason?: string; readonly metadata?: Json }
  /** Asks for another turn; only `onTurnCompleted` may, and is asked again when the run fails before that turn. */
  | { readonly _tag: "Continue" }

/**
 * A hook's answer. The context is merged first; a control beats a value.
 *
 * @category models
 * @since 0.1.0
 */
export interface HookResult<out A = never> {
  readonly context?: JsonObject | undefined
  readonly value?: A | undefined
  readonly control?: Control | undefined
}

/**
 * What every hook is given. State is frozen data: changing it changes nothing.
 *
 * @category models
 * @since 0.1.0
 */
export interface HookArgs {
  readonly state: RunState
  readonly turn: Turn | undefined
  readonly context: JsonObject
  /** `<runId>:<revision>`: the same key when the hook runs again after a crash. */
  readonly commitKey: string
}

/**
 * The prompt a turn is about to be asked with.
 *
 * @category models
 * @since 0.1.0
 */
export interface Prepared {
  readonly system: string | null
  readonly messages: ReadonlyArray<Message>
  readonly model?: Model | undefined
  readonly generation?: Generation | undefined
}

/**
 * What a hook makes of a call at its review: other arguments, or a result that stands in for running it (DR-11).
 *
 * @category models
 * @since 0.1.0
 */
export type Review =
  | { readonly _tag: "Rewrite"; readonly input: Json }
  | { readonly _tag: "Skip"; readonly result: Pick<CallResult, "output"> | Pick<CallResult, "error"> }

type Hook<Args, A, E, R> = (args: HookArgs & Args) => Effect.Effect<HookResult<A> | void, E, R>
type Observer<Args, E, R> = (args: HookArgs & Args) => Effect.Effect<void, E, R>

/**
 * Hooks as they are written: each optional, with failures and needs of its own.
 *
 * It has a name of its own because inference of `E` and `R` fails where a
 * generic interface shares its name with a value.
 *
 * @category models
 * @since 0.1.0
 */
export interface Given<out E, out R> {
  /** The run is stored; nothing has been asked yet. */
  readonly onRunStarted?: Hook<object, never, E, R> | undefined
  /** A turn is open; its prompt is not made yet. */
  readonly onTurnStarted?: Hook<object, never, E, R> | undefined
  /** The prompt of the turn is made; the model is asked with the value instead, if there is one. */
  readonly onTurnPrepared?: Hook<{ readonly prepared: Prepared }, Prepared, E, R> | undefined
  /**
   * The model is about to be asked. When the process dies before the hook's answer is stored, the model is asked again
   * but the hook is not: `onModelRestarted` is told instead (DR-15). To stop a run before its model after a crash, too,
   * use `onTurnPrepared`.
   */
  readonly onModelStarted?: Hook<object, never, E, R> | undefined
  /** Told in place of `onModelStarted` when a run goes on that stopped, or was cut off, while its model was asked. */
  readonly onModelRestarted?: Observer<object, E, R> | undefined
  /** A part of the reply, as it comes in. */
  readonly onStreamPart?: ((part: StreamPart) => Effect.Effect<void, E, R>) | undefined
  /** The reply is stored. `raw` are the provider's parts of it; they are never stored (DR-27). */
  readonly onModelCompleted?: Hook<{ readonly raw: ReadonlyArray<StreamPart> }, never, E, R> | undefined
  /** The calls of the reply, before their review; the value is these calls rewritten, some of them, or another order (DR-11). */
  readonly onToolCallsStarted?: Hook<{ readonly calls: ReadonlyArray<Call> }, ReadonlyArray<Call>, E, R> | undefined
  /** One call at its review; none is run before all were reviewed (DR-11). See `rewrite` and `skip`. */
  readonly onToolCallStarted?: Hook<{ readonly call: Call }, Review, E, R> | undefined
  /** A call has run and its result is stored. To change results, use a middleware (`Middleware.layerTool`). */
  readonly onToolCallCompleted?: Hook<{ readonly result: CallResult }, never, E, R> | undefined
  /** Every call of the turn has its result. */
  readonly onToolCallsCompleted?: Hook<object, never, E, R> | undefined
  /** The turn is over; `continue` asks for another one. */
  readonly onTurnCompleted?: Hook<object, never, E, R> | undefined
  /**
   * The run is about to end; a hook may only pause it before it does, and then it ends when it is resumed (DR-10). When
   * this hook fails, so does the run: resumed, it comes to its end again, and the hook that finished it may be asked
   * again.
   */
  readonly onRunCompleted?:
    | Hook<{ readonly source: RunSource; readonly reason: string | undefined }, never, E, R>
    | undefined
  /** The run waits. */
  readonly onPause?: Observer<{ readonly reason: string; readonly metadata: Json }, E, R> | undefined
  /** The run is about to fail; only its context can be changed. */
  readonly onRunFailed?: Hook<{ readonly error: ErrorInfo }, never, E, R> | undefined
}

/**
 * The hooks of a run, closed over what they need.
 *
 * @category models
 * @since 0.1.0
 */
export interface Hooks extends Given<unknown, never> {}

// ---------------------------------------------------------------- answers

/**
 * The call runs with these arguments instead of its own. A call that a person or a policy allowed is asked about again
 * when its arguments changed (AC-19).
 *
 * @category constructors
 * @since 0.1.0
 */
export const rewrite = (input: Json): HookResult<Review> => ({ value: { _tag: "Rewrite", input } })

/**
 * The call does not run: a text, contents, or an error (`Call.error`) stands in for what it would have given.
 *
 * @category constructors
 * @since 0.1.0
 */
export const skip = (result: string | ReadonlyArray<Content> | CallError): HookResult<Review> => {
  if (typeof result === "string") return skip([Contents.text(result)])
  return { value: { _tag: "Skip", result: isContents(result) ? { output: result } : { error: result } } }
}

/**
 * The run waits until it is resumed, and tells why (DR-9).
 *
 * @category constructors
 * @since 0.1.0
 */
export const pause = (reason?: string, metadata?: Json): HookResult => ({ control: stop("Pause", reason, metadata) })

/**
 * The run ends here (DR-10). Without an answer of the model, `Kernel.run` fails with `RunFinished`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const finish = (reason?: string, metadata?: Json): HookResult => ({ control: stop("Finish", reason, metadata) })

const stop = (_tag: "Pause" | "Finish", reason: string | undefined, metadata: Json | undefined): Control => ({
  _tag,
  ...(reason === undefined ? {} : { reason }),
  ...(metadata === undefined ? {} : { metadata })
})

const isContents = (result: ReadonlyArray<Content> | CallError): result is ReadonlyArray<Content> =>
  Array.isArray(result)

// ---------------------------------------------------------------- hooks

/**
 * The hooks of a run. None by default.
 *
 * @category references
 * @since 0.1.0
 */
export const Hooks: Context.Reference<Hooks> = Context.Reference<Hooks>("kernai/Hooks", {
  defaultValue: () => ({})
})

/**
 * What hooks need, together.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<H> = { readonly [K in keyof H]-?: Needs<H[K]> }[keyof H]

/**
 * Closes hooks over the services they need. Any failure of a hook fails the run where it stands; that of an observer,
 * or of `onRunFailed`, is logged. A run has one set of hooks: those of the running fiber, or else of the innermost layer.
 *
 * @category layers
 * @since 0.1.0
 */
export function layer<const H extends Given<unknown, unknown>>(
  // A name that no hook has is refused: nobody would ask it.
  hooks: H & { readonly [K in Exclude<keyof H, keyof Hooks>]: never }
): Layer.Layer<never, never, Services<H>>
export function layer(hooks: Given<unknown, unknown>): Layer.Layer<never, never, unknown> {
  return Layer.effect(
    Hooks,
    Effect.map(Effect.context<unknown>(), (services) => close(hooks, services))
  )
}

/**
 * Gives hooks their services; those of the running fiber win.
 *
 * @category combinators
 * @since 0.1.0
 */
export const close = <E, R>(hooks: Given<E, R>, services: Context.Context<R>): Hooks => {
  const own = closeOver(services)
  const provide = <Args extends ReadonlyArray<unknown>, A>(
    hook: ((...args: Args) => Effect.Effect<A, E, R>) | undefined
  ) => (hook === undefined ? undefined : (...args: Args): Effect.Effect<A, E> => own(hook(...args)))
  const closed = {
    onRunStarted: provide(hooks.onRunStarted),
    onTurnStarted: provide(hooks.onTurnStarted),
    onTurnPrepared: provide(hooks.onTurnPrepared),
    onModelStarted: provide(hooks.onModelStarted),
    onModelRestarted: provide(hooks.onModelRestarted),
    onStreamPart: provide(hooks.onStreamPart),
    onModelCompleted: provide(hooks.onModelCompleted),
    onToolCallsStarted: provide(hooks.onToolCallsStarted),
    onToolCallStarted: provide(hooks.onToolCallStarted),
    onToolCallCompleted: provide(hooks.onToolCallCompleted),
    onToolCallsCompleted: provide(hooks.onToolCallsCompleted),
    onTurnCompleted: provide(hooks.onTurnCompleted),
    onRunCompleted: provide(hooks.onRunCompleted),
    onPause: provide(hooks.onPause),
    onRunFailed: provide(hooks.onRunFailed)
  }
  return present(closed)
}

/** Leaves out the hooks that are not there: an absent hook costs nothing. */
const present = (hooks: { readonly [K in keyof Hooks]: Hooks[K] | undefined }): Hooks => {
  const found: { [K in keyof Hooks]: Hooks[K] } = {}
  return Object.assign(found, Object.fromEntries(Object.entries(hooks).filter(([, hook]) => hook !== undefined)))
}

/**
 * Reacts to the phases of a run, and changes what happens next.
 *
 * A hook receives the state at its phase. It returns nothing to let the run continue, or a `HookResult` with up to
 * three parts: `context` is merged into the context of the run, `value` replaces what the phase is about to use (a
 * prompt, the calls, a call's input or result), and `control` pauses or finishes the run, or asks for another turn.
 *
 * `onTurnPrepared`, `onToolCallsStarted` and `onToolCallStarted` run before their phase is stored, and again after a
 * pause. `onRunCompleted` and `onRunFailed` run before the end of the run is stored. All other hooks run after their
 * phase is stored, so no hook can lose a result. The observers `onStreamPart`, `onModelRestarted` and `onPause` cannot
 * change the run.
 *
 * Hooks combine wherever they are provided, those of the kernel before those of the running fiber: each one works on
 * what those before it returned.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import type { Call, CallError, CallResult } from "./Call.ts"
import type { Caller } from "./Caller.ts"
import type { Content } from "./Content.ts"
import * as Contents from "./Content.ts"
import type { Generation } from "./Generation.ts"
import * as AddedParts from "./kit/addedParts.ts"
import { type Needs, closeOver } from "./kit/foreignCode.ts"
import type { Json, JsonObject } from "./kit/json.ts"
import type { ErrorInfo, RunSource, RunState, Turn } from "./RunState.ts"
import type { Message } from "./Message.ts"
import type { Model } from "./Model.ts"
import type { StreamPart } from "./StreamPart.ts"

/**
 * Pauses or finishes a run, or asks for another turn.
 *
 * @category models
 * @since 0.1.0
 */
export type Control =
  | { readonly _tag: "Pause"; readonly reason?: string; readonly metadata?: Json }
  | { readonly _tag: "Finish"; readonly reason?: string; readonly metadata?: Json }
  /**
   * Asks for another turn. Only `onTurnCompleted` may return it; the hook runs again if the run fails before that turn.
   */
  | { readonly _tag: "Continue" }

/**
 * The result of a hook. Its context is merged first. With a control, its value is ignored.
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
 * The arguments of every hook. They are frozen; return a `HookResult` to change the run.
 *
 * @category models
 * @since 0.1.0
 */
export interface HookArgs {
  readonly state: RunState
  readonly turn: Turn | undefined
  readonly context: JsonObject
  /** The caller who started the tree of the run, if it was given. */
  readonly caller: Caller | undefined
  /**
   * `<runId>:<revision>`: the same key when the hook runs again after a crash. Use it to make side effects idempotent.
   */
  readonly commitKey: string
}

/**
 * The prompt that a turn is about to send to the model.
 *
 * @category models
 * @since 0.1.0
 */
export interface Prepared {
  readonly system: string | null
  readonly messages: ReadonlyArray<Message>
  /**
   * Another model for this turn. One of another provider, named by its `provider` or as `<provider>/<model>`, needs a
   * `ModelRegistry`; without it the run fails.
   */
  readonly model?: Model | undefined
  readonly generation?: Generation | undefined
}

/**
 * A decision about a call before it runs: run it with another input, or use a result without running it.
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
 * Hooks as an application writes them: all optional, with any failures and services.
 *
 * Kept apart from `Hooks` because inference of `E` and `R` fails where a generic interface shares its name with a
 * value.
 *
 * @category models
 * @since 0.1.0
 */
export interface Given<out E, out R> {
  /** The run is stored; the model has not been asked yet. */
  readonly onRunStarted?: Hook<object, never, E, R> | undefined
  /**
   * A stored run continues in this process: after a pause, a crash, a failure or `submit`, or as a fork, which the state
   * names as `forkedFrom`. Nothing else has run yet. Only the context can be changed.
   */
  readonly onRunResumed?: Hook<object, never, E, R> | undefined
  /** A turn has started; its prompt has not been built yet. */
  readonly onTurnStarted?: Hook<object, never, E, R> | undefined
  /** The prompt of the turn is built. A returned value is sent to the model instead. */
  readonly onTurnPrepared?: Hook<{ readonly prepared: Prepared }, Prepared, E, R> | undefined
  /**
   * The model is about to be asked. If the process dies before the result of this hook is stored, the model is asked
   * again without this hook, and `onModelRestarted` runs instead. Use `onTurnPrepared` for a stop that must also hold
   * after a crash.
   */
  readonly onModelStarted?: Hook<object, never, E, R> | undefined
  /** Runs instead of `onModelStarted` when a run continues that stopped while its model was being asked. */
  readonly onModelRestarted?: Observer<object, E, R> | undefined
  /** Runs for each part of a reply as it arrives. */
  readonly onStreamPart?: ((part: StreamPart) => Effect.Effect<void, E, R>) | undefined
  /** The reply is stored. `raw` holds the provider's parts of the reply, which are not stored. */
  readonly onModelCompleted?: Hook<{ readonly raw: ReadonlyArray<StreamPart> }, never, E, R> | undefined
  /**
   * The calls of the reply, before their review. A returned value replaces them: the calls rewritten, reordered, or
   * some of them.
   */
  readonly onToolCallsStarted?: Hook<{ readonly calls: ReadonlyArray<Call> }, ReadonlyArray<Call>, E, R> | undefined
  /**
   * A call at its review. All calls are reviewed before the first one runs. Return `rewrite` or `skip` to change the
   * call.
   */
  readonly onToolCallStarted?: Hook<{ readonly call: Call }, Review, E, R> | undefined
  /** A call has run and its result is stored. Use a middleware (`Middleware.layerTool`) to change results. */
  readonly onToolCallCompleted?: Hook<{ readonly result: CallResult }, never, E, R> | undefined
  /** Every call of the turn has a result. */
  readonly onToolCallsCompleted?: Hook<object, never, E, R> | undefined
  /** The turn is over. Return the control `Continue` for another turn. */
  readonly onTurnCompleted?: Hook<object, never, E, R> | undefined
  /**
   * The run is about to end. The only control allowed is a pause; the run then ends when it is resumed. If this hook
   * fails, the run fails: when resumed, it reaches its end again, and a hook that finished it may run again.
   */
  readonly onRunCompleted?:
    | Hook<{ readonly source: RunSource; readonly reason: string | undefined }, never, E, R>
    | undefined
  /** The run has paused. */
  readonly onPause?: Observer<{ readonly reason: string; readonly metadata: Json }, E, R> | undefined
  /** The run is about to fail. Only its context can be changed. */
  readonly onRunFailed?: Hook<{ readonly error: ErrorInfo }, never, E, R> | undefined
}

/**
 * The hooks of a run, with their services provided.
 *
 * @category models
 * @since 0.1.0
 */
export interface Hooks extends Given<unknown, never> {}

// ---------------------------------------------------------------- answers

/**
 * Runs the call with this input instead of its own. A call that a person or a policy already allowed is reviewed again
 * when its input changes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const rewrite = (input: Json): HookResult<Review> => ({ value: { _tag: "Rewrite", input } })

/**
 * Skips the call and uses this as its result: a text, contents, or an error (`Call.error`).
 *
 * @category constructors
 * @since 0.1.0
 */
export const skip = (result: string | ReadonlyArray<Content> | CallError): HookResult<Review> => {
  if (typeof result === "string") return skip([Contents.text(result)])
  return { value: { _tag: "Skip", result: isContents(result) ? { output: result } : { error: result } } }
}

/**
 * Pauses the run until it is resumed. The reason and metadata go into the `paused` event and into `RunPaused`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const pause = (reason?: string, metadata?: Json): HookResult => ({ control: stop("Pause", reason, metadata) })

/**
 * Ends the run. Without an answer of the model, `Kernel.run` fails with `RunFinished`.
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
 * Hooks given as a value. None by default. Hooks of layers are kept beside it (see `among`).
 *
 * @category references
 * @since 0.1.0
 */
export const Hooks: Context.Reference<Hooks | undefined> = Context.Reference<Hooks | undefined>("kernai/Hooks", {
  defaultValue: () => undefined
})

const parts = AddedParts.of(Hooks)

/**
 * Combines all hooks of the given contexts, outermost first. Each set of hooks runs once.
 *
 * @category getters
 * @since 0.1.0
 */
export const among = (...contexts: ReadonlyArray<Context.Context<never>>): Hooks =>
  parts.among(...contexts).reduce<Hooks>(combine, {})

/**
 * Combines two sets of hooks. At each phase the hook of the first one runs, then that of the second.
 *
 * The second hook gets the context, the prompt, the calls or the input that the first one returned, and what it returns
 * itself comes last. It does not run if the first one pauses or finishes the run, skips the call, or fails. Another turn
 * is taken if either asks for one and neither stops the run. Both observers run, whatever the first one does.
 *
 * @category combinators
 * @since 0.1.0
 */
export const combine: {
  (b: Hooks): (a: Hooks) => Hooks
  (a: Hooks, b: Hooks): Hooks
} = /* @__PURE__ */ dual(2, (a: Hooks, b: Hooks): Hooks =>
  present({
    onRunStarted: inTurn(a.onRunStarted, b.onRunStarted),
    onRunResumed: inTurn(a.onRunResumed, b.onRunResumed),
    onTurnStarted: inTurn(a.onTurnStarted, b.onTurnStarted),
    onTurnPrepared: inTurn(a.onTurnPrepared, b.onTurnPrepared, (args, prepared) => ({ ...args, prepared })),
    onModelStarted: inTurn(a.onModelStarted, b.onModelStarted),
    onModelRestarted: both(a.onModelRestarted, b.onModelRestarted),
    onStreamPart: both(a.onStreamPart, b.onStreamPart),
    onModelCompleted: inTurn(a.onModelCompleted, b.onModelCompleted),
    onToolCallsStarted: inTurn(a.onToolCallsStarted, b.onToolCallsStarted, (args, calls) => ({ ...args, calls })),
    onToolCallStarted: inTurn(a.onToolCallStarted, b.onToolCallStarted, (args, review) =>
      review._tag === "Skip" ? undefined : { ...args, call: { ...args.call, input: review.input } }
    ),
    onToolCallCompleted: inTurn(a.onToolCallCompleted, b.onToolCallCompleted),
    onToolCallsCompleted: inTurn(a.onToolCallsCompleted, b.onToolCallsCompleted),
    onTurnCompleted: inTurn(a.onTurnCompleted, b.onTurnCompleted),
    onRunCompleted: inTurn(a.onRunCompleted, b.onRunCompleted),
    onPause: both(a.onPause, b.onPause),
    onRunFailed: inTurn(a.onRunFailed, b.onRunFailed)
  })
)

type Closed<Args, A> = Hook<Args, A, unknown, never>

/**
 * Runs two hooks in turn. `pass` returns the arguments of the second one with the value of the first one, or undefined
 * if that value is the last word.
 */
const inTurn = <Args, A>(
  first: Closed<Args, A> | undefined,
  second: Closed<Args, A> | undefined,
  pass: (args: HookArgs & Args, value: A) => (HookArgs & Args) | undefined = (args) => args
): Closed<Args, A> | undefined =>
  first === undefined || second === undefined
    ? (first ?? second)
    : (args) =>
        Effect.flatMap(first(args), (one) => {
          if (one === undefined) return second(args)
          const { context, control, value } = one
          const given = context === undefined ? args : { ...args, context: { ...args.context, ...context } }
          const next = value === undefined ? given : pass(given, value)
          if (next === undefined || (control !== undefined && control._tag !== "Continue")) return Effect.succeed(one)
          return Effect.map(second(next), (two) => ({
            context: two?.context === undefined ? context : { ...context, ...two.context },
            value: two?.value ?? value,
            control: two?.control ?? control
          }))
        })

/** Runs two observers. The failure of the first one does not keep the second one from running. */
const both = <Args extends ReadonlyArray<unknown>>(
  first: ((...args: Args) => Effect.Effect<void, unknown>) | undefined,
  second: ((...args: Args) => Effect.Effect<void, unknown>) | undefined
): ((...args: Args) => Effect.Effect<void, unknown>) | undefined =>
  first === undefined || second === undefined
    ? (first ?? second)
    : (...args) =>
        Effect.flatMap(Effect.exit(Effect.suspend(() => first(...args))), (exit) =>
          Effect.andThen(second(...args), exit)
        )

/**
 * The services that a set of hooks needs.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<H> = { readonly [K in keyof H]-?: Needs<H[K]> }[keyof H]

/**
 * Provides hooks with the services they need. A hook that fails fails the run at its last record. Failures of observers
 * and of `onRunFailed` are logged only. The hooks combine with the existing ones and with those beside them in the same
 * list of layers (see `combine`).
 *
 * @category layers
 * @since 0.1.0
 */
export function layer<const H extends Given<unknown, unknown>>(
  // Rejects misspelt names: a hook with an unknown name would never run.
  hooks: H & { readonly [K in Exclude<keyof H, keyof Hooks>]: never }
): Layer.Layer<never, never, Services<H>>
export function layer(hooks: Given<unknown, unknown>): Layer.Layer<never, never, unknown> {
  return parts.layer(Effect.map(Effect.context<unknown>(), (services) => close(hooks, services)))
}

/**
 * Provides hooks with their services. Services of the running fiber win.
 *
 * @category converting
 * @since 0.1.0
 */
export const close = <E, R>(hooks: Given<E, R>, services: Context.Context<R>): Hooks => {
  const own = closeOver(services)
  const provide = <Args extends ReadonlyArray<unknown>, A>(
    hook: ((...args: Args) => Effect.Effect<A, E, R>) | undefined
  ) => (hook === undefined ? undefined : (...args: Args): Effect.Effect<A, E> => own(hook(...args)))
  const closed = {
    onRunStarted: provide(hooks.onRunStarted),
    onRunResumed: provide(hooks.onRunResumed),
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

/** Removes absent hooks, which then cost nothing. */
const present = (hooks: { readonly [K in keyof Hooks]: Hooks[K] | undefined }): Hooks => {
  const found: { [K in keyof Hooks]: Hooks[K] } = {}
  return Object.assign(found, Object.fromEntries(Object.entries(hooks).filter(([, hook]) => hook !== undefined)))
}

/**
 * Wraps the model call and the calls a model makes.
 *
 * The first middleware of a list is the outermost. `next` may be called any number of times, and with changed input. A
 * skill that fails gives a result with an error, not a failure of the Effect. A middleware that fails fails the run;
 * use `MiddlewareTermination` to end the run on purpose.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Stream from "effect/Stream"
import type { Call, CallResult } from "./Call.ts"
import type { Scope } from "./Caller.ts"
import * as AddedParts from "./kit/addedParts.ts"
import { closeOver } from "./kit/foreignCode.ts"
import { extensionError } from "./internal/errors/extensionError.ts"
import type {
  ExtensionFailed,
  MiddlewareTermination,
  ModelCallError,
  ProgramError,
  ProviderError
} from "./KernelError.ts"
import type { Message } from "./Message.ts"
import type { ProviderShape, Request } from "./Provider.ts"
import type { StreamPart } from "./StreamPart.ts"

/**
 * A model call on its way to the provider.
 *
 * @category models
 * @since 0.1.0
 */
export interface ModelCall extends Scope {
  /** The turn, counted from 0. */
  readonly step: number
  readonly provider: ProviderShape<ProgramError>
  readonly request: Request
}

/**
 * The reply of a model call.
 *
 * @category models
 * @since 0.1.0
 */
export type ModelStream = Stream.Stream<StreamPart, ModelCallError>

/**
 * A call on its way to its skill or protocol.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolRun extends Scope {
  /** The turn, counted from 0. */
  readonly step: number
  readonly messages: ReadonlyArray<Message>
  readonly call: Call
}

/**
 * The result of a call. A failing skill is a result with an error; a failure here fails the run, or ends it on purpose.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolEffect = Effect.Effect<CallResult, MiddlewareTermination | ExtensionFailed>

/**
 * A reply that failed after its first parts.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReplyFailure {
  readonly error: ProviderError
  /** Counts the model calls of this turn, from 1. */
  readonly attempt: number
}

/**
 * A wrapper around model calls and tool calls.
 *
 * @category models
 * @since 0.1.0
 */
export interface Middleware {
  readonly callModel?: ((call: ModelCall, next: (call: ModelCall) => ModelStream) => ModelStream) | undefined
  /**
   * Decides whether to ask the model again after a reply broke off, and waits before it returns. The text received so
   * far is withdrawn: `model_restarted` names the new attempt. If every middleware returns false, the run fails with
   * the error.
   */
  readonly shouldRestart?: ((failure: ReplyFailure) => Effect.Effect<boolean>) | undefined
  readonly callTool?: ((run: ToolRun, next: (run: ToolRun) => ToolEffect) => ToolEffect) | undefined
}

/**
 * Middleware given as a value, outermost first. None by default. Middleware of layers is kept beside it (see `among`).
 *
 * @category references
 * @since 0.1.0
 */
export const Middleware: Context.Reference<ReadonlyArray<Middleware>> = Context.Reference<ReadonlyArray<Middleware>>(
  "kernai/Middleware",
  { defaultValue: () => [] }
)

const parts = AddedParts.of(Middleware)

/**
 * Returns all middleware of the given contexts, outermost first, each once.
 *
 * @category getters
 * @since 0.1.0
 */
export const among = (...contexts: ReadonlyArray<Context.Context<never>>): ReadonlyArray<Middleware> =>
  parts.among(...contexts)

/**
 * Adds middleware inside the existing ones, those of the kernel around those of the running fiber. Layers beside each
 * other in one list are all added; nest them with `Layer.provide` where their order matters, the inner first.
 *
 * Use `layerTool` for middleware around tool calls that needs services, and `layerEffect` for middleware around model
 * calls.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (...middleware: ReadonlyArray<Middleware>): Layer.Layer<never> =>
  layerEffect(Effect.succeed(middleware))

/**
 * Adds middleware that is made with services, as `layer` does.
 *
 * @example
 * const Costs = Middleware.layerEffect(
 *   Effect.map(Ledger, (ledger) => [
 *     {
 *       callModel: (call, next) =>
 *         Stream.tap(next(call), (part) => (part.type === "finish" ? ledger.add(part.usage) : Effect.void))
 *     }
 *   ])
 * )
 *
 * @category layers
 * @since 0.1.0
 */
export const layerEffect = <E, R>(
  middleware: Effect.Effect<ReadonlyArray<Middleware>, E, R>
): Layer.Layer<never, E, R> => parts.layer(middleware)

/**
 * Wraps tool calls with a function that may need services and may fail. Any failure except a termination fails the run.
 * Added as with `layer`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerTool = <E, R>(
  callTool: (
    run: ToolRun,
    next: (run: ToolRun) => ToolEffect
  ) => Effect.Effect<CallResult, E | MiddlewareTermination, R>
): Layer.Layer<never, never, R> =>
  layerEffect(
    Effect.map(Effect.context<R>(), (services) => {
      const provide = closeOver(services)
      return [
        {
          callTool: (run, next) =>
            Effect.mapError(provide(callTool(run, next)), (error) => extensionError("callTool", error))
        }
      ]
    })
  )

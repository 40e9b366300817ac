/**
 * Wraps the model call and the calls a model makes (DR-23).
 *
 * The first of a list is outermost; `next` may be called any number of times and
 * with a changed input. What a skill does wrong is a result, not a failure: a
 * middleware that fails itself fails the run, and one that fails with
 * `MiddlewareTermination` ends it on purpose (CP-16).
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Stream from "effect/Stream"
import type { Call, CallResult } from "./Call.ts"
import { closeOver, extensionError } from "./internal/base/effects.ts"
import type { JsonObject } from "./internal/base/json.ts"
import type { ExtensionFailed, MiddlewareTermination, ModelCallError } from "./KernelError.ts"
import type { Message } from "./Message.ts"
import type { ProviderShape, Request } from "./Provider.ts"
import type { StreamPart } from "./StreamPart.ts"

/**
 * A model call on its way to the provider.
 *
 * @category models
 * @since 0.1.0
 */
export interface ModelCall {
  readonly runId: string
  readonly rootRunId: string
  readonly step: number
  readonly provider: ProviderShape
  readonly request: Request
}

/**
 * What a model call gives.
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
export interface ToolRun {
  readonly runId: string
  readonly rootRunId: string
  readonly step: number
  readonly context: JsonObject
  readonly messages: ReadonlyArray<Message>
  readonly call: Call
}

/**
 * What a call gives. What a skill does wrong is a result; a failure here fails the run, or ends it on purpose.
 *
 * @category models
 * @since 0.1.0
 */
export type ToolEffect = Effect.Effect<CallResult, MiddlewareTermination | ExtensionFailed>

/**
 * One layer around the calls.
 *
 * @category models
 * @since 0.1.0
 */
export interface Middleware {
  readonly callModel?: ((call: ModelCall, next: (call: ModelCall) => ModelStream) => ModelStream) | undefined
  readonly callTool?: ((run: ToolRun, next: (run: ToolRun) => ToolEffect) => ToolEffect) | undefined
}

/**
 * The middleware of a run, first outermost. None by default.
 *
 * @category references
 * @since 0.1.0
 */
export const Middleware: Context.Reference<ReadonlyArray<Middleware>> = Context.Reference<ReadonlyArray<Middleware>>(
  "kernai/Middleware",
  { defaultValue: () => [] }
)

/**
 * Adds middleware inside what is already there. Around tool calls, one that needs services is a `layerTool`; around
 * model calls, one is made from its services as below.
 *
 * Layers beside each other in one list do not see each other, and only the last would hold: give both middlewares to
 * one layer, or each layer a `Layer.provide` of its own, the inner first.
 *
 * @example
 * const Costs = Layer.unwrap(
 *   Effect.map(Ledger, (ledger) =>
 *     Middleware.layer({
 *       callModel: (call, next) =>
 *         Stream.tap(next(call), (part) => (part.type === "finish" ? ledger.add(part.usage) : Effect.void))
 *     })
 *   )
 * )
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (...middleware: ReadonlyArray<Middleware>): Layer.Layer<never> =>
  Layer.effect(
    Middleware,
    Effect.map(Middleware, (outer) => [...outer, ...middleware])
  )

/**
 * Wraps tool calls by a function with services and failures of its own; any failure but a termination fails the run.
 * It is added as `layer` adds: inside what is already there.
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
  Layer.effect(
    Middleware,
    Effect.gen(function* () {
      const provide = closeOver(yield* Effect.context<R>())
      const outer = yield* Middleware
      const wrapped: Middleware = {
        callTool: (run, next) =>
          Effect.mapError(provide(callTool(run, next)), (error) => extensionError("callTool", error))
      }
      return [...outer, wrapped]
    })
  )

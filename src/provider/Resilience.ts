/**
 * Middleware that keeps a run going when a model does not answer.
 *
 * Retries, other models, rate limits and circuit breakers around the model
 * call, made of Effect's own parts. A call is repeated or sent elsewhere only
 * while nothing of its reply was delivered. Who answered is in
 * `model_completed`, every failure of a call that was made in
 * `model_call_failed`.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as ExecutionPlan from "effect/ExecutionPlan"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as RateLimiter from "effect/persistence/RateLimiter"
import type * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { InvalidModel, ProviderUnavailable, UnsupportedProvider } from "../KernelError.ts"
import { ProviderError } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import type { ModelCall, ModelStream } from "../Middleware.ts"
import { Middleware } from "../Middleware.ts"
import type { Model } from "../Model.ts"
import { ModelRegistry } from "../ModelRegistry.ts"
import type { ProviderShape } from "../Provider.ts"
import { again, type Failure, isPassing } from "./internal/retryRule.ts"
import { open } from "./internal/attempts.ts"
import { instant } from "./internal/providerFault.ts"

/**
 * How a failed call is made again.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryOptions {
  /** Calls made at all. Default: 3. */
  readonly attempts?: number | undefined
  /**
   * The pauses between them. A Retry-After is waited for too, up to `Limits.maxRetryAfter`. Default: about half a
   * second, doubled each time.
   */
  readonly schedule?: Schedule.Schedule<unknown, ProviderError> | undefined
  /** Which failures are worth another try. Default: `isPassing`. */
  readonly while?: ((error: ProviderError) => boolean) | undefined
}

/**
 * A model to fall back on: `<provider>/<model>` for the ModelRegistry, or a model with its provider.
 *
 * @category models
 * @since 0.1.0
 */
export type Candidate = string | { readonly provider: ProviderShape; readonly model: Model }

/**
 * How often each model is asked, and when the next one is.
 *
 * @category models
 * @since 0.1.0
 */
export interface FallbackOptions extends RetryOptions {
  /** Calls of each model. Default: 1. */
  readonly attempts?: number | undefined
  /** Which failures of a model send the call to the next. Default: all of them. */
  readonly when?: ((error: ProviderError) => boolean) | undefined
}

/**
 * How many calls there may be in a time.
 *
 * @category models
 * @since 0.1.0
 */
export interface RateLimitOptions {
  /** What all calls of a window may count for together. */
  readonly limit: number
  readonly window: Duration.Input
  /** Default: `fixed-window`. */
  readonly algorithm?: "fixed-window" | "token-bucket" | undefined
  /** Calls with the same key share a limit. Default: one for each provider and model. */
  readonly key?: ((call: ModelCall) => string) | undefined
  /** What a call counts for. Default: 1. */
  readonly tokens?: ((call: ModelCall) => number) | undefined
  /** Whether a call waits or fails as `rate_limited`. Default: it waits. */
  readonly onExceeded?: "delay" | "fail" | undefined
}

/**
 * Which calls share a circuit, and what opens it.
 *
 * @category models
 * @since 0.1.0
 */
export interface CircuitOptions {
  /** Calls with the same key share a circuit. Default: one for each provider. */
  readonly key?: ((call: ModelCall) => string) | undefined
  /** Which failures count against the service. Default: `isPassing`. */
  readonly counts?: ((error: ProviderError) => boolean) | undefined
}

// ---------------------------------------------------------------- guards

export {
  /**
   * Tells whether the same call may succeed a little later.
   *
   * @category guards
   * @since 0.1.0
   */
  isPassing
} from "./internal/retryRule.ts"

// ---------------------------------------------------------------- middleware

/**
 * Makes failed calls again.
 *
 * The adapters of this package retry by themselves; this is for other
 * providers, and for more patience.
 *
 * @category constructors
 * @since 0.1.0
 */
export const retry = (options: RetryOptions = {}): Middleware => ({
  callModel: (call, next) => Stream.unwrap(again(open(Stream.suspend(() => next(call))), options))
})

/**
 * Asks these models in turn when the one asked for fails.
 *
 * A model that has no key here counts as failed. The prompt is the same for
 * all: each adapter leaves out thinking of other models and media its model
 * does not take. The retry options are for each model. Only names need the
 * ModelRegistry: models with their providers stand for themselves.
 *
 * @category constructors
 * @since 0.1.0
 */
export function fallback(
  candidates: ReadonlyArray<Exclude<Candidate, string>>,
  options?: FallbackOptions
): Effect.Effect<Middleware>
export function fallback(
  candidates: ReadonlyArray<Candidate>,
  options?: FallbackOptions
): Effect.Effect<Middleware, InvalidModel | UnsupportedProvider, ModelRegistry>
export function fallback(
  candidates: ReadonlyArray<Candidate>,
  options: FallbackOptions = {}
): Effect.Effect<Middleware, InvalidModel | UnsupportedProvider, ModelRegistry> {
  return Effect.gen(function* () {
    const targets: ReadonlyArray<Target["Service"]> = yield* Effect.forEach(candidates, (candidate) =>
      typeof candidate === "string"
        ? named(candidate)
        : Effect.succeed((call: ModelCall) => Effect.succeed(elsewhere(call, candidate)))
    )
    const first = { provide: Context.make(Target, (call: ModelCall) => Effect.succeed(call)) }
    const plan = ExecutionPlan.make(first, ...targets.map((target) => ({ provide: Context.make(Target, target) })))
    const goesOn = options.when ?? (() => true)
    return {
      callModel: (call, next) => {
        const attempt = Target.use((target) =>
          Effect.flatMap(
            Effect.mapError(target(call), (error) => unavailable(call, error)),
            (call) => again(open(Stream.suspend(() => next(call))), { ...options, attempts: options.attempts ?? 1 })
          )
        )
        // What must not go on to the next model is a reply of its own, one that fails.
        const kept = Effect.catchIf(
          attempt,
          (error) => !goesOn(error),
          (error) => Effect.succeed<ModelStream>(Stream.fail(error))
        )
        return Stream.unwrap(Effect.withExecutionPlan(kept, plan))
      }
    }
  })
}

/**
 * Keeps calls within a rate, and lets them wait when the vendor asked for it: up to `Limits.maxRetryAfter`, beyond which
 * they fail as `rate_limited`.
 *
 * A limiter that cannot be asked lets calls through.
 *
 * @category constructors
 * @since 0.1.0
 */
export const rateLimit = (options: RateLimitOptions): Effect.Effect<Middleware, never, RateLimiter.RateLimiter> =>
  Effect.map(RateLimiter.RateLimiter, (limiter) => {
    const keyOf = options.key ?? nameOf
    const rests = new Map<string, number>()
    const restOf = (key: string, now: number) => (rests.get(key) ?? 0) - now

    // The longest rest holds, however late a shorter one is told. Keys are the host's, perhaps one for each user: those
    // that have rested are forgotten.
    const rest = (key: string, until: number, now: number) => {
      for (const [other, end] of rests) if (end <= now) rests.delete(other)
      rests.set(key, Math.max(rests.get(key) ?? 0, until))
    }

    const enter = Effect.fnUntraced(function* (call: ModelCall) {
      const key = keyOf(call)
      const maxRetryAfter = Duration.toMillis((yield* Limits).maxRetryAfter)
      let now = yield* Clock.currentTimeMillis
      // While one waits, the vendor may tell another call to wait longer: that is for all of them.
      for (let rest = restOf(key, now); rest > 0; rest = restOf(key, now)) {
        if (options.onExceeded === "fail" || rest > maxRetryAfter) return yield* limited(call, now + rest)
        yield* Effect.sleep(rest)
        now = yield* Clock.currentTimeMillis
      }
      const consumed = yield* limiter
        .consume({
          key,
          limit: options.limit,
          window: options.window,
          algorithm: options.algorithm ?? "fixed-window",
          onExceeded: options.onExceeded ?? "delay",
          tokens: options.tokens?.(call) ?? 1
        })
        .pipe(
          Effect.catchTag("RateLimiterError", (error) =>
            error.reason._tag === "RateLimitExceeded"
              ? limited(call, now + Duration.toMillis(error.reason.retryAfter))
              : Effect.as(Effect.logWarning("the rate limiter cannot be asked", error.reason), free)
          )
        )
      if (Duration.isPositive(consumed.delay)) yield* Effect.sleep(consumed.delay)
    })

    return {
      callModel: (call, next) =>
        Stream.unwrap(Effect.as(enter(call), next(call))).pipe(
          Stream.tapError((error) =>
            Effect.map(Clock.currentTimeMillis, (now) => {
              if (error._tag !== "ProviderError" || error.reason !== "rate_limited") return
              if (error.retryAt !== undefined) rest(keyOf(call), error.retryAt, now)
            })
          )
        )
    }
  })

/**
 * Stops asking a service that keeps failing, until it had time to recover.
 *
 * A call that is not made fails as `overloaded`, so that a fallback around this
 * takes over at once.
 *
 * @category constructors
 * @since 0.1.0
 */
export const circuitBreaker = (
  options: CircuitOptions = {}
): Effect.Effect<Middleware, never, CircuitBreaker.CircuitBreaker> =>
  Effect.map(CircuitBreaker.CircuitBreaker, (breaker) => {
    const counts = options.counts ?? isPassing
    const classify = (exit: Exit.Exit<void, unknown>): CircuitBreaker.Outcome => {
      if (Exit.isSuccess(exit)) return CircuitBreaker.success
      const error = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error
      return error instanceof ProviderError && counts(error) ? CircuitBreaker.failure() : CircuitBreaker.ignored
    }
    // The breaker watches an Effect that lasts as long as the reply.
    const enter = Effect.fnUntraced(function* (call: ModelCall, next: (call: ModelCall) => ModelStream) {
      const ended = yield* Deferred.make<void, Failure>()
      const admitted = yield* Deferred.make<void, ProviderError>()
      const watched = Effect.andThen(Deferred.succeed(admitted, undefined), Deferred.await(ended))
      const key = options.key?.(call) ?? call.provider.name
      const watcher = yield* breaker.execute(watched, { key, classify }).pipe(
        Effect.catchTag("CircuitBreakerError", (error) =>
          Effect.flatMap(resting(call, error), (failure) => Deferred.fail(admitted, failure))
        ),
        // A breaker that fails must leave nobody waiting.
        Effect.catchDefect((defect) => Deferred.die(admitted, defect)),
        Effect.ignore,
        Effect.forkScoped
      )
      yield* Deferred.await(admitted)
      return Stream.onExit(next(call), (exit) =>
        Effect.andThen(Deferred.done(ended, Exit.asVoid(exit)), Fiber.await(watcher))
      )
    })
    return { callModel: (call, next) => Stream.unwrap(enter(call, next)) }
  })

// ---------------------------------------------------------------- layers

/**
 * Puts these around the model call, first outermost, inside what is already there.
 *
 * @example
 * const patient = Resilience.layer(
 *   Resilience.fallback(["anthropic/claude-haiku-4-5", "ollama/llama3.1"]),
 *   Resilience.rateLimit({ limit: 60, window: "1 minute" })
 * )
 *
 * @category layers
 * @since 0.1.0
 */
export function layer<const M extends ReadonlyArray<Middleware | Effect.Effect<Middleware, unknown, unknown>>>(
  ...middleware: M
): Layer.Layer<never, ErrorOf<M[number]>, ServicesOf<M[number]>>
export function layer<E, R>(
  ...middleware: ReadonlyArray<Middleware | Effect.Effect<Middleware, E, R>>
): Layer.Layer<never, E, R> {
  return Layer.effect(
    Middleware,
    Effect.gen(function* () {
      const outer = yield* Middleware
      const built = yield* Effect.forEach(middleware, (one) => (Effect.isEffect(one) ? one : Effect.succeed(one)))
      return [...outer, ...built]
    })
  )
}

/**
 * What `rateLimit` counts with, in this process.
 *
 * It keeps every key for as long as it lives: where `key` gives ever new ones, such as one for each visitor, count with a
 * store that forgets (`RateLimiter.layerStoreRedis` of effect).
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRateLimiter: Layer.Layer<RateLimiter.RateLimiter> = RateLimiter.layer.pipe(
  Layer.provide(RateLimiter.layerStoreMemory)
)

/**
 * What `circuitBreaker` counts with, in this process. Default: five failures in a row open a circuit for half a minute.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerCircuitBreaker = (options?: {
  readonly tripPolicy?: CircuitBreaker.TripPolicy | undefined
  readonly openDuration?: Duration.Input | undefined
}): Layer.Layer<CircuitBreaker.CircuitBreaker> =>
  CircuitBreaker.layer({
    tripPolicy: options?.tripPolicy ?? CircuitBreaker.consecutive(5),
    openDuration: options?.openDuration ?? "30 seconds"
  }).pipe(Layer.provide(CircuitBreaker.layerStoreMemory()))

// ---------------------------------------------------------------- helpers

type ErrorOf<M> = M extends Effect.Effect<infer _A, infer E, infer _R> ? E : never
type ServicesOf<M> = M extends Effect.Effect<infer _A, infer _E, infer R> ? R : never

/** Who is asked in the step of the plan that is tried. */
class Target extends Context.Service<
  Target,
  (call: ModelCall) => Effect.Effect<ModelCall, InvalidModel | UnsupportedProvider | ProviderUnavailable>
>()("kernai/provider/Resilience/Target") {}

const elsewhere = (
  call: ModelCall,
  target: { readonly provider: ProviderShape; readonly model: Model }
): ModelCall => ({
  ...call,
  provider: target.provider,
  request: { ...call.request, model: target.model }
})

/** A name that means something; whether its provider can be used is asked when it is needed (DR-25). */
const named = Effect.fnUntraced(function* (name: string) {
  const registry = yield* ModelRegistry
  yield* Effect.catchTag(Effect.asVoid(registry.resolve(name)), "ProviderUnavailable", () => Effect.void)
  return (call: ModelCall) => Effect.map(registry.resolve(name), (found) => elsewhere(call, found))
})

/** A model that cannot be asked, as a failure of its own provider. */
const unavailable = (call: ModelCall, error: InvalidModel | UnsupportedProvider | ProviderUnavailable) =>
  new ProviderError({
    provider: error._tag === "InvalidModel" ? call.provider.name : error.provider,
    reason: "not_configured",
    detail: error.message
  })

const nameOf = (call: ModelCall): string => `${call.provider.name}/${call.request.model.id}`

const free = { delay: Duration.zero }

const limited = (call: ModelCall, retryAt: number) =>
  new ProviderError({
    provider: call.provider.name,
    reason: "rate_limited",
    detail: "the limit set for this model is reached",
    retryAt: instant(retryAt)
  })

const resting = Effect.fnUntraced(function* (call: ModelCall, error: CircuitBreaker.CircuitBreakerError) {
  const { reason } = error
  const now = yield* Clock.currentTimeMillis
  return new ProviderError({
    provider: call.provider.name,
    reason: "overloaded",
    detail: "the service failed too often and is left alone for a while",
    ...(reason._tag === "CircuitOpen" ? { retryAt: instant(now + Duration.toMillis(reason.retryAfter)) } : {})
  })
})

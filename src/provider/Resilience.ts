/**
 * Middleware that keeps a run going when a model does not reply.
 *
 * Retries, fallback models, rate limits and circuit breakers around the model call; `on` has all of them. A call is
 * sent to another model only as long as nothing of its reply has been delivered. `model_completed` names the model that
 * replied; each failed call is published as `model_call_failed`.
 *
 * @example
 * const KernelLive = Kernel.layerModels.pipe(
 *   Layer.provide(Resilience.on({ fallback: ["anthropic/claude-haiku-4-5"] })),
 *   Layer.provide([skills, HttpModelRegistry.layer, protocols, media, runs])
 * )
 * const once = program.pipe(Effect.provide(Resilience.off))
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
import { layerEffect, type Middleware } from "../Middleware.ts"
import type { Model } from "../Model.ts"
import { ModelRegistry } from "../ModelRegistry.ts"
import type { ProviderShape } from "../Provider.ts"
import { SkillRegistry } from "../SkillRegistry.ts"
import * as Reads from "./internal/readRetry.ts"
import { again, type Failure, isPassing, restart } from "./internal/retryRule.ts"
import { open } from "./internal/attempts.ts"
import { instant } from "./internal/providerFault.ts"

/**
 * Options of `retry`.
 *
 * @category models
 * @since 0.1.0
 */
export interface RetryOptions {
  /** The maximum number of calls, including the first. Default: 3. */
  readonly attempts?: number | undefined
  /**
   * The pauses between calls. A Retry-After of the vendor is also obeyed, up to `Limits.maxRetryAfter`. Default: about
   * half a second, doubled each time.
   */
  readonly schedule?: Schedule.Schedule<unknown, ProviderError> | undefined
  /** The failures to retry. Default: `isPassing`. */
  readonly while?: ((error: ProviderError) => boolean) | undefined
}

/**
 * A fallback model: `<provider>/<model>` for the ModelRegistry, or a model with its provider.
 *
 * @category models
 * @since 0.1.0
 */
export type Candidate = string | { readonly provider: ProviderShape; readonly model: Model }

/**
 * Options of `fallback`.
 *
 * @category models
 * @since 0.1.0
 */
export interface FallbackOptions extends RetryOptions {
  /** The number of calls per model. Default: 1. */
  readonly attempts?: number | undefined
  /** The failures after which the call is sent to the next model. Default: all. */
  readonly when?: ((error: ProviderError) => boolean) | undefined
}

/**
 * Options of `rateLimit`: the number of calls allowed in a time window.
 *
 * @category models
 * @since 0.1.0
 */
export interface RateLimitOptions {
  /** The total cost of all calls in a window. */
  readonly limit: number
  /** The length of a window. */
  readonly window: Duration.Input
  /** Default: `fixed-window`. */
  readonly algorithm?: "fixed-window" | "token-bucket" | undefined
  /** Calls with the same key share a limit. Default: one for each provider and model. */
  readonly key?: ((call: ModelCall) => string) | undefined
  /** The cost of a call. Default: 1. */
  readonly tokens?: ((call: ModelCall) => number) | undefined
  /** Whether a call over the limit waits (`delay`) or fails with reason `rate_limited` (`fail`). Default: `delay`. */
  readonly onExceeded?: "delay" | "fail" | undefined
}

/**
 * Options of `circuitBreaker`.
 *
 * @category models
 * @since 0.1.0
 */
export interface CircuitOptions {
  /** Calls with the same key share a circuit. Default: one for each provider. */
  readonly key?: ((call: ModelCall) => string) | undefined
  /** The failures that count against the service. Default: `isPassing`. */
  readonly counts?: ((error: ProviderError) => boolean) | undefined
}

export type {
  /**
   * Options of `retryReads`.
   *
   * @category models
   * @since 0.1.0
   */
  ReadRetryOptions
} from "./internal/readRetry.ts"

// ---------------------------------------------------------------- guards

export {
  /**
   * Returns true if the same call may succeed a little later.
   *
   * @category guards
   * @since 0.1.0
   */
  isPassing
} from "./internal/retryRule.ts"

// ---------------------------------------------------------------- middleware

/**
 * Retries failed calls.
 *
 * The adapters of this package already retry. Use this for other providers, or to retry for longer.
 *
 * @category constructors
 * @since 0.1.0
 */
export const retry = (options: RetryOptions = {}): Middleware => ({
  callModel: (call, next) => Stream.unwrap(again(open(Stream.suspend(() => next(call))), options))
})

/**
 * Asks the model again when its reply broke off after its first parts. These are withdrawn, and `model_restarted` is
 * published with the number of the new attempt.
 *
 * @category constructors
 * @since 0.1.0
 */
export const restartReplies = (options: RetryOptions = {}): Middleware => ({ shouldRestart: restart(options) })

/**
 * Retries failed calls of skills whose `effects` are `read`, which have no side effects to repeat.
 *
 * @category constructors
 * @since 0.1.0
 */
export const retryReads = (options: Reads.ReadRetryOptions = {}): Effect.Effect<Middleware, never, SkillRegistry> =>
  Effect.map(SkillRegistry, (skills) => Reads.retryReads(skills, options))

/**
 * Calls these models in turn when the requested one fails.
 *
 * A model without a key counts as failed. All models get the same prompt; each adapter leaves out the thinking of other
 * models and media that its model does not accept. The retry options apply to each model. Only model strings need the
 * ModelRegistry, not models given with their providers.
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
        // A reply that fails after it began must not be sent to the next model.
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
 * Limits the rate of calls. Calls also wait as long as the vendor asks, up to `Limits.maxRetryAfter`; beyond that they
 * fail with reason `rate_limited`.
 *
 * If the limiter fails, calls are let through.
 *
 * @category constructors
 * @since 0.1.0
 */
export const rateLimit = (options: RateLimitOptions): Effect.Effect<Middleware, never, RateLimiter.RateLimiter> =>
  Effect.map(RateLimiter.RateLimiter, (limiter) => {
    const keyOf = options.key ?? nameOf
    const rests = new Map<string, number>()
    const restOf = (key: string, now: number) => (rests.get(key) ?? 0) - now

    // Keeps the longest pause of a key. There may be one key per user, so expired ones are removed.
    const rest = (key: string, until: number, now: number) => {
      for (const [other, end] of rests) if (end <= now) rests.delete(other)
      rests.set(key, Math.max(rests.get(key) ?? 0, until))
    }

    const enter = Effect.fnUntraced(function* (call: ModelCall) {
      const key = keyOf(call)
      const maxRetryAfter = Duration.toMillis((yield* Limits).maxRetryAfter)
      let now = yield* Clock.currentTimeMillis
      // While a call waits, the vendor may ask another call to wait longer, which then applies to all.
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
              : Effect.as(Effect.logWarning("the rate limiter failed", error.reason), free)
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
 * Stops calling a service that keeps failing, until it has had time to recover.
 *
 * A blocked call fails with reason `overloaded`, so a fallback around this middleware continues at once.
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
    // The breaker observes an Effect that lasts as long as the reply.
    const enter = Effect.fnUntraced(function* (call: ModelCall, next: (call: ModelCall) => ModelStream) {
      const ended = yield* Deferred.make<void, Failure>()
      const admitted = yield* Deferred.make<void, ProviderError>()
      const watched = Effect.andThen(Deferred.succeed(admitted, undefined), Deferred.await(ended))
      const key = options.key?.(call) ?? call.provider.name
      const watcher = yield* breaker.execute(watched, { key, classify }).pipe(
        Effect.catchTag("CircuitBreakerError", (error) =>
          Effect.flatMap(resting(call, error), (failure) => Deferred.fail(admitted, failure))
        ),
        // A failing breaker must not leave a caller waiting.
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

const IsOn: Context.Reference<boolean> = Context.Reference<boolean>("kernai/provider/Resilience/IsOn", {
  defaultValue: () => true
})

/** Wraps a middleware so that it does nothing under `off`. */
const switched = ({ callModel, callTool, shouldRestart }: Middleware): Middleware => ({
  ...(callModel === undefined
    ? {}
    : {
        callModel: (call, next) =>
          Stream.unwrap(Effect.map(IsOn, (isOn) => (isOn ? callModel(call, next) : next(call))))
      }),
  ...(callTool === undefined
    ? {}
    : { callTool: (run, next) => Effect.flatMap(IsOn, (isOn) => (isOn ? callTool(run, next) : next(run))) }),
  ...(shouldRestart === undefined
    ? {}
    : {
        shouldRestart: (failure) =>
          Effect.flatMap(IsOn, (isOn) => (isOn ? shouldRestart(failure) : Effect.succeed(false)))
      })
})

/**
 * Adds middleware around the model call, outermost first, inside the existing middleware.
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
  return layerEffect(Effect.forEach(middleware, (one) => (Effect.isEffect(one) ? one : Effect.succeed(one))))
}

/**
 * Options of `on`. Each part can be switched off with `false`.
 *
 * @category models
 * @since 0.1.0
 */
export interface OnOptions<C extends Candidate = Candidate> {
  /** Models to call, in order, when the requested one fails. Default: none. */
  readonly fallback?: ReadonlyArray<C> | undefined
  /** Retries of model calls, and of replies that broke off. Default: three attempts. */
  readonly retry?: RetryOptions | false | undefined
  /** Retries of skills that only read. Default: three attempts. */
  readonly reads?: Reads.ReadRetryOptions | false | undefined
  /** Default: no limit except the waits that vendors ask for. */
  readonly rateLimit?: RateLimitOptions | false | undefined
  /** One circuit for each model. Default: five failures in a row open it for half a minute. */
  readonly circuitBreaker?: CircuitOptions | false | undefined
}

/**
 * Adds retries, fallback models, a rate limit and a circuit breaker for each model, counted in this process, inside the
 * existing middleware. `off` switches them off again for one program.
 *
 * @category layers
 * @since 0.1.0
 */
export function on<C extends Candidate = never>(
  options?: OnOptions<C>
): Layer.Layer<
  never,
  InvalidModel | UnsupportedProvider,
  SkillRegistry | (Extract<C, string> extends never ? never : ModelRegistry)
>
export function on(
  options: OnOptions = {}
): Layer.Layer<never, InvalidModel | UnsupportedProvider, SkillRegistry | ModelRegistry> {
  const { circuitBreaker: circuit, fallback: models = [], rateLimit: rate, reads, retry: retries = {} } = options
  const again = retries === false ? { attempts: 1 } : retries
  const parts: ReadonlyArray<Effect.Effect<Middleware, InvalidModel | UnsupportedProvider, Parts>> = [
    ...(reads === false ? [] : [retryReads(reads)]),
    Effect.succeed(restartReplies(again)),
    fallback(models, { ...again, attempts: again.attempts ?? 3 }),
    ...(rate === undefined || rate === false ? [] : [rateLimit(rate)]),
    ...(circuit === false ? [] : [circuitBreaker({ key: nameOf, ...circuit })])
  ]
  const built = Effect.forEach(parts, (part) => Effect.map(part, switched))
  return layerEffect(built).pipe(Layer.provide([layerRateLimiter, layerCircuitBreaker()]))
}

type Parts = SkillRegistry | ModelRegistry | RateLimiter.RateLimiter | CircuitBreaker.CircuitBreaker

/**
 * Switches off everything `on` adds, for the program it is provided to.
 *
 * @category layers
 * @since 0.1.0
 */
export const off: Layer.Layer<never> = Layer.succeed(IsOn, false)

/**
 * Counts for `rateLimit` in this process.
 *
 * It keeps every key for its lifetime. If `key` keeps returning new keys, such as one per visitor, use a store that
 * expires them (`RateLimiter.layerStoreRedis` of effect).
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRateLimiter: Layer.Layer<RateLimiter.RateLimiter> = RateLimiter.layer.pipe(
  Layer.provide(RateLimiter.layerStoreMemory)
)

/**
 * Counts for `circuitBreaker` in this process. By default, five failures in a row (`tripPolicy`) open a circuit for 30
 * seconds (`openDuration`).
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

/** The model of the current step of the execution plan. */
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

/** Resolves a model string. Checks that its provider is available when the provider is first needed. */
const named = Effect.fnUntraced(function* (name: string) {
  const registry = yield* ModelRegistry
  yield* Effect.catchTag(Effect.asVoid(registry.resolve(name)), "ProviderUnavailable", () => Effect.void)
  return (call: ModelCall) => Effect.map(registry.resolve(name), (found) => elsewhere(call, found))
})

/** Turns an unavailable model into a failure of its provider. */
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
    detail: "the service failed too often and is not called for a while",
    ...(reason._tag === "CircuitOpen" ? { retryAt: instant(now + Duration.toMillis(reason.retryAfter)) } : {})
  })
})

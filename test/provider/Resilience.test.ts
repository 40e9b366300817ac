import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schedule, Stream } from "effect"
import { CircuitBreaker, RateLimiter } from "effect/persistence"
import { TestClock } from "effect/testing"
import { Agent, KernelError, Middleware, Model, ModelRegistry, type Provider, RunStore, StreamPart } from "kernai"
import { Resilience } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

const agent = Agent.make({ instructions: "Answer.", model: Model.make("big") })

const registry = (providers: { readonly [key: string]: Provider.ProviderShape }) =>
  ModelRegistry.layer(providers, {
    models: [Model.make("small", { price: { inputPerMillion: 1, outputPerMillion: 1 } })]
  })

const error = (reason: KernelError.ProviderReason, more: { readonly retryAt?: number } = {}) =>
  new KernelError.ProviderError({ provider: "mock", reason, detail: reason, ...more })

const finish = StreamPart.finish("stop", { inputTokens: { total: 1_000_000 }, outputTokens: { total: 0 } })

describe("Resilience.retry", () => {
  it.effect("retries a failed call after a pause, and emits each failure (DR-23)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("never", "never", "here").failOnStep(0).failOnStep(1, "overloaded")
      const fiber = yield* Effect.forkChild(told(agent, "hi", { provider }))
      yield* TestClock.adjust("5 seconds")
      const run = yield* Fiber.join(fiber)
      assert.strictEqual(run.text, "here")
      assert.deepStrictEqual(
        of(run.events, "model_call_failed").map(({ call, model, reason }) => [call, model, reason]),
        [
          [1, "mock/big", "server_error"],
          [2, "mock/big", "overloaded"]
        ]
      )
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(Resilience.layer(Resilience.retry())))))
  )

  it.effect("reports a failed call without text that looks like a key (S-7)", () =>
    Effect.gen(function* () {
      const detail = "401 Bearer sk-SECRET-0123456789abcdef"
      const provider = MockProvider.make().onCall(() =>
        Effect.fail(new KernelError.ProviderError({ provider: "mock", reason: "unknown", detail }))
      )
      const run = yield* told(agent, "hi", { provider })
      assert.include(of(run.events, "model_call_failed")[0]?.error, "Bearer <redacted>")
      assert.notInclude(JSON.stringify(run.events), "SECRET")
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(Resilience.layer(Resilience.retry())))))
  )

  it.effect("gives up after its attempts, without a pause after the last", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("").onCall((_, call) =>
        Effect.fail(error("overloaded", { retryAt: call === 0 ? 1_000 : 50_000 }))
      )
      const fiber = yield* Effect.forkChild(told(agent, "hi", { provider }))
      yield* TestClock.adjust("1 second")
      const run = yield* Fiber.join(fiber)
      assert.strictEqual(run.failure?._tag, "ProviderError")
      assert.strictEqual(provider.callCount, 2)
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(Resilience.layer(Resilience.retry({ attempts: 2, schedule: Schedule.recurs(5) })))
        )
      )
    )
  )

  it.effect("asks three times by default", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make().onCall(() => Effect.fail(error("overloaded")))
      const fiber = yield* Effect.forkChild(told(agent, "hi", { provider }))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.strictEqual(provider.callCount, 3)
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(Resilience.layer(Resilience.retry())))))
  )

  it.effect("waits for a Retry-After within the limit and fails at once beyond it (R-13)", () =>
    Effect.gen(function* () {
      const near = MockProvider.make("", "later").failOnStep(0, error("rate_limited", { retryAt: 60_000 }))
      const waiting = yield* Effect.forkChild(told(agent, "hi", { provider: near }))
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(near.callCount, 1)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* Fiber.join(waiting)).text, "later")

      const far = MockProvider.make("", "later").failOnStep(0, error("rate_limited", { retryAt: 3_600_000 }))
      const run = yield* told(agent, "hi", { provider: far })
      assert.strictEqual(run.failure?._tag, "ProviderError")
      assert.strictEqual(far.callCount, 1)
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(Resilience.layer(Resilience.retry())))))
  )

  it.effect("never repeats a call whose reply has begun (R-13)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make([StreamPart.text("half of it")], "again")
      const run = yield* told(agent, "hi", { provider })
      assert.strictEqual(run.failure?._tag, "ProviderError")
      assert.strictEqual(provider.callCount, 1)
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(Resilience.layer(Resilience.retry())))))
  )

  it.effect("does not retry permanent failures, nor a deliberate stop", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("", "again").failOnStep(0, "invalid_request")
      assert.strictEqual((yield* told(agent, "hi", { provider })).failure?._tag, "ProviderError")
      assert.strictEqual(provider.callCount, 1)

      let asked = 0
      const stop: Middleware.Middleware = {
        callModel: () => {
          asked++
          return Stream.fail(new KernelError.MiddlewareTermination({ reason: "enough" }))
        }
      }
      const run = yield* told(agent, "hi", { provider }).pipe(
        Effect.provideService(Middleware.Middleware, [Resilience.retry(), stop])
      )
      assert.strictEqual(run.failure?._tag, "MiddlewareTermination")
      assert.strictEqual(asked, 1)
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(Resilience.layer(Resilience.retry())))))
  )
})

describe("Resilience.fallback", () => {
  const thinking = (name: string, text: string) =>
    MockProvider.named(name, [
      { type: "reasoning-start", id: "t", metadata: { [name]: { signature: `signed by ${name}` } } },
      { type: "reasoning-delta", id: "t", delta: "hm" },
      { type: "reasoning-end", id: "t" },
      StreamPart.text(text),
      finish
    ])

  it.effect("asks the next model, and the journal names the model that answered, with its price (DR-23)", () =>
    Effect.gen(function* () {
      const first = MockProvider.named("first").onCall(() => Effect.fail(error("quota_exhausted")))
      const run = yield* told(agent, "hi", { provider: first, runId: "r" })
      assert.strictEqual(run.text, "from second")
      const [completed] = of(run.events, "model_completed")
      assert.strictEqual(completed?.model, "second/small")
      assert.strictEqual(completed?.costUsd, 1)
      assert.deepStrictEqual(completed?.message.content[0], {
        type: "thinking",
        content: "hm",
        redacted: false,
        origin: { provider: "second", model: "small" },
        signature: { signature: "signed by second" }
      })
      assert.deepStrictEqual(
        of(run.events, "model_call_failed").map((event) => event.model),
        ["first/big"]
      )
      const stored = yield* RunStore.RunStore.use((store) => store.load("r"))
      assert.strictEqual(stored._tag === "Some" && stored.value.turns[0]?.model, "second/small")
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(Resilience.layer(Resilience.fallback(["second/small"]))),
          Layer.provideMerge(registry({ second: thinking("second", "from second") }))
        )
      )
    )
  )

  it.effect("calls each model once when `attempts` is omitted or undefined", () =>
    Effect.gen(function* () {
      const failing = MockProvider.make().onCall(() => Effect.fail(error("server_error")))
      assert.strictEqual((yield* told(agent, "hi", { provider: failing })).text, "yes")
      assert.strictEqual(failing.callCount, 1)
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(Resilience.layer(Resilience.fallback(["second/small"], { attempts: undefined }))),
          Layer.provideMerge(registry({ second: thinking("second", "yes") }))
        )
      )
    )
  )

  it.effect("tries each model of the chain, skips unavailable ones, and fails with the last failure", () =>
    Effect.gen(function* () {
      const failing = MockProvider.make().onCall(() => Effect.fail(error("server_error")))
      const run = yield* told(agent, "hi", { provider: failing })
      assert.strictEqual(run.failure?._tag === "ProviderError" && run.failure.detail, "refused")
      assert.strictEqual(failing.callCount, 1)
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(
            Resilience.layer(
              Resilience.fallback([
                "second/small",
                {
                  provider: MockProvider.make().onCall(() =>
                    Effect.fail(
                      new KernelError.ProviderError({ provider: "x", reason: "overloaded", detail: "refused" })
                    )
                  ),
                  model: Model.make("x")
                }
              ])
            )
          ),
          Layer.provideMerge(
            ModelRegistry.layer({
              second: Effect.fail(new KernelError.ProviderUnavailable({ provider: "second", variable: "SECOND_KEY" }))
            })
          )
        )
      )
    )
  )

  it.effect("names the provider that cannot be used, not the one that was asked before it (DR-25)", () =>
    Effect.gen(function* () {
      const failing = MockProvider.named("first").onCall(() => Effect.fail(error("server_error")))
      const { failure } = yield* told(agent, "hi", { provider: failing })
      assert.strictEqual(failure?._tag === "ProviderError" && failure.provider, "second")
      assert.include(failure?.message, "SECOND_KEY")
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(Resilience.layer(Resilience.fallback(["second/small"]))),
          Layer.provideMerge(
            ModelRegistry.layer({
              second: Effect.fail(new KernelError.ProviderUnavailable({ provider: "second", variable: "SECOND_KEY" }))
            })
          )
        )
      )
    )
  )

  it.effect("does not call the next model for failures that `when` excludes", () =>
    Effect.gen(function* () {
      const failing = MockProvider.make().onCall(() => Effect.fail(error("content_filter")))
      const run = yield* told(agent, "hi", { provider: failing })
      assert.strictEqual(run.failure?._tag === "ProviderError" && run.failure.reason, "content_filter")
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(
            Resilience.layer(
              Resilience.fallback(["second/small"], { when: (error) => error.reason !== "content_filter" })
            )
          ),
          Layer.provideMerge(registry({ second: MockProvider.named("second", "no") }))
        )
      )
    )
  )

  it.effect("needs no registry for models that bring their providers", () =>
    Effect.gen(function* () {
      const run = yield* told(agent, "hi", { provider: MockProvider.make("never").failOnStep(0) })
      assert.strictEqual(run.text, "from second")
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(
            Resilience.layer(
              Resilience.fallback([{ provider: MockProvider.named("second", "from second"), model: Model.make("b") }])
            )
          )
        )
      )
    )
  )

  it.effect("rejects an unknown provider name when the layer is built", () =>
    Effect.gen(function* () {
      const failure = yield* Effect.flip(Resilience.fallback(["nobody/x"]))
      assert.strictEqual(failure._tag, "UnsupportedProvider")
    }).pipe(Effect.provide(registry({})))
  )
})

describe("Resilience.rateLimit", () => {
  const limit = Resilience.layer(Resilience.rateLimit({ limit: 2, window: "1 minute" })).pipe(
    Layer.provide(Resilience.layerRateLimiter)
  )

  it.effect("lets calls beyond the rate wait for the next window", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("ok")
      for (let index = 0; index < 2; index++) assert.strictEqual((yield* told(agent, "hi", { provider })).text, "ok")
      const third = yield* Effect.forkChild(told(agent, "hi", { provider }))
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(provider.callCount, 2)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(third)).text, "ok")
      assert.strictEqual(provider.callCount, 3)
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(limit))))
  )

  it.effect("fails a call beyond the rate if it must not wait, with the time to retry", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("ok")
      assert.strictEqual((yield* told(agent, "hi", { provider })).text, "ok")
      yield* TestClock.adjust("20 seconds")
      const { failure } = yield* told(agent, "hi", { provider })
      assert.deepInclude(failure, { reason: "rate_limited", retryAt: 60_000 })
      assert.strictEqual(provider.callCount, 1)
      const asked = MockProvider.named("other", "").failOnStep(0, error("rate_limited", { retryAt: 70_000 }))
      assert.deepInclude((yield* told(agent, "hi", { provider: asked })).failure, { retryAt: 70_000 })
      assert.deepInclude((yield* told(agent, "hi", { provider: asked })).failure, {
        reason: "rate_limited",
        retryAt: 70_000
      })
      assert.strictEqual(asked.callCount, 1)
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(
            Resilience.layer(Resilience.rateLimit({ limit: 1, window: "1 minute", onExceeded: "fail" })).pipe(
              Layer.provide(Resilience.layerRateLimiter)
            )
          )
        )
      )
    )
  )

  it.effect("counts a call by its configured cost", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("ok")
      assert.strictEqual((yield* told(agent, "hi", { provider })).text, "ok")
      assert.deepInclude((yield* told(agent, "hi", { provider })).failure, { reason: "rate_limited" })
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(
            Resilience.layer(
              Resilience.rateLimit({ limit: 10, window: "1 minute", tokens: () => 6, onExceeded: "fail" })
            ).pipe(Layer.provide(Resilience.layerRateLimiter))
          )
        )
      )
    )
  )

  it.effect("lets calls through when the limiter fails", () => {
    const reason = new RateLimiter.RateLimitStoreError({ message: "away" })
    const away = Layer.effect(
      RateLimiter.RateLimiter,
      Effect.map(RateLimiter.RateLimiter, (limiter) => ({
        ...limiter,
        consume: () => Effect.fail(new RateLimiter.RateLimiterError({ reason }))
      }))
    ).pipe(Layer.provide(Resilience.layerRateLimiter))
    const open = Resilience.layer(Resilience.rateLimit({ limit: 1, window: "1 minute" })).pipe(Layer.provide(away))
    return Effect.gen(function* () {
      const provider = MockProvider.make("ok")
      for (const _ of [1, 2]) assert.strictEqual((yield* told(agent, "hi", { provider })).text, "ok")
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(open))))
  })

  it.effect("lets calls wait as long as the vendor asked the last one to", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("", "ok").failOnStep(0, error("rate_limited", { retryAt: 45_000 }))
      assert.strictEqual((yield* told(agent, "hi", { provider })).failure?._tag, "ProviderError")
      const second = yield* Effect.forkChild(told(agent, "hi", { provider }))
      yield* TestClock.adjust("44 seconds")
      assert.strictEqual(provider.callCount, 1)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(second)).text, "ok")
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(limit))))
  )

  it.effect("lets no call wait longer than the maximum, but names the time to retry (R-13)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("", "ok").failOnStep(0, error("rate_limited", { retryAt: 3_600_000 }))
      yield* told(agent, "hi", { provider })
      const second = yield* Effect.forkChild(told(agent, "hi", { provider }))
      yield* TestClock.adjust(1)
      assert.deepInclude((yield* Fiber.join(second)).failure, { reason: "rate_limited", retryAt: 3_600_000 })
      assert.strictEqual(provider.callCount, 1)
      yield* TestClock.adjust("59 minutes")
      const third = yield* Effect.forkChild(told(agent, "hi", { provider }))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(third)).text, "ok")
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(limit))))
  )

  const wide = kernel().pipe(
    Layer.provideMerge(Resilience.layer(Resilience.rateLimit({ limit: 10, window: "1 minute" }))),
    Layer.provide(Resilience.layerRateLimiter)
  )
  /** Two calls the vendor asks to wait until then: one is told at once, the one before it only after five seconds. */
  const refused = Effect.fnUntraced(function* (atOnce: number, later: number) {
    const provider = MockProvider.make("ok").onCall((_, call) => {
      if (call === 0) return Effect.delay(Effect.fail(error("rate_limited", { retryAt: later })), "5 seconds")
      return call === 1 ? Effect.fail(error("rate_limited", { retryAt: atOnce })) : undefined
    })
    const slow = yield* Effect.forkChild(told(agent, "hi", { provider }), { startImmediately: true })
    yield* TestClock.adjust(0)
    assert.strictEqual((yield* told(agent, "hi", { provider })).failure?._tag, "ProviderError")
    return { provider, slow }
  })

  it.effect("keeps the wait when the vendor asks another call to wait less (R-13)", () =>
    Effect.gen(function* () {
      const { provider, slow } = yield* refused(60_000, 10_000)
      yield* TestClock.adjust("6 seconds")
      assert.strictEqual((yield* Fiber.join(slow)).failure?._tag, "ProviderError")
      const third = yield* Effect.forkChild(told(agent, "hi", { provider }))
      yield* TestClock.adjust("53 seconds")
      assert.strictEqual(provider.callCount, 2)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(third)).text, "ok")
    }).pipe(Effect.provide(wide))
  )

  it.effect("extends the wait of a waiting call when the vendor asks another call to wait longer (R-13)", () =>
    Effect.gen(function* () {
      const { provider, slow } = yield* refused(10_000, 60_000)
      const third = yield* Effect.forkChild(told(agent, "hi", { provider }))
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual((yield* Fiber.join(slow)).failure?._tag, "ProviderError")
      assert.strictEqual(provider.callCount, 2)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(third)).text, "ok")
    }).pipe(Effect.provide(wide))
  )
})

describe("Resilience.circuitBreaker", () => {
  it.effect("stops calling a failing service, so that a fallback answers at once, and tries it again later", () =>
    Effect.gen(function* () {
      let broken = true
      const provider = MockProvider.named("first").onCall(() => (broken ? Effect.fail(error("overloaded")) : "first"))
      for (let index = 0; index < 4; index++)
        assert.strictEqual((yield* told(agent, "hi", { provider })).text, "second")
      assert.strictEqual(provider.callCount, 2)
      broken = false
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* told(agent, "hi", { provider })).text, "first")
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(
            Resilience.layer(
              Resilience.fallback([{ provider: MockProvider.named("second", "second"), model: Model.make("b") }]),
              Resilience.circuitBreaker()
            )
          ),
          Layer.provideMerge(
            Layer.merge(
              registry({}),
              Resilience.layerCircuitBreaker({
                tripPolicy: { _tag: "Consecutive", failures: 2 },
                openDuration: "1 minute"
              })
            )
          )
        )
      )
    )
  )

  it.effect("stops calling a service for half a minute after five failures in a row, by default", () =>
    Effect.gen(function* () {
      // An answer in between begins the row anew.
      const provider = MockProvider.make().onCall((_, call) => (call === 4 ? "ok" : Effect.fail(error("overloaded"))))
      for (let index = 0; index < 10; index++) yield* told(agent, "hi", { provider })
      assert.strictEqual(provider.callCount, 10)
      const { failure } = yield* told(agent, "hi", { provider })
      assert.deepInclude(failure, { reason: "overloaded", retryAt: 30_000 })
      assert.strictEqual(provider.callCount, 10)
      yield* TestClock.adjust("30 seconds")
      yield* told(agent, "hi", { provider })
      assert.strictEqual(provider.callCount, 11)
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(Resilience.layer(Resilience.circuitBreaker())),
          Layer.provideMerge(Resilience.layerCircuitBreaker())
        )
      )
    )
  )

  it.effect("counts the failures of all calls with the same key, inside the surrounding middleware", () =>
    Effect.gen(function* () {
      const failing = (name: string) => MockProvider.named(name).onCall(() => Effect.fail(error("overloaded")))
      const [one, two] = [failing("one"), failing("two")]
      yield* told(agent, "hi", { provider: one })
      // Asked three times by the retry around, it is stopped by the circuit within.
      assert.strictEqual(one.callCount, 2)
      yield* told(agent, "hi", { provider: two })
      assert.strictEqual(two.callCount, 0)
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(Resilience.layer(Resilience.circuitBreaker({ key: () => "all" }))),
          Layer.provideMerge(
            Resilience.layer(
              Resilience.retry({ schedule: Schedule.recurs(5), while: ({ retryAt }) => retryAt === undefined })
            )
          ),
          Layer.provideMerge(Resilience.layerCircuitBreaker({ tripPolicy: { _tag: "Consecutive", failures: 2 } }))
        )
      )
    )
  )

  it.effect("stops calling a service for good, if configured", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make().onCall(() => Effect.fail(error("overloaded")))
      yield* told(agent, "hi", { provider })
      const { failure } = yield* told(agent, "hi", { provider })
      assert.deepInclude(failure, { reason: "overloaded", retryAt: 8.64e15 })
      assert.strictEqual(provider.callCount, 1)
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(Resilience.layer(Resilience.circuitBreaker())),
          Layer.provideMerge(
            Resilience.layerCircuitBreaker({ tripPolicy: CircuitBreaker.consecutive(1), openDuration: "Infinity" })
          )
        )
      )
    )
  )

  it.effect("does not count what the caller did wrong", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make().onCall(() => Effect.fail(error("invalid_request")))
      for (let index = 0; index < 4; index++) yield* told(agent, "hi", { provider })
      assert.strictEqual(provider.callCount, 4)
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(Resilience.layer(Resilience.circuitBreaker())),
          Layer.provideMerge(Resilience.layerCircuitBreaker({ tripPolicy: { _tag: "Consecutive", failures: 1 } }))
        )
      )
    )
  )

  it.effect("fails the call without waiting when the breaker itself fails", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("here")
      const run = yield* told(agent, "hi", { provider })
      assert.strictEqual(run.failure?._tag, "ExtensionFailed")
      assert.strictEqual(provider.callCount, 0)
    }).pipe(
      Effect.provide(
        kernel().pipe(
          Layer.provideMerge(Resilience.layer(Resilience.circuitBreaker())),
          Layer.provideMerge(
            CircuitBreaker.layer({ tripPolicy: CircuitBreaker.consecutive(1), openDuration: "1 minute" }).pipe(
              Layer.provide(
                Layer.succeed(CircuitBreaker.CircuitBreakerStore, {
                  admit: () => Effect.die("no table of circuits"),
                  record: () => Effect.undefined,
                  state: () => Effect.die("no table of circuits")
                })
              )
            )
          )
        )
      )
    )
  )
})

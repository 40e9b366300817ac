import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Ref, Stream } from "effect"
import { Hooks, Kernel, KernelError, Message, Middleware, Policy, PromptPipeline, Recorder } from "kernai"
import { Resilience } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"
import { act, agent, echo, told } from "../support/echo.ts"

describe("Policy, Hooks, Middleware, PromptPipeline and Recorder", () => {
  const seen = Effect.map(Ref.make<ReadonlyArray<string>>([]), (ref) => ({
    ref,
    add: (word: string) => Ref.update(ref, (words) => [...words, word])
  }))

  it.effect(
    "are read from the kernel's layer and from the running fiber, whose hooks run after those of the layer",
    () =>
      Effect.gen(function* () {
        const { add, ref } = yield* seen
        const hooks = (name: string) => ({ onRunStarted: () => Effect.asVoid(add(name)) })
        const run = Kernel.run(agent, "go", { provider: MockProvider.make(final("ok")) })
        const built = kernel().pipe(Layer.provide(Hooks.layer(hooks("layer"))))
        yield* run.pipe(Effect.provide(built))
        yield* run.pipe(Effect.provideService(Hooks.Hooks, hooks("fiber")), Effect.provide(built))
        assert.deepStrictEqual(yield* Ref.get(ref), ["layer", "layer", "fiber"])
      })
  )

  it.effect("combine several policies: the strictest decides (AC-19)", () =>
    Effect.gen(function* () {
      const deny: Policy.PolicyShape = { authorize: () => Effect.succeed(Policy.denied("not here")) }
      const allow: Policy.PolicyShape = { authorize: () => Effect.succeed(Policy.allowed) }
      for (const [outer, inner] of [
        [deny, allow],
        [allow, deny]
      ] as const) {
        const { events } = yield* told(agent, [act("x"), final("ok")]).pipe(
          Effect.provideService(Policy.Policy, inner),
          Effect.provide(kernel(echo).pipe(Layer.provide(Layer.succeed(Policy.Policy, outer))))
        )
        assert.isFalse(events.some((event) => event.type === "skill_execute"))
      }
    })
  )

  it.effect("deny a call when a policy fails (AC-19)", () =>
    Effect.gen(function* () {
      const broken = Policy.layer(() => Effect.fail("down"))
      const { mock } = yield* told(agent, [act("x"), final("ok")]).pipe(
        Effect.provide(kernel(echo).pipe(Layer.provide(broken)))
      )
      assert.include(Message.text(mock.messagesAt(1)?.at(-1) ?? Message.user("")), "policy_error")
    })
  )

  it.effect("use the services of their layer, unless the run has its own", () =>
    Effect.gen(function* () {
      class Words extends Context.Service<Words, { readonly say: string }>()("test/Words") {}
      const pipeline = Layer.effect(
        PromptPipeline.PromptPipeline,
        Effect.map(Words, ({ say }): PromptPipeline.PromptPipelineShape => ({
          build: ({ state, tools }) => Effect.succeed({ system: say, messages: state.prompt, tools })
        }))
      ).pipe(Layer.provide(Layer.succeed(Words, { say: "from the service" })))
      const mock = MockProvider.make(final("ok"))
      yield* Kernel.run(agent, "go", { provider: mock }).pipe(Effect.provide(kernel().pipe(Layer.provide(pipeline))))
      assert.strictEqual(Message.text(mock.messagesAt(0)?.[0] ?? Message.user("")), "from the service")
    })
  )

  it.effect("wrap calls as middleware, the first outermost, and may end the run on purpose (DR-23, CP-16)", () =>
    Effect.gen(function* () {
      const { add, ref } = yield* seen
      const named = (name: string): Middleware.Middleware => ({
        callTool: (run, next) => Effect.andThen(add(name), next(run)),
        callModel: (call, next) => Stream.unwrap(Effect.as(add(`${name} of ${call.step}`), next(call)))
      })
      const stop: Middleware.Middleware = {
        callModel: () => Stream.fail(new KernelError.MiddlewareTermination({ reason: "enough" }))
      }
      const two = kernel(echo).pipe(Layer.provide(Middleware.layer(named("outer"), named("inner"))))
      yield* told(agent, [act("x"), final("ok")]).pipe(Effect.provide(two))
      const asked = (step: number) => [`outer of ${step}`, `inner of ${step}`]
      assert.deepStrictEqual(yield* Ref.get(ref), [...asked(0), "outer", "inner", ...asked(1)])
      const error = yield* Effect.flip(Kernel.run(agent, "go", { provider: MockProvider.make() })).pipe(
        Effect.provide(kernel(echo).pipe(Layer.provide(Middleware.layer(stop))))
      )
      assert.deepInclude(error, { _tag: "MiddlewareTermination", reason: "enough" })
    })
  )

  it.effect(
    "wrap calls with the middleware of every layer, in one list, around each other and of the running fiber",
    () =>
      Effect.gen(function* () {
        const { add, ref } = yield* seen
        const named = (name: string): Middleware.Middleware => ({
          callTool: (run, next) => Effect.andThen(add(name), next(run))
        })
        const list = Layer.mergeAll(
          Middleware.layer(named("first")),
          Middleware.layerTool((run, next) => Effect.andThen(add("second"), next(run))),
          Resilience.layer(named("third"), Effect.succeed(named("fourth"))),
          Layer.provideMerge(Middleware.layer(named("inner")), Middleware.layer(named("outer")))
        )
        yield* told(agent, [act("x"), final("ok")]).pipe(
          Effect.provide(Middleware.layer(named("fiber"))),
          Effect.provideService(Middleware.Middleware, [named("value")]),
          Effect.provide(Layer.provide(kernel(echo), list))
        )
        const all = yield* Ref.get(ref)
        assert.deepStrictEqual(all.toSorted(), [
          "fiber",
          "first",
          "fourth",
          "inner",
          "outer",
          "second",
          "third",
          "value"
        ])
        const at = (name: string) => all.indexOf(name)
        assert.isBelow(at("outer"), at("inner"))
        assert.isBelow(at("third"), at("fourth"))
        assert.isBelow(at("first"), at("fiber"))
      })
  )

  it.effect("that throw while observing events change nothing (BP-97, R-23)", () =>
    Effect.gen(function* () {
      const result = yield* Kernel.run(agent, "go", { provider: MockProvider.make(final("ok")) }).pipe(
        Effect.provideService(Recorder.Recorder, {
          record: () => {
            throw new Error("listener")
          }
        }),
        Effect.provide(kernel())
      )
      assert.strictEqual(result.text, "ok")
    })
  )
})

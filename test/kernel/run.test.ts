import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Ref, Stream } from "effect"
import { Agent, Hooks, Kernel, KernelError, Message, Middleware, Model, ModelRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"
import { act, agent, echo } from "../support/echo.ts"

describe("Kernel.run", () => {
  it.effect("returns the content of the first final block, byte for byte (BP-9, BP-38)", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(`${final(" 42\r\n")}${final("43")}`)
      const result = yield* Kernel.run(agent, "go", { provider: mock })
      assert.strictEqual(result.text, " 42\r\n")
      assert.strictEqual(result.turns, 1)
    }).pipe(Effect.provide(kernel(echo)))
  )

  it.effect("fails first of all when there is no provider (BP-31)", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Kernel.run(agent, "go"))
      assert.strictEqual(error._tag, "ProviderError")
      assert.match(error.message, /No provider configured: .*ModelRegistry for <provider>\/<model>/)
    }).pipe(Effect.provide(kernel(echo)))
  )

  it.effect("prefers the run's provider over the layer's (BP-31)", () =>
    Effect.gen(function* () {
      const result = yield* Kernel.run(agent, "go", { provider: MockProvider.make(final("the run's")) })
      assert.strictEqual(result.text, "the run's")
      assert.strictEqual((yield* Kernel.run(agent, "go")).text, "the layer's")
    }).pipe(Effect.provide(kernel(echo).pipe(Layer.provide(MockProvider.layer(final("the layer's"))))))
  )

  it.effect("falls back to the registry's provider for a model that is given as a value (BP-31, DR-25)", () => {
    const served = { ...Model.textOnly, provider: "mine" }
    const mine = MockProvider.make(final("the registry's"), final("the registry's"))
    const registered = kernel().pipe(Layer.provide(ModelRegistry.layer({ mine })))
    return Effect.gen(function* () {
      const valued = Agent.make({ instructions: "", model: served })
      assert.strictEqual((yield* Effect.provide(Kernel.run(valued, "go"), registered)).text, "the registry's")
      assert.strictEqual(mine.calls[0]?.model, served)
      const both = registered.pipe(Layer.provide(MockProvider.layer(final("the layer's"))))
      assert.strictEqual((yield* Effect.provide(Kernel.run(valued, "go"), both)).text, "the layer's")
      const elsewhere = Agent.make({ instructions: "", model: { ...served, provider: "theirs" } })
      const unknown = yield* Effect.flip(Effect.provide(Kernel.run(elsewhere, "go"), registered))
      assert.strictEqual(unknown._tag, "UnsupportedProvider")
      const anywhere = yield* Effect.flip(Effect.provide(Kernel.run(agent, "go"), registered))
      assert.include(anywhere.message, "No provider configured")
    })
  })

  it.effect("treats an undefined option as omitted", () =>
    Effect.gen(function* () {
      const none = undefined
      const named = Agent.make({ instructions: "", model: "m", name: none, maxSteps: none, skills: none, prose: none })
      assert.deepStrictEqual(named, Agent.make({ instructions: "", model: "m" }))
      const loose = { allowedSkills: none, parts: none, signal: none, workerId: none, context: none }
      const first = yield* Kernel.run(named, "go", { ...loose, runId: none, history: none, provider: none })
      const again = { ...loose, approvals: none, replay: none, rewind: none, revision: none, provider: none }
      const result = yield* Kernel.resume(named, first.runId, again)
      assert.deepStrictEqual([result.text, result.runId], ["42", first.runId])
    }).pipe(Effect.provide(kernel(echo).pipe(Layer.provide(MockProvider.layer(final("42"))))))
  )

  it.effect("fails with the limit it reached when no turn converges (BP-40)", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(act("again"))
      const error = yield* Effect.flip(Kernel.run({ ...agent, maxSteps: 3 }, "go", { provider: mock, runId: "r" }))
      assert.deepStrictEqual(error, new KernelError.MaxStepsReached({ limit: 3, runId: "r" }))
      assert.strictEqual(mock.callCount, 3)
    }).pipe(Effect.provide(kernel(echo)))
  )

  it.effect("refuses an agent without a turn, and accepts an answer on the last turn (BP-40, DR-20)", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final(""))
      const error = yield* Effect.flip(Kernel.run({ ...agent, maxSteps: 0 }, "go", { provider: mock }))
      assert.deepInclude(error, { _tag: "AgentConfigInvalid", path: "maxSteps" })
      assert.strictEqual(mock.callCount, 0)
      assert.strictEqual((yield* Kernel.run({ ...agent, maxSteps: 1 }, "go", { provider: mock })).text, "")
    }).pipe(Effect.provide(kernel(echo)))
  )

  it.effect(
    "takes hooks, middleware and maxSteps of its own, inside those of its kernel, for its calls of agents too",
    () =>
      Effect.gen(function* () {
        const order: Array<string> = []
        const noting = (name: string): Hooks.Hooks => ({
          onTurnStarted: ({ state }) => Effect.sync(() => void order.push(`${name} ${state.depth}`))
        })
        const around = (name: string): Middleware.Middleware => ({
          callModel: (call, next) => {
            order.push(`${name} model`)
            return next(call)
          }
        })
        const helper = Agent.make({ name: "helper", instructions: "", model: "m" })
        const desk = { ...agent, agents: [helper] }
        const mock = MockProvider.make('<block type="command" name="helper">Go</block>', final("yes"), final("ok"))
        const own = { hooks: noting("run"), middleware: [around("run")] }
        const run = Kernel.run(desk, "go", { provider: mock, ...own })
        yield* Effect.provide(run, [Hooks.layer(noting("fiber")), Middleware.layer(around("fiber"))])
        const turn = (depth: number) => [`fiber ${depth}`, `run ${depth}`, "fiber model", "run model"]
        assert.deepStrictEqual(order, [...turn(0), ...turn(1), ...turn(0)])
        const endless = MockProvider.make(act("again"))
        const error = yield* Effect.flip(Kernel.run(agent, "go", { provider: endless, maxSteps: 2, runId: "two" }))
        assert.deepStrictEqual(error, new KernelError.MaxStepsReached({ limit: 2, runId: "two" }))
        const done = yield* Kernel.resume(agent, "two", { provider: mock, maxSteps: 3 })
        assert.strictEqual(done.turns, 3)
        const wrong = yield* Effect.flip(Kernel.run(agent, "go", { provider: endless, maxSteps: 0 }))
        assert.deepInclude(wrong, { _tag: "AgentConfigInvalid", path: "maxSteps" })
      }).pipe(Effect.provide(kernel(echo)))
  )

  it.effect("evaluates instructions after the consumer of its events has acted on the turn before", () =>
    Effect.gen(function* () {
      const name = yield* Ref.make("first")
      const dynamic = Agent.make({ instructions: Ref.get(name), model: Model.textOnly, skills: "all" })
      const mock = MockProvider.make(act("a"), act("b"), final("done"))
      yield* Kernel.stream(dynamic, "go", { provider: mock }).pipe(
        Stream.filter(({ type }) => type === "turn_completed"),
        Stream.runForEach((event) => Ref.set(name, `after ${event.type === "turn_completed" ? event.turnId : ""}`)),
        Effect.timeout("1 second")
      )
      const systems = [0, 1, 2].map((call) => Message.text(mock.messagesAt(call)?.[0] ?? Message.user("")))
      for (const [turn, text] of ["first", ":t1", ":t2"].entries()) assert.include(systems[turn], text)
    }).pipe(Effect.provide(kernel(echo)))
  )

  it.effect("refuses an agent of its team that lists a skill nobody has, and says which one is near", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final("ok"))
      const refused = (changed: Agent.Agent<unknown>) =>
        Effect.map(Effect.flip(Kernel.run(changed, "go", { provider: mock })), (error) => error.message)
      assert.include(
        yield* refused({ ...agent, skills: ["echo", "ehco"] }),
        "'skills[1]': no skill 'ehco'; did you mean 'echo'?"
      )
      const helper = Agent.make({ name: "helper", instructions: "", model: "m", skills: ["translate"] })
      assert.include(
        yield* refused({ ...agent, agents: [helper] }),
        "'helper.skills[0]': no skill 'translate'; registered: echo"
      )
      assert.strictEqual(mock.callCount, 0)
      // The server of this tool may be away.
      yield* Kernel.run({ ...agent, skills: ["echo", "mcp_files__read"] }, "go", { provider: mock })
    }).pipe(Effect.provide(kernel(echo)))
  )

  it.effect("evaluates dynamic instructions once per turn, with the services they need (BP-36)", () =>
    Effect.gen(function* () {
      const version = yield* Ref.make(0)
      const dynamic = Agent.make({
        instructions: Effect.map(
          Ref.updateAndGet(version, (n) => n + 1),
          (n) => `v${n}`
        ),
        model: Model.textOnly,
        skills: "all"
      })
      const mock = MockProvider.make(act("a"), act("b"), final("done"))
      yield* Kernel.run(dynamic, "go", { provider: mock })
      assert.strictEqual(yield* Ref.get(version), 3)
      assert.include(Message.text(mock.messagesAt(2)?.[0] ?? Message.user("")), "v3")
    }).pipe(Effect.provide(kernel(echo)))
  )

  it.effect("fails with the provider's error and keeps the run at its last commit (BP-44, DR-18)", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(act("x"), final("done")).failOnStep(1)
      const error = yield* Effect.flip(Kernel.run(agent, "go", { provider: mock, runId: "r" }))
      assert.strictEqual(error._tag, "ProviderError")
      const result = yield* Kernel.resume(agent, "r", { provider: MockProvider.make(final("after all")) })
      assert.strictEqual(result.text, "after all")
      assert.strictEqual(result.calls.length, 1)
    }).pipe(Effect.provide(kernel(echo)))
  )

  it.effect("rejects an invalid agent with the path of the error (AC-22)", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Kernel.run({ ...agent, concurrency: 0 }, "go", { provider: MockProvider.make() })
      )
      assert.deepInclude(error, { _tag: "AgentConfigInvalid", path: "concurrency" })
    }).pipe(Effect.provide(kernel()))
  )
})

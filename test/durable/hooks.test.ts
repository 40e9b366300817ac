import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Stream } from "effect"
import {
  Agent,
  Hooks,
  Kernel,
  KernelError,
  MediaStore,
  PromptPipeline,
  ProtocolRegistry,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"

const agent = Agent.make({ name: "agent", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

const look = Skill.dynamic("look", {
  description: "looks",
  inputSchema: { type: "object" },
  execute: (input) => Effect.sync(() => (Reflect.set(input, "at", "elsewhere"), { seen: [1] }))
})

const runWith = (hooks: Hooks.Hooks, options?: Kernel.RunOptions) =>
  Effect.gen(function* () {
    const provider = MockProvider.make({ calls: [{ id: "call-a", name: "look", params: { at: { x: 1 } } }] }, "done")
    return yield* Kernel.run(agent, "go", { runId: "run", provider, context: { list: [1] }, ...options }).pipe(
      Effect.provide(Hooks.layer(hooks))
    )
  })

const stored = Kernel.layer.pipe(
  Layer.provide([SkillRegistry.layer(look), ProtocolRegistry.layer(), MediaStore.layerMemory]),
  Layer.provideMerge(RunStore.layerMemory)
)

const layer = Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(look), MockProvider.layer("unused")]))

/** Every object of a value, however deep. */
const objectsOf = (value: unknown, seen = new Set<object>()): ReadonlySet<object> => {
  if (typeof value !== "object" || value === null || seen.has(value) || ArrayBuffer.isView(value)) return seen
  seen.add(value)
  for (const key of Reflect.ownKeys(value)) objectsOf(Reflect.get(value, key), seen)
  if ("turns" in value) objectsOf(value.turns, seen)
  if ("prompt" in value) objectsOf(value.prompt, seen)
  return seen
}

const gates = ["onTurnPrepared", "onToolCallsStarted", "onToolCallStarted", "onRunCompleted"] as const
const settles = [
  "onRunStarted",
  "onTurnStarted",
  "onModelStarted",
  "onModelCompleted",
  "onToolCallCompleted",
  "onToolCallsCompleted",
  "onTurnCompleted"
] as const

describe("what a hook is given", () => {
  for (const name of [...gates, ...settles]) {
    it.effect(`${name}: everything is frozen, at every depth (DR-2)`, () =>
      Effect.gen(function* () {
        let given = 0
        yield* runWith({
          [name]: (args: Hooks.HookArgs) =>
            Effect.sync(() => {
              for (const object of objectsOf(args)) {
                given++
                assert.isTrue(Object.isFrozen(object), `${name}: ${JSON.stringify(object)}`)
              }
            })
        })
        assert.isAbove(given, 5)
      }).pipe(Effect.provide(layer))
    )
  }

  it.effect("a hook that changes what it is given fails, and changes nothing (DR-2)", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(
        runWith({
          onTurnStarted: ({ context }) => Effect.sync(() => void Object.assign(context, { mine: true }))
        })
      )
      assert.isTrue(Exit.isFailure(exit))
      const result = yield* Kernel.resume(agent, "run", {
        provider: MockProvider.make("done")
      })
      assert.strictEqual(result.text, "done")
    }).pipe(Effect.provide(layer))
  )

  it.effect("the context a host gave stays its own (DR-2)", () =>
    Effect.gen(function* () {
      const context = { list: [1] }
      yield* runWith({ onTurnStarted: () => Effect.succeed({ context: { more: true } }) }, { context })
      context.list.push(2)
      assert.deepStrictEqual(context, { list: [1, 2] })
    }).pipe(Effect.provide(layer))
  )

  it.effect("commitKey names the run and the revision the hook stands at (DR-8)", () =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const note = ({ commitKey }: Hooks.HookArgs) => Effect.sync(() => void keys.push(commitKey))
      yield* runWith({ onRunStarted: note, onTurnPrepared: note, onToolCallCompleted: note, onRunCompleted: note })
      assert.deepStrictEqual(keys, ["run:1", "run:2", "run:9", "run:12", "run:16"])
    }).pipe(Effect.provide(layer))
  )

  it.effect("commitKey is the same for a hook that is asked again after a crash (DR-8)", () =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const cut = ({ commitKey }: Hooks.HookArgs) =>
        Effect.suspend(() => (keys.push(commitKey) === 1 ? Effect.interrupt : Effect.void))
      assert.isTrue(Exit.isFailure(yield* Effect.exit(runWith({ onTurnPrepared: cut }))))
      const provider = MockProvider.make("done")
      yield* Effect.provide(Kernel.resume(agent, "run", { provider }), Hooks.layer({ onTurnPrepared: cut }))
      assert.deepStrictEqual(keys, ["run:2", "run:2"])
    }).pipe(Effect.provide(stored))
  )

  it.effect("onModelCompleted sees the provider's own parts, which are never stored (DR-27)", () =>
    Effect.gen(function* () {
      const raw: Array<string> = []
      yield* runWith({
        onModelCompleted: (args) => Effect.sync(() => void raw.push(args.raw.map((part) => part.type).join(" ")))
      })
      assert.deepStrictEqual(raw, [
        "tool-params-start tool-params-delta tool-params-end tool-call finish",
        "text-start text-delta text-end finish"
      ])
      const store = yield* RunStore.RunStore
      const journal = JSON.stringify(yield* Stream.runCollect(store.read("run")))
      assert.isFalse(journal.includes("tool-params-delta"))
    }).pipe(Effect.provide(stored))
  )

  it.effect("a skill that changes its input changes nothing that is stored (R-3)", () =>
    Effect.gen(function* () {
      const result = yield* runWith({})
      assert.deepStrictEqual(result.toolCallsMade[0]?.input, { at: { x: 1 } })
    }).pipe(Effect.provide(layer))
  )
})

describe("what a run keeps of its failure", () => {
  const failing = (error: KernelError.KernelError) =>
    Effect.gen(function* () {
      const pipeline = { build: () => Effect.fail(error) }
      assert.strictEqual(
        yield* Effect.flip(Effect.provideService(runWith({}), PromptPipeline.PromptPipeline, pipeline)),
        error
      )
      const state = yield* RunStore.RunStore.use((store) => store.load("run"))
      const { status } = Option.getOrThrow(state)
      return status.type === "failed" ? status.error : undefined
    }).pipe(Effect.provide(stored))

  it.effect("is its tag, its sentence and its fields, as JSON takes them (DR-18, R-8)", () =>
    Effect.gen(function* () {
      const limited = { provider: "p", reason: "rate_limited", detail: "", retryAt: 5 } as const
      assert.deepStrictEqual(yield* failing(new KernelError.ProviderError(limited)), {
        tag: "ProviderError",
        message: "p: rate_limited",
        fields: limited
      })
      const tasks = ["a", "b"]
      assert.deepInclude(yield* failing(new KernelError.DeadlockError({ tasks })), { fields: { tasks } })
    })
  )

  it.effect("holds nothing that looks like a key, in its sentence or its fields (S-7)", () =>
    Effect.gen(function* () {
      const detail = "invalid key Bearer sk-SECRET-0123456789abcdef"
      const error = new KernelError.ProviderError({ provider: "p", reason: "authentication", detail })
      const clean = "invalid key Bearer <redacted>"
      assert.deepInclude(yield* failing(error), {
        message: `p: ${clean}`,
        fields: { provider: "p", reason: "authentication", detail: clean }
      })
    })
  )
})

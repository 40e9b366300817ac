/** Kernels of one program, each with references of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Ref, Schema } from "effect"
import {
  Agent,
  Hooks,
  Kernel,
  Limits,
  MediaStore,
  Memory,
  Middleware,
  ModelRegistry,
  Policy,
  ProtocolRegistry,
  Redaction,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { SkillPack } from "kernai/file"
import { MockProvider } from "kernai/testing"

class First extends Context.Service<First, Kernel.KernelShape>()("test/First") {}
class Second extends Context.Service<Second, Kernel.KernelShape>()("test/Second") {}

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("paid with hunter-2222 and hunter-3333")
})
const agent = Agent.make({ instructions: "", model: "mock/m", dialect: "tools", skills: [pay] })
const model = () =>
  MockProvider.make().onCall(({ messages }) =>
    messages.some(({ role }) => role === "tool") ? "done" : { calls: [{ name: "pay", input: {} }] }
  )

const stores = [RunStore.layerMemory, MediaStore.layerMemory, ProtocolRegistry.layer()] as const
const ways = {
  layer: () => Layer.provide(Kernel.layer, [MockProvider.layerOf(model()), SkillRegistry.layer(pay), ...stores]),
  layerModels: () =>
    Layer.provide(Kernel.layerModels, [
      ModelRegistry.layer({ mock: Effect.succeed(model()) }),
      SkillRegistry.layer(pay),
      ...stores
    ]),
  layerNoProvider: () => Layer.provide(Kernel.layerNoProvider, [SkillRegistry.layer(pay), ...stores]),
  layerMemory: () => Layer.provide(Kernel.layerMemory, [MockProvider.layerOf(model()), SkillRegistry.layer(pay)])
}

/** One program with two kernels, each with references of its own. */
const both = (
  way: () => Layer.Layer<Kernel.Kernel, unknown>,
  first: Layer.Layer<never>,
  second: Layer.Layer<never>
) => {
  const kernelAs = <I>(tag: Context.Key<I, Kernel.KernelShape>, references: Layer.Layer<never>) =>
    Layer.effect(tag, Kernel.Kernel).pipe(Layer.provide(Layer.orDie(Layer.provide(way(), references))))
  return Layer.merge(kernelAs(First, first), kernelAs(Second, second))
}

/** Runs the agent, and returns what its model sees of the call. */
const outputOf = Effect.fnUntraced(function* (kernel: Kernel.KernelShape) {
  const mock = model()
  yield* kernel.run(agent, "go", { provider: mock })
  return JSON.stringify(mock.messagesAt(1))
})

const outputs = Effect.all([Effect.flatMap(First, outputOf), Effect.flatMap(Second, outputOf)])

describe("Two kernels of one program", () => {
  for (const [name, way] of Object.entries(ways)) {
    it.effect(`keep their own policies, whichever is built first, with ${name}`, () =>
      Effect.gen(function* () {
        const open = Policy.layer(() => Effect.succeed(Policy.allowed))
        const strict = Policy.layer(() => Effect.succeed(Policy.denied("not here")))
        const [first, second] = yield* Effect.provide(outputs, both(way, open, strict))
        assert.deepStrictEqual([first.includes("not here"), second.includes("not here")], [false, true])
        const [third, fourth] = yield* Effect.provide(outputs, both(way, strict, open))
        assert.deepStrictEqual([third.includes("not here"), fourth.includes("not here")], [true, false])
      })
    )

    it.effect(`keep their own redaction and limits, with ${name}`, () =>
      Effect.gen(function* () {
        const hiding = (secret: string) => Redaction.layer({ secrets: [Redacted.make(secret)] })
        const [first, second] = yield* Effect.provide(outputs, both(way, hiding("hunter-2222"), hiding("hunter-3333")))
        assert.deepStrictEqual([first.includes("hunter-2222"), first.includes("hunter-3333")], [false, true])
        assert.deepStrictEqual([second.includes("hunter-2222"), second.includes("hunter-3333")], [true, false])
        const sizes = both(way, Limits.layer({}), Limits.layer({ resultBytes: 8 }))
        const [long, short] = yield* Effect.provide(outputs, sizes)
        assert.deepStrictEqual([long.includes("hunter-3333"), short.includes("hunter-3333")], [true, false])
      })
    )

    it.effect(`keep their own hooks and middleware, with ${name}`, () =>
      Effect.gen(function* () {
        const seen = yield* Ref.make<ReadonlyArray<string>>([])
        const add = (word: string) => Ref.update(seen, (words) => [...words, word])
        const own = (name: string) =>
          Layer.merge(
            Hooks.layer({ onRunStarted: () => add(`hook ${name}`) }),
            Middleware.layer({ callTool: (call, next) => Effect.andThen(add(`middleware ${name}`), next(call)) })
          )
        yield* Effect.provide(outputs, both(way, own("first"), own("second")))
        assert.deepStrictEqual(yield* Ref.get(seen), [
          "hook first",
          "middleware first",
          "hook second",
          "middleware second"
        ])
      })
    )
  }

  it.effect("act as one where they have the same stores: a run of one is resumed by the other", () =>
    Effect.gen(function* () {
      for (const way of [ways.layer, ways.layerMemory]) {
        const program = Effect.gen(function* () {
          const first = yield* First
          const second = yield* Second
          const run = yield* first.run(agent, "go", { runId: "r", provider: model() })
          assert.strictEqual((yield* second.resume(agent, "r")).runId, run.runId)
        })
        yield* Effect.provide(program, both(way, Layer.empty, Layer.empty))
      }
    })
  )
})

describe("Layers that depend on a service in context", () => {
  class One extends Context.Service<One, Memory.MemoryShape>()("test/One") {}
  class Other extends Context.Service<Other, Memory.MemoryShape>()("test/Other") {}
  const memoryAs = <I>(tag: Context.Key<I, Memory.MemoryShape>, embedder: Layer.Layer<never>) =>
    Layer.effect(tag, Memory.Memory).pipe(Layer.provide(Layer.provide(Memory.layerMemory, embedder)))
  const embedding = (vector: ReadonlyArray<number>) => Layer.succeed(Memory.Embedder, () => Effect.succeed(vector))
  const areSame = Effect.map(Effect.all([One, Other]), ([one, other]) => one === other)

  it.effect("keep one memory for each embedder", () =>
    Effect.gen(function* () {
      const embedder = embedding([1])
      const same = Layer.merge(memoryAs(One, embedder), memoryAs(Other, embedder))
      assert.isTrue(yield* Effect.provide(areSame, same))
      const without = Layer.merge(memoryAs(One, Layer.empty), memoryAs(Other, Layer.empty))
      assert.isTrue(yield* Effect.provide(areSame, without))
      const different = Layer.merge(memoryAs(One, embedder), memoryAs(Other, embedding([0])))
      assert.isFalse(yield* Effect.provide(areSame, different))
    })
  )

  it.effect("add the skills of skill packs to every registry, and once to each", () =>
    Effect.gen(function* () {
      const added = () => Layer.provide(SkillPack.layerSkills, SkillPack.layerMemory({}))
      const namesIn = Effect.flatMap(SkillRegistry.SkillRegistry, (registry) =>
        Effect.map(registry.all, (skills) => skills.map(({ name }) => name))
      )
      const registryOf = () => Layer.provideMerge(added(), SkillRegistry.layer())
      const build = (registry: Layer.Layer<SkillRegistry.SkillRegistry, SkillRegistry.ToolNameConflict>) =>
        Layer.effectDiscard(
          Effect.flatMap(namesIn, (names) => Effect.sync(() => void found.push(names.includes("skills_load"))))
        ).pipe(Layer.provide(registry))
      const found: Array<boolean> = []
      yield* Effect.scoped(Layer.build(Layer.merge(build(registryOf()), build(registryOf()))))
      assert.deepStrictEqual(found, [true, true])
      const shared = SkillRegistry.layer()
      const twice = Layer.merge(build(Layer.provideMerge(added(), shared)), build(Layer.provideMerge(added(), shared)))
      yield* Effect.scoped(Layer.build(twice))
      assert.deepStrictEqual(found, [true, true, true, true])
    })
  )
})

/**
 * Values made where they are used. TypeScript infers from such a place, too: a place that takes any requirements must
 * not make a requirement `any`, behind which a missing service could hide.
 */
import { Context, Effect, Layer, Schema, Stream } from "effect"
import { Agent, Hooks, Kernel, Middleware, Policy, Skill, SkillRegistry } from "kernai"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

class Shop extends Context.Service<Shop, { readonly sell: Effect.Effect<string> }>()("typetest/Shop") {}

const sell = Effect.flatMap(Shop, ({ sell }) => sell)
const sub = Agent.make({ name: "sub", instructions: "i", model: "m" })

type Needs<A> = A extends Effect.Effect<unknown, unknown, infer R> ? R : never
type LayerNeeds<A> = A extends Layer.Layer<never, unknown, infer R> ? R : never

// ---------------------------------------------------------------- runs

export const plain = Effect.all([Kernel.run(Agent.make({ instructions: "i", model: "m" }), "x")])
yes<Equal<Needs<typeof plain>, Kernel.Kernel>>()

export const named = Effect.all([
  Kernel.run(Agent.make({ instructions: "i", model: "m", skills: ["search"], agents: [sub] }), "x"),
  Kernel.run(Agent.make({ instructions: "i", model: "m", output: Schema.Struct({ a: Schema.Number }) }), "x")
])
yes<Equal<Needs<typeof named>, Kernel.Kernel>>()

export const inlineSkill = Effect.all([
  Kernel.run(
    Agent.make({
      instructions: "i",
      model: "m",
      skills: [Skill.make("sell", { description: "d", input: Schema.Struct({}), execute: () => sell })]
    }),
    "x"
  )
])
yes<Equal<Needs<typeof inlineSkill>, Kernel.Kernel | Shop>>()

export const inlineInstructions = Effect.all([Kernel.run(Agent.make({ instructions: sell, model: "m" }), "x")])
yes<Equal<Needs<typeof inlineInstructions>, Kernel.Kernel | Shop>>()

export const inlineMember = Effect.all([
  Kernel.run(
    Agent.make({ instructions: "i", model: "m", agents: [Agent.make({ name: "a", instructions: sell, model: "m" })] }),
    "x"
  )
])
yes<Equal<Needs<typeof inlineMember>, Kernel.Kernel | Shop>>()

export const streamed = Effect.all([
  Stream.runDrain(Kernel.stream(Agent.make({ instructions: sell, model: "m" }), "x"))
])
yes<Equal<Needs<typeof streamed>, Kernel.Kernel | Shop>>()

export const submitted = Effect.all([Kernel.submit(Agent.make({ instructions: sell, model: "m" }), "x")])
yes<Equal<Needs<typeof submitted>, Kernel.Kernel | Shop>>()

export const resumed = Effect.all([Kernel.resume(Agent.make({ instructions: sell, model: "m" }), "run")])
yes<Equal<Needs<typeof resumed>, Kernel.Kernel | Shop>>()

class Till extends Context.Service<Till, { readonly open: Effect.Effect<string> }>()("typetest/Till") {}

const both = Agent.make({
  instructions: Effect.andThen(
    sell,
    Effect.flatMap(Till, ({ open }) => open)
  ),
  model: "m"
})
export const provided = Effect.provideService(Kernel.run(both, "x"), Till, { open: Effect.succeed("x") })
yes<Equal<Needs<typeof provided>, Kernel.Kernel | Shop>>()

// ---------------------------------------------------------------- layers

export const layers = Layer.mergeAll(
  SkillRegistry.layer(Skill.make("sell", { description: "d", input: Schema.Struct({}), execute: () => sell }))
)
yes<Equal<typeof layers extends Layer.Layer<infer _A, infer _E, infer R> ? R : never, Shop>>()

export const policies = Layer.mergeAll(Policy.layer(() => Effect.as(sell, Policy.allowed)))
yes<Equal<LayerNeeds<typeof policies>, Shop>>()

export const middleware = Layer.mergeAll(Middleware.layerTool((call, next) => Effect.andThen(sell, next(call))))
yes<Equal<LayerNeeds<typeof middleware>, Shop>>()

export const hooks = Layer.mergeAll(Hooks.layer({ onRunStarted: () => Effect.asVoid(sell) }))
yes<Equal<LayerNeeds<typeof hooks>, Shop>>()

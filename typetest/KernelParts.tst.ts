/**
 * The layer of a kernel needs what its parts need, and fails as they do.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { Kernel, type Provider, RunStore, Skill, type SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

class Till extends Context.Service<Till, { readonly pay: Effect.Effect<string> }>()("typetest/Till") {}

const pay = Skill.make("pay", {
  description: "d",
  input: Schema.Struct({}),
  execute: () => Effect.flatMap(Till, ({ pay }) => pay)
})

export const bare = Kernel.layerWith({})
yes<Equal<typeof bare, Layer.Layer<Kernel.Kernel | Kernel.Parts, never, Provider.Provider>>>()

export const whole = Kernel.layerWith({ provider: MockProvider.layer(), skills: [pay], store: RunStore.layerMemory })
yes<Equal<typeof whole, Layer.Layer<Kernel.Kernel | Kernel.Parts, SkillRegistry.ToolNameConflict, Till>>>()

// @ts-expect-error a misspelt part is refused
export const misspelt = Kernel.layerWith({ provider: MockProvider.layer(), stores: RunStore.layerMemory })

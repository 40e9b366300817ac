/**
 * The services that each layer of the kernel needs: a kernel without a way to its models does not compile unawares.
 */
import { Effect, Layer } from "effect"
import {
  Agent,
  Kernel,
  type KernelError,
  MediaStore,
  type ModelRegistry,
  ProtocolRegistry,
  type Provider,
  RunStore,
  SkillRegistry
} from "kernai"
import { HttpModelRegistry } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import type { HttpClient } from "effect/http"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

type Parts = SkillRegistry.SkillRegistry | ProtocolRegistry.ProtocolRegistry | MediaStore.MediaStore | RunStore.RunStore

yes<Equal<typeof Kernel.layer, Layer.Layer<Kernel.Kernel, never, Parts | Provider.Provider>>>()
yes<Equal<typeof Kernel.layerModels, Layer.Layer<Kernel.Kernel, never, Parts | ModelRegistry.ModelRegistry>>>()
yes<Equal<typeof Kernel.layerNoProvider, Layer.Layer<Kernel.Kernel, never, Parts>>>()
yes<
  Equal<typeof Kernel.layerMemory, Layer.Layer<Kernel.Kernel, never, SkillRegistry.SkillRegistry | Provider.Provider>>
>()

const parts = Layer.mergeAll(
  SkillRegistry.layer(),
  ProtocolRegistry.layer(),
  MediaStore.layerMemory,
  RunStore.layerMemory
)
const agent = Agent.make({ instructions: "", model: "m" })
const program = Kernel.run(agent, "")

export const whole = Kernel.layer.pipe(Layer.provide([parts, MockProvider.layer()]))
yes<Equal<typeof whole, Layer.Layer<Kernel.Kernel, KernelError.ToolNameConflict>>>()
export const models = Kernel.layerModels.pipe(Layer.provide([parts, HttpModelRegistry.layer]))
yes<Equal<typeof models, Layer.Layer<Kernel.Kernel, KernelError.ToolNameConflict, HttpClient.HttpClient>>>()

export const run = Effect.provide(program, whole)
yes<Equal<Effect.Services<typeof run>, never>>()
// Without a way to its models a program still needs one.
export const unprovided = Effect.provide(program, Layer.provide(Kernel.layer, parts))
yes<Equal<Effect.Services<typeof unprovided>, Provider.Provider>>()
export const unregistered = Effect.provide(program, Layer.provide(Kernel.layerModels, parts))
yes<Equal<Effect.Services<typeof unregistered>, ModelRegistry.ModelRegistry>>()
export const each = Effect.provide(
  Kernel.run(agent, "", { provider: MockProvider.make() }),
  Layer.provide(Kernel.layerNoProvider, parts)
)
yes<Equal<Effect.Services<typeof each>, never>>()

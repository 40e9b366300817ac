import { Layer } from "effect"
import { Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { draw, measure } from "./agent.ts"
import { model } from "./model.ts"

const skills = SkillRegistry.layer(draw, measure).pipe(Layer.provide(MediaStore.layerMemory))

export const live = Kernel.layer.pipe(
  Layer.provide([
    skills,
    MockProvider.layerOf(model()),
    ProtocolRegistry.layer(),
    MediaStore.layerMemory,
    RunStore.layerMemory
  ])
)

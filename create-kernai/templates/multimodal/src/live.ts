import { Layer } from "effect"
import { Kernel, MediaStore } from "kernai"
import { MockProvider } from "kernai/testing"
import { draw, measure } from "./agent.ts"
import { model } from "./model.ts"

export const live = Kernel.layerWith({ skills: [draw, measure], provider: MockProvider.layerOf(model()) }).pipe(
  Layer.provide(MediaStore.layerMemory)
)

import { describe } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { RunStore } from "kernai"
import { suite } from "./support/runStore.ts"

describe("RunStore.layerMemory", () => {
  const context = Effect.runSync(Effect.scoped(Layer.build(RunStore.layerMemory)))
  suite(Effect.succeed(Context.get(context, RunStore.RunStore)))
})

describe("RunStore.makeMemory", () => {
  suite(Effect.succeed(Effect.runSync(RunStore.makeMemory)))
})

import { Console, Effect, Layer } from "effect"
import { Kernel, SkillRegistry } from "kernai"
import { Code } from "kernai/code"
import { MockProvider } from "kernai/testing"
import { agent } from "./agent.ts"
import { model } from "./model.ts"

const live = Layer.mergeAll(
  Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(), MockProvider.layerOf(model())])),
  Code.layerQuickJs()
)

const program = Effect.gen(function* () {
  const result = yield* Kernel.run(agent, "Which cities of Norway are large?")
  yield* Console.log(result.text)
})

await Effect.runPromise(Effect.provide(program, live))

import { Console, Effect, Layer } from "effect"
import { Kernel, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { agent, population } from "./agent.ts"

const model = MockProvider.layer(
  `<block type="command" name="population">{"city": "Oslo"}</block>`,
  `<block type="final">Oslo has 717,710 inhabitants.</block>`
)
const live = Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(population), model]))

const program = Effect.gen(function* () {
  const result = yield* Kernel.run(agent, "How many people live in Oslo?")
  yield* Console.log(result.text)
})

await Effect.runPromise(Effect.provide(program, live))

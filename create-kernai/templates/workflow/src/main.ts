import { Console, Effect, Layer, Stream } from "effect"
import { Kernel, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { agent, population } from "./agent.ts"
import { model } from "./model.ts"

const live = Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(population), MockProvider.layerOf(model())]))

const program = Kernel.stream(agent, "Which city is larger, Oslo or Rome?").pipe(
  Stream.runForEach((event) => {
    switch (event.type) {
      case "task_start":
        return Console.log(`${event.id} starts`)
      case "task_complete":
        return Console.log(`${event.id} is done: ${event.result}`)
      case "run_completed":
        return event.depth === 0 ? Console.log(event.result?.text) : Effect.void
      default:
        return Effect.void
    }
  })
)

await Effect.runPromise(Effect.provide(program, live))

import { Console, Effect, Layer, Stream } from "effect"
import { Kernel, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { editor } from "./agents.ts"
import { model } from "./model.ts"

const live = Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(), MockProvider.layerOf(model())]))

// One stream has the events of all agents; `depth` says how far below the editor each one runs.
const program = Kernel.stream(editor, "Write about Oslo and Rome.").pipe(
  Stream.runForEach((event) => {
    const indent = "  ".repeat(event.depth)
    switch (event.type) {
      case "skill_execute":
        return Console.log(`${indent}${event.skill} ${JSON.stringify(event.input)}`)
      case "agent_changed":
        return Console.log(`${indent}${event.from} hands over to ${event.to}`)
      case "final":
        return Console.log(`${indent}${event.text}`)
      default:
        return Effect.void
    }
  })
)

await Effect.runPromise(Effect.provide(program, live))

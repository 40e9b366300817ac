/**
 * A run as a stream of events.
 *
 * `Kernel.run` is `Kernel.stream` folded to its last event. Interrupting the consumer of the stream stops the model
 * call, the skills and the run.
 *
 * npm run example -- examples/02-streaming.ts
 */
import { Console, Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"

const count = Skill.make("count", {
  description: "Counts the letters of a word",
  input: Schema.Struct({ word: Schema.String }),
  effects: "read",
  execute: ({ word }) => Effect.succeed(word.length)
})

// Skills given as values type the events: `event.output` of `count` is a number.
const agent = Agent.make({ instructions: "You count letters.", model: "scripted", skills: [count] })

const program = Kernel.stream(agent, "How long is 'fiber'?").pipe(
  Stream.runForEach((event) => {
    switch (event.type) {
      case "turn_started":
        return Console.log(`step ${event.step}`)
      // Blocks are read while they stream: their text arrives in pieces, as the model writes it.
      case "block_start":
        return Console.log(`  ${event.blockType} begins`)
      case "block_content":
        return Console.log(`    ${event.text}`)
      case "skill_result":
        return Console.log(`  ${event.skill} gave ${event.output + 0}`)
      case "run_completed":
        return Console.log(`answer: ${event.result?.text}`)
      default:
        return Effect.void
    }
  })
)

const model = MockProvider.make(
  `<block type="command" name="count">{"word": "fiber"}</block>`,
  `<block type="final">It has five letters.</block>`
)
  .withChunking(24)
  .withDelay({ between: 1 })

const KernelLive = Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(count), MockProvider.layerOf(model)]))

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// step 0
//   command begins
//     {"word": "fib
//     er"}
//   count gave 5
// step 1
//   final begins
//     It h
//     as five letters.
// answer: It has five letters.

/**
 * A place to play: a scripted model, one skill, every event on the screen.
 *
 * `npm run example -- scratchpad/playground.ts`
 */
import { Console, Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"

const shout = Skill.make("shout", {
  description: "Says it louder",
  input: Schema.Struct({ text: Schema.String }),
  effects: "read",
  execute: ({ text }) => Effect.succeed(text.toUpperCase())
})

const agent = Agent.make({ instructions: "You shout.", model: "scripted", skills: [shout] })

const program = Kernel.stream(agent, "Say hi.").pipe(
  Stream.runForEach((event) => Console.log(`${event.step} ${event.type}`))
)

const model = MockProvider.layer(`<block type="command" name="shout">hi</block>`, `<final>HI</final>`)

await Effect.runPromise(
  Effect.provide(program, Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(shout), model])))
)

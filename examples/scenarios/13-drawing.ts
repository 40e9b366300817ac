/** A picture as a result: a skill draws it, and the model sees and describes it. */
import { Effect, Schema } from "effect"
import { Media, Skill } from "kernai"
import { Scenario } from "kernai/testing"
import { redSquare } from "./_media.ts"

const draw = Skill.make("draw_square", {
  description: "Draws a square in a colour",
  input: Schema.Struct({ colour: Schema.String }),
  effects: "read",
  produces: ["image"],
  execute: ({ colour }) =>
    Effect.succeed(Skill.result(`a ${colour} square`, { media: Media.fromBytes(redSquare, "image/png") }))
})

export default Scenario.make({
  name: "drawing",
  description: "A skill gives a picture, shown to the model under its id",
  instructions: "You draw with your skill and describe what you see.",
  capabilities: ["text", "vision"],
  skills: [draw],
  input: "Draw a red square and describe it.",
  offline: {
    root: [
      '<block type="command" name="draw_square">{"colour": "red"}</block>',
      '<block type="final">A plain red square.</block>'
    ]
  },
  expect: ({ recording }) => {
    const sent = JSON.stringify(recording.findLast((entry) => entry.event === "messages_sent")?.data)
    return sent.includes('kind=\\"image\\"') && sent.includes('"image"') ? [] : ["the model did not see the picture"]
  }
})

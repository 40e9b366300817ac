/**
 * Media between tasks: one sub-agent draws, another one measures the same picture by its id.
 */
import { Effect, Schema } from "effect"
import { Media, MediaStore, Skill } from "kernai"
import { Scenario } from "kernai/testing"
import { redSquare } from "./_media.ts"

const picture = Media.fromBytes(redSquare, "image/png")

const draw = Skill.make("draw_square", {
  description: "Draws a square",
  input: Schema.Struct({}),
  effects: "read",
  produces: ["image"],
  execute: () => Effect.succeed(Skill.result("drawn", { media: picture }))
})

const measure = Skill.make("measure", {
  description: "The size of a picture in bytes, given the id in its media block",
  input: Schema.Struct({ image: MediaStore.Reference }),
  effects: "read",
  execute: ({ image }) =>
    MediaStore.MediaStore.use((store) => Effect.map(store.bytes(image.id), (bytes) => `${bytes.length} bytes`))
})

const id = await Effect.runPromise(Media.id(picture))

const plan = {
  goal: "The size of a drawing",
  strategy: "mixed",
  tasks: [
    { id: "draw", input: "Draw a square." },
    { id: "measure", input: "Measure the picture of the task before you.", depends_on: ["draw"] }
  ]
}

export default Scenario.make({
  name: "shared-media",
  description: "A task uses the picture another task made",
  instructions: "You let one sub-agent draw and another one measure what it drew.",
  capabilities: ["text", "vision"],
  skills: [draw, measure],
  input: "Draw a square. How large is it?",
  offline: {
    root: [
      `<block type="plan">${JSON.stringify(plan)}</block>`,
      `<block type="final">${redSquare.length} bytes.</block>`
    ],
    tasks: {
      draw: ['<block type="command" name="draw_square"></block>', '<block type="final">done</block>'],
      measure: [
        `<block type="command" name="measure">{"image": "${id}"}</block>`,
        `<block type="final">${redSquare.length} bytes</block>`
      ]
    }
  },
  expect: ({ recording, result }) => [
    ...(recording.some((entry) => entry.event === "skill_error") ? ["the picture was not found"] : []),
    ...(result?.includes(String(redSquare.length)) === true ? [] : ["the size is wrong"])
  ]
})

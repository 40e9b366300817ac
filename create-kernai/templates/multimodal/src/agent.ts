import { Effect, Schema } from "effect"
import { Agent, Media, MediaStore, type Model, Skill } from "kernai"

const seeing: Model.Model = { id: "scripted", capabilities: ["text", "vision"] }

/** A picture of one pixel. */
export const pixel = Media.fromBytes(
  Uint8Array.from(
    atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
    (character) => character.charCodeAt(0)
  ),
  "image/png"
)

/** Returns a picture: the model sees it on its next turn. */
export const draw = Skill.make("draw", {
  description: "Draws a picture",
  input: Schema.Struct({ what: Schema.String }),
  effects: "read",
  produces: ["image"],
  execute: () => Effect.succeed(Skill.result("here it is", { media: pixel }))
})

/** Takes a picture by the id that the model read. Only models with vision may call it. */
export const measure = Skill.make("measure", {
  description: "Tells how many bytes a picture has",
  input: Schema.Struct({ image: MediaStore.Reference }),
  effects: "read",
  requires: ["vision"],
  execute: ({ image }) =>
    Effect.map(
      MediaStore.MediaStore.use((store) => store.bytes(image.id)),
      (bytes) => `${bytes.length} bytes`
    )
})

export const agent = Agent.make({
  instructions: "You look at pictures.",
  model: seeing,
  dialect: "auto",
  skills: [draw, measure]
})

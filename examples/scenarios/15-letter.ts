/**
 * Reading a scan: the skill that recognizes text takes a picture by its id, and only models with vision may call it.
 */
import { Effect, Schema } from "effect"
import { Media, MediaStore, Skill } from "kernai"
import { Scenario } from "kernai/testing"
import { redSquare } from "./_media.ts"

const scan = Media.fromBytes(redSquare, "image/png")

const recognize = Skill.make("recognize_text", {
  description: "The text in a scan, given the id in its media block",
  input: Schema.Struct({ scan: MediaStore.Reference }),
  effects: "read",
  requires: ["vision"],
  execute: ({ scan }) =>
    MediaStore.MediaStore.use((store) =>
      Effect.map(store.bytes(scan.id), ({ length }) =>
        length === redSquare.length ? "To pay until 30 June: 240 EUR, invoice 81" : "the scan is empty"
      )
    )
})

const id = await Effect.runPromise(Media.id(scan))

export default Scenario.make({
  name: "letter",
  description: "A skill that needs a model with vision reads the text of a scan",
  instructions: "You look after letters. Let a skill read what is scanned, by the id of the picture.",
  capabilities: ["text", "vision"],
  skills: [recognize],
  input: ["How much is to be paid, and until when? The scan is here.", scan],
  offline: {
    root: [
      `<block type="command" name="recognize_text">{"scan": "${id}"}</block>`,
      '<block type="final">240 EUR until 30 June.</block>'
    ]
  },
  expect: ({ recording, result }) => [
    ...(recording.some((entry) => entry.event === "skill_result") ? [] : ["the scan was not read"]),
    ...(result?.includes("240") === true ? [] : ["the amount is missing"])
  ]
})

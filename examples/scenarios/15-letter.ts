/**
 * Reading a scan: the skill that recognizes text takes a picture by the id that another one gave, and only models with
 * vision may call it.
 */
import { Effect, Schema } from "effect"
import { Media, MediaStore, Skill } from "kernai"
import { Scenario } from "kernai/testing"
import { redSquare } from "./_media.ts"

const scan = Media.fromBytes(redSquare, "image/png")

const open = Skill.make("open_scan", {
  description: "The scan of a letter, as a picture",
  input: Schema.Struct({ letter: Schema.Int }),
  effects: "read",
  produces: ["image"],
  execute: () => Effect.succeed(scan)
})

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
  instructions: "You look after letters. Open the scan, then let a skill read it by its id.",
  capabilities: ["text", "vision"],
  skills: [open, recognize],
  input: "How much does letter 4 ask for, and until when?",
  offline: {
    root: [
      '<block type="command" name="open_scan">{"letter": 4}</block>',
      `<block type="command" name="recognize_text">{"scan": "${id}"}</block>`,
      '<block type="final">240 EUR until 30 June.</block>'
    ]
  },
  expect: ({ recording, result }) => [
    ...(recording.some((entry) => JSON.stringify(entry.data).includes("invoice 81")) ? [] : ["the scan was not read"]),
    ...(result?.includes("240") === true ? [] : ["the amount is missing"])
  ]
})

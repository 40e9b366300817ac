/** A picture in the question: the model sees it together with the text. */
import { Media } from "kernai"
import { Scenario } from "kernai/testing"
import { redSquare } from "./_media.ts"

export default Scenario.make({
  name: "picture",
  description: "A question with a picture",
  instructions: "You answer in one word.",
  capabilities: ["text", "vision"],
  input: ["What colour is this square?", Media.fromBytes(redSquare, "image/png")],
  offline: { root: ["Red."] },
  expect: ({ recording, result }) => [
    ...(JSON.stringify(recording.find((entry) => entry.event === "messages_sent")?.data).includes('"image"')
      ? []
      : ["the picture was not sent"]),
    ...(/red/i.test(result ?? "") ? [] : ["the colour is wrong"])
  ]
})

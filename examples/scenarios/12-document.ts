/**
 * A document by its id: one skill fetches it, another one reads what the first one fetched.
 */
import { Effect, Schema } from "effect"
import { Media, MediaStore, Skill } from "kernai"
import { Scenario } from "kernai/testing"

const invoice = Media.fromBytes(new TextEncoder().encode("Invoice 81: 3 chairs, 240 EUR, due 30 June"), "text/plain")

const fetchInvoice = Skill.make("fetch_invoice", {
  description: "The latest invoice, as a document",
  input: Schema.Struct({}),
  effects: "read",
  produces: ["document"],
  execute: () => Effect.succeed(Skill.result("one document", { media: invoice }))
})

const readDocument = Skill.make("read_document", {
  description: "The text of a document, given the id in its media block",
  input: Schema.Struct({ document: MediaStore.Reference }),
  effects: "read",
  execute: ({ document }) =>
    MediaStore.MediaStore.use((store) =>
      Effect.map(store.bytes(document.id), (bytes) => new TextDecoder().decode(bytes))
    )
})

const id = await Effect.runPromise(Media.id(invoice))

export default Scenario.make({
  name: "document",
  description: "A skill gives a document, another takes it by its id",
  instructions: "You look after invoices. Fetch the document, then read it by its id.",
  capabilities: ["text", "document_in"],
  skills: [fetchInvoice, readDocument],
  input: "How much is due, and when?",
  offline: {
    root: [
      '<block type="command" name="fetch_invoice"></block>',
      `<block type="command" name="read_document">{"document": "${id}"}</block>`,
      '<block type="final">240 EUR by 30 June.</block>'
    ]
  },
  expect: ({ recording, result }) => [
    ...(recording.some((entry) => JSON.stringify(entry.data).includes("Invoice 81")) ? [] : ["it was not read"]),
    ...(result?.includes("240") === true ? [] : ["the amount is missing"])
  ]
})

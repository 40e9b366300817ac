/** The title of a run in lists and headings. */
import { assert, it } from "@effect/vitest"
import { Message } from "kernai"
import { titleOf } from "../../src/studio/internal/runTitle.ts"

const title = (agent: string, words: string) => titleOf(agent, Message.user(words))

it("the title of a run is its question", () => {
  assert.strictEqual(title("clerk", "Are seats free?"), "Are seats free?")
  assert.strictEqual(title("clerk", "{ is this JSON?"), "{ is this JSON?")
  assert.strictEqual(titleOf("clerk", undefined), "")
})

it("the title of a program's run is the name of the program and what it was given, not JSON", () => {
  assert.strictEqual(title("research", JSON.stringify({ question: "What is stored?" })), "research: What is stored?")
  const invoice = { amount: 5, to: "Nordlys AS", isUrgent: true, lines: [{ amount: 5 }], note: "" }
  assert.strictEqual(title("invoices", JSON.stringify(invoice)), "invoices: amount 5, to Nordlys AS, isUrgent true")
  assert.strictEqual(title("invoices", JSON.stringify({ lines: [] })), "invoices")
})

it("the title of a run of code is the first line of the code", () => {
  const code = "```ts\n\nconst rows = await orders()\nreturn rows.length\n```"
  assert.strictEqual(title("code", JSON.stringify({ code })), "code: const rows = await orders()")
})

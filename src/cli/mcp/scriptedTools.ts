/**
 * A scripted model that works with servers: no key, no network, and no model.
 *
 * It reads a file through the `mcp` block, has its first line translated by a
 * skill, and answers. What it says next depends on what it was told, so servers
 * and skills are as real as with any model.
 */

import * as Block from "../../Block.ts"
import * as Content from "../../Content.ts"
import type { Message } from "../../Message.ts"
import type { ProviderShape } from "../../Provider.ts"
import * as MockProvider from "../../testing/MockProvider.ts"

/** What it is asked. */
export const question = "Read the file letter.txt and tell me its first line in English."

/** What it answers when everything works. */
export const answer = 'The first line is "Bonjour, petit monde." In English: "Hello, little world."'

/** The scripted model. */
export const provider = (): ProviderShape => MockProvider.named("scripted").onCall((request) => next(request.messages))

const next = (messages: ReadonlyArray<Message>): string => {
  const told = messages.flatMap(({ content, role }) => (role === "user" ? [Content.toText(content[0] ?? nothing)] : []))
  const file = resultOf(told, "mcp")
  const translation = resultOf(told, "translate")
  const problem = told.findLast((text) => text.startsWith('<block type="error"'))
  if (problem !== undefined) return final(`It did not work: ${insideOf(problem)}`)
  if (file === undefined)
    return `I read the file through its server.\n${read(/\S+\.txt/.exec(told[0] ?? "")?.[0] ?? "")}`
  const line = file.split("\n", 1)[0]?.trim() ?? ""
  if (translation === undefined) {
    return Block.render({ type: "command", name: "translate", content: JSON.stringify({ text: line }) })
  }
  return final(`The first line is "${line}" In English: "${translation}"`)
}

const nothing = Content.text("")

const read = (path: string): string => {
  const params = { server: "files", name: "read_text_file", arguments: { path } }
  return Block.render({ type: "mcp", name: null, content: JSON.stringify({ method: "tools/call", params }) })
}

const final = (text: string): string => Block.render({ type: "final", name: null, content: text })

const resultOf = (told: ReadonlyArray<string>, name: string): string | undefined => {
  const found = told.find((text) => text.startsWith(`<block type="result" name="${name}">`))
  return found === undefined ? undefined : insideOf(found)
}

const insideOf = (block: string): string =>
  Block.unescape(block.replace(/^<block [^>]*>/, "").replace(/<\/block>$/, ""))

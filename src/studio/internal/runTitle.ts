/** The title of a run, as a person reads it in lists and headings. */

import { isRecord } from "../../kit/json.ts"
import { numberedLines, unfenced } from "../../kit/text.ts"
import type { Message } from "../../Message.ts"

/** Returns the texts of a message. */
export const wordsOf = (message: Message | undefined): string =>
  message?.content.map((part) => (part.type === "text" ? part.text : "")).join("") ?? ""

/** Returns the fields of an input that is a JSON object, as those of programs are. */
export const fieldsOf = (words: string): Readonly<Record<string, unknown>> | undefined => {
  if (!words.trimStart().startsWith("{")) return undefined
  try {
    const value: unknown = JSON.parse(words)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the question of a run. An input of fields becomes the name of the agent and its plain fields, each with the
 * first line of its text: `invoices: amount 5, to Nordlys AS`, or `code: const rows = await orders()`.
 */
export const titleOf = (agent: string, message: Message | undefined): string => {
  const words = wordsOf(message)
  const fields = fieldsOf(words)
  if (fields === undefined) return words
  const plain = Object.entries(fields).flatMap(([name, value]) => {
    const text = plainText(value)
    return text === "" ? [] : [{ name, text }]
  })
  const [only, ...others] = plain
  if (only === undefined) return agent
  const texts = others.length === 0 ? [only.text] : plain.map(({ name, text }) => `${name} ${text}`)
  return `${agent}: ${texts.join(", ")}`
}

const plainText = (value: unknown): string => {
  if (typeof value === "string") return numberedLines(unfenced(value))[0]?.line.trim() ?? ""
  return typeof value === "number" || typeof value === "boolean" ? String(value) : ""
}

/**
 * Estimates or counts tokens.
 *
 * An estimate is one token per four UTF-8 bytes, rounded up. Each message adds four tokens, and each medium adds the
 * tokens of a typical picture. Messages are immutable, so each is counted once.
 */

import * as Effect from "effect/Effect"
import * as Blocks from "../../Content.ts"
import type { Content } from "../../Content.ts"
import type { Message } from "../../Message.ts"
import type { ToolDefinition } from "../../Provider.ts"
import { perObject } from "../../kit/perObject.ts"
import { utf8Length } from "../../kit/text.ts"

/** Counts the tokens of a text. */
export type Count = (text: string) => Effect.Effect<number>

const perMessage = 4
const perMedium = 1_600

/** Estimates the tokens of a text. */
export const ofText = (text: string): number => Math.ceil(utf8Length(text) / 4)

/** Returns the text of a message, and the tokens to add for the rest. */
const countable = (message: Message): { readonly text: string; readonly extra: number } => {
  let text = ""
  let extra = perMessage
  const add = (part: Content): void => {
    switch (part.type) {
      case "thinking":
        text += part.content
        break
      case "tool_use":
        text += `${part.callId}${part.name}${JSON.stringify(part.input)}`
        break
      case "tool_result":
        text += part.callId
        part.content.forEach(add)
        break
      default:
        if (Blocks.isMedia(part)) extra += perMedium
        else text += Blocks.toText(part)
    }
  }
  message.content.forEach(add)
  return { text, extra }
}

/** Estimates the tokens of a message. */
export const estimate = perObject((message: Message) => estimateOnce(message))

/** Estimates the tokens of a message without caching. */
export const estimateOnce = (message: Message): number => {
  const { extra, text } = countable(message)
  return ofText(text) + extra
}

/** The tokens of messages, by counter. */
const countedBy = perObject((_count: Count) => new WeakMap<Message, number>())

/** Counts the tokens of a text with a counter, as a whole number. An impossible count is replaced by the estimate. */
const counts = (count: Count, text: string): Effect.Effect<number> =>
  Effect.map(count(text), (tokens) => (tokens >= 0 && tokens < 1e15 ? Math.ceil(tokens) : ofText(text)))

/** Counts the tokens of a message with a counter, or estimates them. */
export const ofMessage = (message: Message, count: Count | undefined): Effect.Effect<number> => {
  if (count === undefined) return Effect.sync(() => estimate(message))
  return Effect.suspend(() => {
    const known = countedBy(count)
    const tokens = known.get(message)
    if (tokens !== undefined) return Effect.succeed(tokens)
    const { extra, text } = countable(message)
    return Effect.map(counts(count, text), (tokens) => {
      known.set(message, tokens + extra)
      return tokens + extra
    })
  })
}

/** Returns the tokens of a conversation. */
export const ofMessages = (messages: ReadonlyArray<Message>, count: Count | undefined): Effect.Effect<number> => {
  if (count === undefined) {
    return Effect.sync(() => messages.reduce((sum, message) => sum + estimate(message), 0))
  }
  return Effect.map(
    Effect.forEach(messages, (message) => ofMessage(message, count)),
    (tokens) => tokens.reduce((sum, of) => sum + of, 0)
  )
}

let last: { readonly text: string; readonly count: Count | undefined; readonly tokens: number } | undefined

/** Estimates the tokens of a system text, which is usually that of the previous turn. */
export const estimateSystem = (text: string | null): number => {
  if (text === null) return 0
  if (last === undefined || last.text !== text || last.count !== undefined) {
    last = { text, count: undefined, tokens: ofText(text) + perMessage }
  }
  return last.tokens
}

/** Counts the tokens of a system text with a counter, or estimates them. */
export const ofSystem = (text: string | null, count: Count | undefined): Effect.Effect<number> =>
  Effect.suspend(() => {
    if (text === null || count === undefined) return Effect.succeed(estimateSystem(text))
    if (last !== undefined && last.text === text && last.count === count) return Effect.succeed(last.tokens)
    return Effect.map(counts(count, text), (tokens) => {
      last = { text, count, tokens: tokens + perMessage }
      return last.tokens
    })
  })

/** Estimates the tokens of native tools, from their schemas. */
export const ofTools = (tools: ReadonlyArray<ToolDefinition>): number =>
  tools.reduce((sum, { description, inputSchema, name }) => sum + ofSchema(inputSchema) + ofText(name + description), 0)

const ofSchema = perObject((schema: ToolDefinition["inputSchema"]) => ofText(JSON.stringify(schema)))

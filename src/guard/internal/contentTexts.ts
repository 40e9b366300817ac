/** Texts of messages and results, read or replaced wherever a model reads them. */

import type { CallResult } from "../../Call.ts"
import type { Content, Json, JsonObject } from "../../Content.ts"
import * as Message from "../../Message.ts"
import { isRecord } from "../../kit/json.ts"

/** Replaces a text. */
export type Change = (text: string) => string

/** Replaces the texts of a message. Thinking is left alone, because its vendor signed it, and so are media. */
export const ofMessage = (message: Message.Message, change: Change): Message.Message => {
  const content = message.content.map((part) => ofContent(part, change))
  if (content.every((part, index) => part === message.content[index])) return message
  const { metadata, name, role } = message
  return Message.make(role, content, { ...(name === undefined ? {} : { name }), ...(metadata && { metadata }) })
}

/** Replaces the texts of a result: those that the model reads, and the value that they show. */
export const ofResult = (result: CallResult, change: Change): CallResult => ({
  ...result,
  ...(result.output && { output: result.output.map((part) => ofContent(part, change)) }),
  ...(result.error && { error: { ...result.error, message: change(result.error.message) } }),
  ...(result.value === undefined ? {} : { value: ofJson(result.value, change) }),
  ...(result.message && { message: ofMessage(result.message, change) })
})

const ofContent = (content: Content, change: Change): Content => {
  switch (content.type) {
    case "text":
      return same(content, { text: change(content.text) })
    case "code":
      return same(content, { code: change(content.code) })
    case "data":
      return same(content, { data: ofObject(content.data, change) })
    case "error":
      return same(content, { message: change(content.message) })
    case "tool_use":
      return same(content, { input: ofObject(content.input, change) })
    case "tool_result": {
      const parts = content.content.map((part) => ofContent(part, change))
      return parts.every((part, index) => part === content.content[index]) ? content : { ...content, content: parts }
    }
    case "ui_resource":
      return same(content, { text: change(content.text) })
    case "audio":
      return content.transcript === undefined ? content : same(content, { transcript: change(content.transcript) })
    case "unknown":
      return same(content, { raw: ofObject(content.raw, change) })
    default:
      return content
  }
}

/** Returns the content itself if nothing changed, since a provider may have encoded it before. */
const same = <A extends Content>(content: A, changed: Partial<A>): A =>
  Object.entries(changed).every(([key, value]) => Reflect.get(content, key) === value)
    ? content
    : { ...content, ...changed }

/** Replaces the texts in JSON, keys included. */
export const ofJson = (value: Json, change: Change): Json => {
  if (typeof value === "string") return change(value)
  if (Array.isArray(value)) return value.map((item: Json) => ofJson(item, change))
  return isObject(value) ? ofObject(value, change) : value
}

const ofObject = (value: JsonObject, change: Change): JsonObject => {
  const entries = Object.entries(value).map(([key, item]) => [change(key), ofJson(item, change)] as const)
  return entries.every(([key, item]) => value[key] === item) ? value : Object.fromEntries(entries)
}

const isObject = (value: Json): value is JsonObject => isRecord(value)

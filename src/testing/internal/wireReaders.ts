/**
 * Reads request bodies of every wire format as the same list of turns, so that one set of checks holds for all.
 *
 * Items that a format writes one by one, such as the results of Chat Completions, are joined to the turn that they are.
 */

import { isRecord } from "../../kit/json.ts"
import type { Wire } from "../../kit/vendorRules.ts"

/** One piece of a turn, and where it stands in the body. */
export type Part = { readonly path: string; readonly hasMark: boolean } & (
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "media"; readonly isImage: boolean; readonly data: string | undefined }
  | { readonly kind: "call"; readonly id: string | undefined; readonly name: string; readonly input: unknown }
  | {
      readonly kind: "result"
      readonly id: string | undefined
      readonly name: string | undefined
      readonly parts: ReadonlyArray<Part>
    }
  | { readonly kind: "reasoning"; readonly type: string; readonly isSigned: boolean }
  /** A call that the vendor ran itself, or its result. */
  | { readonly kind: "hosted"; readonly id: string; readonly isResult: boolean }
  | { readonly kind: "other"; readonly type: string }
)

/** The contents of one side. A turn of the `tool` holds results only. */
export interface Turn {
  readonly role: "system" | "user" | "model" | "tool" | "unknown"
  readonly path: string
  readonly parts: ReadonlyArray<Part>
}

/** A body, read. */
export interface Reading {
  readonly turns: ReadonlyArray<Turn>
  readonly tools: ReadonlyArray<{ readonly name: string; readonly path: string }>
}

type Fields = Readonly<Record<string, unknown>>
type Reader = (body: Fields) => Reading

/** An object, and where it stands. */
interface Item {
  readonly item: Fields
  readonly path: string
}

/** Returns the objects of a list. */
const itemsIn = (value: unknown, path: string): ReadonlyArray<Item> =>
  Array.isArray(value) ? value.flatMap((item, at) => (isRecord(item) ? [{ item, path: `${path}[${at}]` }] : [])) : []

const string = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)
const nameOf = (value: unknown): string => string(value) ?? ""
const inner = (value: unknown): Fields => (isRecord(value) ? value : {})

const textPart = (text: string, path: string, hasMark = false): Part => ({ kind: "text", text, path, hasMark })

/** Reads content that is a text or a list of parts. */
const contentOf = (value: unknown, path: string, read: (item: Item) => Part): ReadonlyArray<Part> =>
  typeof value === "string" ? [textPart(value, path)] : itemsIn(value, path).map(read)

/** Returns the data inside an address. */
const dataIn = (url: unknown): string | undefined => /^data:[^;,]*;base64,(.*)$/s.exec(string(url) ?? "")?.[1]

const isImage = (mediaType: unknown): boolean => string(mediaType)?.startsWith("image/") === true

/** Joins neighbouring turns of one role, for formats whose items are smaller than turns. */
const joined = (turns: ReadonlyArray<Turn>, roles: ReadonlyArray<Turn["role"]>): ReadonlyArray<Turn> => {
  const all: Array<Turn> = []
  for (const turn of turns) {
    const last = all.at(-1)
    if (last !== undefined && last.role === turn.role && roles.includes(turn.role)) {
      all[all.length - 1] = { ...last, parts: [...last.parts, ...turn.parts] }
    } else all.push(turn)
  }
  return all
}

// ---------------------------------------------------------------- Anthropic

const anthropicPart = ({ item, path }: Item): Part => {
  const type = nameOf(item["type"])
  const at = { path, hasMark: item["cache_control"] !== undefined }
  switch (type) {
    case "text":
      return { ...at, kind: "text", text: nameOf(item["text"]) }
    case "image":
    case "document": {
      const source = inner(item["source"])
      const isBytes = source["type"] === "base64"
      return {
        ...at,
        kind: "media",
        isImage: type === "image",
        data: isBytes ? nameOf(source["data"]) : undefined
      }
    }
    case "tool_use":
      return { ...at, kind: "call", id: nameOf(item["id"]), name: nameOf(item["name"]), input: item["input"] }
    case "tool_result": {
      const parts = contentOf(item["content"], `${path}.content`, anthropicPart)
      return { ...at, kind: "result", id: nameOf(item["tool_use_id"]), name: undefined, parts }
    }
    case "thinking":
      return { ...at, kind: "reasoning", type, isSigned: nameOf(item["signature"]) !== "" }
    case "redacted_thinking":
      return { ...at, kind: "reasoning", type, isSigned: nameOf(item["data"]) !== "" }
    default:
      if (type.endsWith("_tool_use")) return { ...at, kind: "hosted", id: nameOf(item["id"]), isResult: false }
      if (type.endsWith("_tool_result"))
        return { ...at, kind: "hosted", id: nameOf(item["tool_use_id"]), isResult: true }
      return { ...at, kind: "other", type }
  }
}

const anthropic: Reader = (body) => {
  const system = contentOf(body["system"], "system", anthropicPart)
  const messages = itemsIn(body["messages"], "messages").map(({ item, path }): Turn => ({
    role: item["role"] === "assistant" ? "model" : item["role"] === "user" ? "user" : "unknown",
    path,
    parts: contentOf(item["content"], `${path}.content`, anthropicPart)
  }))
  // Anthropic joins neighbouring messages of one side.
  const turns = joined(messages, ["model"])
  return {
    turns: system.length === 0 ? turns : [{ role: "system", path: "system", parts: system }, ...turns],
    tools: toolsIn(body["tools"], "tools", (tool) => tool["input_schema"] !== undefined)
  }
}

const toolsIn = (value: unknown, path: string, isOwn: (tool: Fields) => boolean): Reading["tools"] =>
  itemsIn(value, path).flatMap(({ item, path }) =>
    isOwn(item) ? [{ name: nameOf(item["name"]), path: `${path}.name` }] : []
  )

// ---------------------------------------------------------------- Chat Completions and Ollama

const chatPart = ({ item, path }: Item): Part => {
  const type = nameOf(item["type"])
  const at = { path, hasMark: item["cache_control"] !== undefined }
  switch (type) {
    case "text":
      return { ...at, kind: "text", text: nameOf(item["text"]) }
    case "image_url":
      return { ...at, kind: "media", isImage: true, data: dataIn(inner(item["image_url"])["url"]) }
    case "input_audio":
      return { ...at, kind: "media", isImage: false, data: string(inner(item["input_audio"])["data"]) }
    case "file":
      return { ...at, kind: "media", isImage: false, data: dataIn(inner(item["file"])["file_data"]) }
    default:
      return { ...at, kind: "other", type }
  }
}

const chatRoles: ReadonlyMap<unknown, Turn["role"]> = new Map<unknown, Turn["role"]>([
  ["system", "system"],
  ["developer", "system"],
  ["user", "user"],
  ["assistant", "model"],
  ["tool", "tool"]
])

const chatCalls = (item: Fields, path: string): ReadonlyArray<Part> =>
  itemsIn(item["tool_calls"], `${path}.tool_calls`).map(({ item, path }): Part => {
    const { arguments: input, name } = inner(item["function"])
    return { kind: "call", path, hasMark: false, id: string(item["id"]), name: nameOf(name), input }
  })

const chat: Reader = (body) => ({
  turns: joined(
    itemsIn(body["messages"], "messages").map(({ item, path }): Turn => {
      const role = chatRoles.get(item["role"]) ?? "unknown"
      const said = contentOf(item["content"], `${path}.content`, chatPart)
      const images = Array.isArray(item["images"]) ? item["images"] : []
      const shown = images.map((data, at): Part => ({
        kind: "media",
        path: `${path}.images[${at}]`,
        hasMark: false,
        isImage: true,
        data: nameOf(data)
      }))
      const parts = [...said, ...shown]
      const result: Part = {
        kind: "result",
        path,
        hasMark: false,
        id: string(item["tool_call_id"]),
        name: string(item["tool_name"]),
        parts
      }
      return { role, path, parts: role === "tool" ? [result] : [...parts, ...chatCalls(item, path)] }
    }),
    ["tool"]
  ),
  tools: itemsIn(body["tools"], "tools").flatMap(({ item, path }) =>
    isRecord(item["function"]) ? [{ name: nameOf(item["function"]["name"]), path: `${path}.function.name` }] : []
  )
})

// ---------------------------------------------------------------- Responses

const responsesPart = ({ item, path }: Item): Part => {
  const type = nameOf(item["type"])
  const at = { path, hasMark: false }
  if (type === "input_text" || type === "output_text") return { ...at, kind: "text", text: nameOf(item["text"]) }
  if (type === "input_image") return { ...at, kind: "media", isImage: true, data: dataIn(item["image_url"]) }
  if (type === "input_file") return { ...at, kind: "media", isImage: false, data: dataIn(item["file_data"]) }
  return { ...at, kind: "other", type }
}

const responsesTurn = ({ item, path }: Item): Turn => {
  const at = { path, hasMark: false }
  const type = nameOf(item["type"])
  switch (type) {
    case "message": {
      const role = chatRoles.get(item["role"]) ?? "unknown"
      return { role, path, parts: contentOf(item["content"], `${path}.content`, responsesPart) }
    }
    case "function_call": {
      const [id, name] = [nameOf(item["call_id"]), nameOf(item["name"])]
      return { role: "model", path, parts: [{ ...at, kind: "call", id, name, input: item["arguments"] }] }
    }
    case "function_call_output": {
      const parts = contentOf(item["output"], `${path}.output`, responsesPart)
      return {
        role: "tool",
        path,
        parts: [{ ...at, kind: "result", id: nameOf(item["call_id"]), name: undefined, parts }]
      }
    }
    case "reasoning": {
      const isSigned = nameOf(item["encrypted_content"]) !== ""
      return { role: "model", path, parts: [{ ...at, kind: "reasoning", type, isSigned }] }
    }
    default:
      return { role: type === "" ? "unknown" : "model", path, parts: [{ ...at, kind: "other", type }] }
  }
}

const responses: Reader = (body) => ({
  turns: joined(itemsIn(body["input"], "input").map(responsesTurn), ["model", "tool"]),
  tools: toolsIn(body["tools"], "tools", ({ type }) => type === "function")
})

// ---------------------------------------------------------------- Google

const geminiPart = ({ item, path }: Item): Part => {
  const at = { path, hasMark: false }
  const { functionCall, functionResponse, inlineData, text } = item
  if (isRecord(functionCall)) {
    const { args, id, name } = functionCall
    return { ...at, kind: "call", id: string(id), name: nameOf(name), input: args }
  }
  if (isRecord(functionResponse)) {
    const { id, name } = functionResponse
    return { ...at, kind: "result", id: string(id), name: nameOf(name), parts: [] }
  }
  if (isRecord(inlineData)) {
    return { ...at, kind: "media", isImage: isImage(inlineData["mimeType"]), data: nameOf(inlineData["data"]) }
  }
  return typeof text === "string" ? { ...at, kind: "text", text } : { ...at, kind: "other", type: "part" }
}

const gemini: Reader = (body) => {
  const system = itemsIn(inner(body["systemInstruction"])["parts"], "systemInstruction.parts").map(geminiPart)
  const contents = itemsIn(body["contents"], "contents").map(({ item, path }): Turn => ({
    role: item["role"] === "model" ? "model" : item["role"] === "user" ? "user" : "unknown",
    path,
    parts: itemsIn(item["parts"], `${path}.parts`).map(geminiPart)
  }))
  return {
    turns: system.length === 0 ? contents : [{ role: "system", path: "systemInstruction", parts: system }, ...contents],
    tools: itemsIn(body["tools"], "tools").flatMap(({ item, path }) =>
      toolsIn(item["functionDeclarations"], `${path}.functionDeclarations`, () => true)
    )
  }
}

const interactionsPart = ({ item, path }: Item): Part => {
  const at = { path, hasMark: false }
  if (item["type"] === "text") return { ...at, kind: "text", text: nameOf(item["text"]) }
  const [mediaType, data] = [string(item["mime_type"]), string(item["data"])]
  return mediaType === undefined
    ? { ...at, kind: "other", type: nameOf(item["type"]) }
    : { ...at, kind: "media", isImage: isImage(mediaType), data }
}

const interactionsTurn = ({ item, path }: Item): Turn => {
  const at = { path, hasMark: false }
  const type = nameOf(item["type"])
  switch (type) {
    case "user_input":
    case "model_output":
      return {
        role: type === "user_input" ? "user" : "model",
        path,
        parts: contentOf(item["content"], `${path}.content`, interactionsPart)
      }
    case "function_call": {
      const [id, name] = [nameOf(item["id"]), nameOf(item["name"])]
      return { role: "model", path, parts: [{ ...at, kind: "call", id, name, input: item["arguments"] }] }
    }
    case "function_result": {
      const parts = contentOf(item["result"], `${path}.result`, interactionsPart)
      const [id, name] = [nameOf(item["call_id"]), string(item["name"])]
      return { role: "tool", path, parts: [{ ...at, kind: "result", id, name, parts }] }
    }
    case "thought":
      return {
        role: "model",
        path,
        parts: [{ ...at, kind: "reasoning", type, isSigned: nameOf(item["signature"]) !== "" }]
      }
    default:
      return { role: type === "" ? "unknown" : "model", path, parts: [{ ...at, kind: "other", type }] }
  }
}

const interactions: Reader = (body) => ({
  turns: joined(itemsIn(body["input"], "input").map(interactionsTurn), ["model", "tool"]),
  tools: toolsIn(body["tools"], "tools", ({ type }) => type === "function")
})

// ---------------------------------------------------------------- prompts for models of other packages

const promptPart = ({ item, path }: Item): Part => {
  const at = { path, hasMark: false }
  const type = nameOf(item["type"])
  switch (type) {
    case "text":
      return { ...at, kind: "text", text: nameOf(item["text"]) }
    case "reasoning":
      return { ...at, kind: "reasoning", type, isSigned: true }
    case "file":
      return { ...at, kind: "media", isImage: isImage(item["mediaType"]), data: string(item["data"]) }
    case "tool-call": {
      const [id, name] = [nameOf(item["toolCallId"] ?? item["id"]), nameOf(item["toolName"] ?? item["name"])]
      return { ...at, kind: "call", id, name, input: item["input"] ?? item["params"] }
    }
    case "tool-result": {
      const [id, name] = [nameOf(item["toolCallId"] ?? item["id"]), nameOf(item["toolName"] ?? item["name"])]
      const output = isRecord(item["output"]) ? item["output"]["value"] : item["result"]
      return { ...at, kind: "result", id, name, parts: contentOf(output, `${path}.output`, promptPart) }
    }
    default:
      return { ...at, kind: "other", type }
  }
}

const prompt: Reader = (body) => {
  const written = isRecord(body["prompt"]) ? body["prompt"]["content"] : body["prompt"]
  return {
    turns: itemsIn(written, "prompt").map(({ item, path }) => ({
      role: chatRoles.get(item["role"]) ?? "unknown",
      path,
      parts: contentOf(item["content"], `${path}.content`, promptPart)
    })),
    tools: toolsIn(body["tools"], "tools", ({ type }) => type !== "provider" && type !== "provider-defined")
  }
}

/** The reader of each format. */
export const readers: { readonly [wire in Wire]: Reader } = {
  anthropic,
  chat,
  mistral: chat,
  responses,
  gemini,
  "gemini-interactions": interactions,
  ollama: chat,
  "ai-sdk": prompt,
  "effect-ai": prompt
}

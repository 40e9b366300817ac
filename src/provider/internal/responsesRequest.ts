/**
 * Encodes requests in OpenAI's Responses format.
 *
 * Nothing is stored at the service: every request sends the whole conversation, with the model's encrypted reasoning
 * before its outcome.
 */

import * as Grammar from "../Grammar.ts"
import { type Json, type JsonObject, jsonObject } from "../../kit/json.ts"
import { vendorRules } from "../../kit/vendorRules.ts"
import type { Generation } from "../../Generation.ts"
import type { Message } from "../../Message.ts"
import type { ProviderShape, Request } from "../../Provider.ts"
import { assemble, extras, hostedOf, isReasoner, laidOver, type Settings, toolsOf } from "./body.ts"
import type { Media, MediaPiece, Piece } from "./messageParts.ts"
import { apart, itemsOf, standIn, textOf, wireId } from "./messageParts.ts"
import { isStructured, outputSchema } from "./outputSchema.ts"
import { text } from "./readFields.ts"

/** The name under which reasoning is kept and vendor options are given. */
export const name = "openai"

/** The media that the format supports. */
export const media: Media = { image: { urls: true }, document: { types: ["application/pdf"], urls: true } }

/** Encodes a message as items, each as JSON text. */
export const toItems = (message: Message, pieces: ReadonlyArray<Piece>): ReadonlyArray<string> => {
  const isModel = message.role === "assistant"
  const { made, said } = isModel ? apart(pieces) : { made: [], said: pieces }
  const items = isModel ? modelItems(said) : hostItems(message.role === "system" ? "system" : "user", said)
  // Messages of the model cannot hold media, so a user message shows those it made.
  return [...items, ...hostItems("user", made)].map((item) => JSON.stringify(item))
}

/** Puts consecutive texts and media into one message. Results are items of their own. */
const hostItems = (role: "system" | "user", pieces: ReadonlyArray<Piece>): ReadonlyArray<JsonObject> => {
  const items: Array<JsonObject> = []
  const content: Array<Json> = []
  for (const piece of pieces) {
    if (piece.kind === "result") {
      items.push({ type: "function_call_output", call_id: piece.id, output: outputOf(piece.pieces) })
    } else if (piece.kind === "text" || piece.kind === "media") content.push(toPart(piece))
  }
  return content.length === 0 ? items : [...items, { type: "message", role, content }]
}

const outputOf = (pieces: ReadonlyArray<Piece>): Json =>
  pieces.some(({ kind }) => kind === "media")
    ? pieces.flatMap((piece) => (piece.kind === "text" || piece.kind === "media" ? [toPart(piece)] : []))
    : textOf(pieces, "\n")

const toPart = (piece: MediaPiece | Extract<Piece, { readonly kind: "text" }>): Json => {
  if (piece.kind === "text") return { type: "input_text", text: piece.text }
  const url = "url" in piece.source ? piece.source.url : `data:${piece.mediaType};base64,${piece.source.data}`
  if (piece.type === "image") return { type: "input_image", image_url: url, detail: "auto" }
  if (piece.type !== "document") return { type: "input_text", text: textOf([standIn(piece)]) }
  return "url" in piece.source
    ? { type: "input_file", file_url: url }
    : { type: "input_file", filename: piece.filename ?? "document.pdf", file_data: url }
}

/**
 * Puts reasoning before the call it led to, and keeps everything else in order. Reasoning that led to nothing, such as
 * that of a reply that was cut, is left out: the service refuses it without its item.
 */
const modelItems = (pieces: ReadonlyArray<Piece>): ReadonlyArray<JsonObject> => {
  const items: Array<JsonObject> = []
  const before = new Map<string, Array<JsonObject>>()
  for (const piece of pieces) {
    if (piece.kind === "text") {
      items.push({ type: "message", role: "assistant", content: piece.text })
    } else if (piece.kind === "thought") {
      items.push(...itemsOf(piece))
      const item = reasoningOf(piece)
      const callId = text(jsonObject(piece.signature), "callId")
      if (item === undefined) continue
      if (callId === undefined) items.push(item)
      else before.set(wireId(callId), [...(before.get(wireId(callId)) ?? []), item])
    } else if (piece.kind === "call") {
      items.push(...(before.get(piece.id) ?? []), {
        type: "function_call",
        call_id: piece.id,
        name: piece.name,
        arguments: JSON.stringify(piece.input)
      })
    }
  }
  while (items.at(-1)?.["type"] === "reasoning") items.pop()
  return items
}

/** Returns reasoning with its encrypted content. The service stores none, so an id alone is useless. */
const reasoningOf = (piece: Extract<Piece, { readonly kind: "thought" }>): JsonObject | undefined => {
  const kept = jsonObject(piece.signature)
  const encrypted = text(kept, "encrypted")
  if (encrypted === undefined) return undefined
  return {
    type: "reasoning",
    id: text(kept, "id") ?? "",
    summary: piece.text === "" ? [] : [{ type: "summary_text", text: piece.text }],
    encrypted_content: encrypted
  }
}

/** Returns the options that a model accepts. Only reasoning models think, and they accept no sampling options. */
export const takes: NonNullable<ProviderShape["takes"]> = ({ generation, model }) => {
  const { seed: _, stopSequences: __, temperature, thinking, topP, ...others } = generation
  if (isReasoner(model.id)) {
    return thinking === undefined
      ? others
      : { ...others, thinking: thinking.effort === undefined ? {} : { effort: thinking.effort } }
  }
  return {
    ...others,
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP })
  }
}

/** Encodes a request as JSON text. */
export const toBody = (request: Request, messages: ReadonlyArray<ReadonlyArray<string>>): string => {
  const { model } = request
  const generation = takes(request)
  const own = extras(request, name)
  return assemble(
    {
      model: model.id,
      stream: true,
      store: false,
      include: includes(isReasoner(model.id), hostedOf(request.tools, name).length > 0),
      temperature: generation.temperature,
      top_p: generation.topP,
      max_output_tokens: generation.maxTokens,
      tools: toolsOf(request, name, (tool) => ({
        type: "function",
        name: tool.name,
        description: tool.description,
        parameters: tool.inputSchema,
        strict: false
      })),
      ...own,
      reasoning: laidOver(thinkingOf(generation), own["reasoning"]),
      text: laidOver(formatOf(request), own["text"])
    },
    "input",
    messages.flat()
  )
}

const thinkingOf = ({ thinking }: Generation): Settings =>
  thinking === undefined ? {} : { effort: thinking.effort, summary: "auto" }

/** Returns the extra data that the service adds to a reply on request. */
const includes = (reasons: boolean, searches: boolean): ReadonlyArray<string> | undefined => {
  const parts = [
    ...(reasons ? ["reasoning.encrypted_content"] : []),
    ...(searches ? ["web_search_call.action.sources"] : [])
  ]
  return parts.length === 0 ? undefined : parts
}

const formatOf = (request: Request): Settings => {
  const { grammar } = request
  const strict = outputSchema(request, vendorRules.responses)
  if (strict !== undefined) return { format: { type: "json_schema", name: "reply", strict: true, schema: strict } }
  if (isStructured(request)) return {}
  const schema = grammar === undefined ? undefined : Grammar.jsonSchemaOf(grammar)
  return schema?.["type"] === "object" ? { format: { type: "json_schema", name: "reply", schema } } : {}
}

/**
 * Encodes requests in the Chat Completions format of OpenAI and most other vendors.
 *
 * Servers differ in small ways, so each has a dialect.
 */

import * as Grammar from "../Grammar.ts"
import { type Json, type JsonObject, jsonObject } from "../../kit/json.ts"
import { vendorRules } from "../../kit/vendorRules.ts"
import type { Message } from "../../Message.ts"
import type { Model } from "../../Model.ts"
import type { ProviderShape, Request } from "../../Provider.ts"
import { assemble, extras, functions, isReasoner, laidOver, type Settings } from "./body.ts"
import { callSignatures } from "./google.ts"
import type { Media, MediaPiece, Piece } from "./messageParts.ts"
import { isStructured, outputSchema } from "./outputSchema.ts"
import { apart, shortId, standIn, textOf, wireId } from "./messageParts.ts"

/**
 * The form of a grammar: GBNF as `grammar` (llama.cpp) or in `structured_outputs` (vLLM), structural tags (vLLM), or a
 * JSON Schema as `response_format` (OpenAI and most others).
 */
export type GrammarForm = "gbnf" | "structured_outputs" | "structural_tag" | "json_schema"

/** The fields in which servers return thinking and accept it back. */
export type ThinkingField = "reasoning_content" | "reasoning"

/** The features one server accepts. */
export interface Dialect {
  readonly name: string
  /** Whether content is always a list of parts, as OpenAI expects. Otherwise text alone is a string. */
  readonly alwaysLists: boolean
  /** Whether the server accepts `stream_options`. */
  readonly usageOption: boolean
  /** The form in which the server accepts a grammar, if any. */
  readonly grammar: GrammarForm | undefined
  /** The field in which the server accepts its own thinking back along with its calls, if any. */
  readonly returnsThinking: ThinkingField | false
  /** Whether roles must alternate. If so, adjacent messages of one role are merged. */
  readonly alternates: boolean
  readonly seedName: string
  /** Whether call ids must have nine letters and digits, as Mistral requires. */
  readonly shortIds: boolean
  /** Whether the model must speak between the results of calls and the user, as Mistral requires. */
  readonly answersResults: boolean
  /**
   * Whether the server has OpenAI's reasoning models, which need another limit field and accept no sampling options.
   */
  readonly reasoners: boolean
}

/** A message as JSON text. If `open` is set, it may be merged with adjacent messages of its role. */
export interface Written {
  readonly json: string
  readonly role: Json | undefined
  readonly open: Open | undefined
  /** The pieces of results that only a user message can show. They stand behind all results of a reply. */
  readonly shown: ReadonlyArray<JsonObject> | undefined
}

interface Open {
  readonly role: Json
  readonly content: Json
}

/** Encodes one message as one or more: a message with native results becomes one for each result. */
export const toMessages =
  (dialect: Dialect) =>
  (message: Message, pieces: ReadonlyArray<Piece>): ReadonlyArray<Written> => {
    const written: Array<Written> = []
    const seen: Array<Piece> = []
    const rest: Array<Piece> = []
    const write = (item: JsonObject): void => void written.push(writtenIn(dialect, item))
    for (const piece of pieces) {
      if (piece.kind !== "result") {
        rest.push(piece)
        continue
      }
      write({ role: "tool", tool_call_id: idOf(dialect, piece), content: textOf(piece.pieces, "\n") })
      // A result can only be text, so a user message after it shows its media.
      for (const inner of piece.pieces) if (inner.kind === "media") seen.push(inner)
    }
    const isModel = message.role === "assistant"
    const { made, said } = isModel ? apart(rest) : { made: [], said: [...seen, ...rest] }
    if (written.length > 0 && said.length > 0) {
      written.push({ json: "", role: "user", open: undefined, shown: toParts(said) })
    } else if (said.length > 0) {
      const item = toMessage(dialect, message, said)
      if (item !== undefined) write(item)
    }
    // Messages of the model cannot hold media, so a user message shows those it made.
    if (made.length > 0) write({ role: "user", content: toContent(dialect, made) })
    return written
  }

const writtenIn = (dialect: Dialect, item: JsonObject): Written => ({
  json: JSON.stringify(item),
  role: item["role"],
  open: dialect.alternates ? opened(item) : undefined,
  shown: undefined
})

/** Puts what user messages show of results into one message behind all of them. */
const gathered = (dialect: Dialect, messages: ReadonlyArray<Written>): ReadonlyArray<Written> => {
  if (!messages.some(({ shown }) => shown !== undefined)) return messages
  const gathered: Array<Written> = []
  let shown: Array<JsonObject> = []
  const show = () => {
    if (shown.length > 0) gathered.push(writtenIn(dialect, { role: "user", content: inDialect(dialect, shown) }))
    shown = []
  }
  for (const message of messages) {
    if (message.shown !== undefined) shown.push(...message.shown)
    else {
      if (message.role !== "tool") show()
      gathered.push(message)
    }
  }
  show()
  return gathered
}

/** Lets the model speak between results and the user, where a server requires it. */
const answered = (dialect: Dialect, messages: ReadonlyArray<Written>): ReadonlyArray<Written> =>
  dialect.answersResults
    ? messages.flatMap((message, index) =>
        message.role === "user" && messages[index - 1]?.role === "tool" ? [received, message] : [message]
      )
    : messages

const received: Written = {
  json: JSON.stringify({ role: "assistant", content: "(results received)" }),
  role: "assistant",
  open: undefined,
  shown: undefined
}

const opened = ({ content, role, tool_calls }: JsonObject): Open | undefined =>
  role === undefined || role === "tool" || tool_calls !== undefined || content === undefined
    ? undefined
    : { role, content }

// The text of a message that stands alone is reused.
const joined = (messages: ReadonlyArray<Written>): ReadonlyArray<string> => {
  const runs: Array<[Written, ...Array<Written>]> = []
  for (const message of messages) {
    const run = runs.at(-1)
    if (message.open !== undefined && message.open.role === run?.[0].open?.role) run.push(message)
    else runs.push([message])
  }
  return runs.map((run) => {
    const [first, second] = run
    if (second === undefined) return first.json
    const contents = run.flatMap(({ open }) => (open === undefined || open.content === "" ? [] : [open.content]))
    const content = contents.every((content) => typeof content === "string")
      ? contents.join("\n\n")
      : contents.flatMap((content) => (typeof content === "string" ? [{ type: "text", text: content }] : content))
    return JSON.stringify({ role: first.open?.role, content })
  })
}

const toMessage = (dialect: Dialect, message: Message, pieces: ReadonlyArray<Piece>): JsonObject | undefined => {
  const content = toContent(dialect, pieces)
  if (message.role !== "assistant") {
    return { role: message.role === "system" ? "system" : "user", content }
  }
  const calls: Array<Json> = []
  const thoughts: Array<string> = []
  const details: Array<Json> = []
  const signatures = callSignatures(pieces)
  for (const piece of pieces) {
    if (piece.kind === "thought") {
      const { callId, detail } = jsonObject(piece.signature)
      // A detail of a call refers to it by its current id.
      const id = typeof callId === "string" ? { id: idOf(dialect, { id: wireId(callId) }) } : {}
      if (detail !== undefined) details.push({ ...jsonObject(detail), ...id })
      if (piece.text !== "") thoughts.push(piece.text)
    }
    if (piece.kind === "call") {
      const signature = signatures.get(piece.id)
      calls.push({
        id: idOf(dialect, piece),
        type: "function",
        function: { name: piece.name, arguments: JSON.stringify(piece.input) },
        ...(signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } })
      })
    }
  }
  const isEmpty = textOf(pieces) === "" && !pieces.some((piece) => piece.kind === "media")
  const signed: JsonObject = details.length === 0 ? {} : { reasoning_details: details }
  if (calls.length === 0) return isEmpty ? undefined : { role: "assistant", content, ...signed }
  return {
    role: "assistant",
    content: isEmpty ? null : content,
    tool_calls: calls,
    ...signed,
    ...(dialect.returnsThinking !== false && thoughts.length > 0
      ? { [dialect.returnsThinking]: thoughts.join("") }
      : {})
  }
}

const idOf = (dialect: Dialect, { id }: { readonly id: string }): string => (dialect.shortIds ? shortId(id) : id)

const toContent = (dialect: Dialect, pieces: ReadonlyArray<Piece>): Json => inDialect(dialect, toParts(pieces))

/** Writes text alone as a string, where the server does not want lists. */
const inDialect = ({ alwaysLists }: Dialect, parts: ReadonlyArray<JsonObject>): Json => {
  if (alwaysLists) return parts
  const texts = parts.flatMap(({ text }) => (typeof text === "string" ? [text] : []))
  return texts.length === parts.length ? texts.join("") : parts
}

const toParts = (pieces: ReadonlyArray<Piece>): ReadonlyArray<JsonObject> => {
  const parts: Array<JsonObject> = []
  for (const piece of pieces) {
    if (piece.kind === "text") parts.push({ type: "text", text: piece.text })
    if (piece.kind === "media") parts.push(toPart(piece))
  }
  return parts
}

const toPart = (piece: MediaPiece): JsonObject => {
  const { mediaType, source, type } = piece
  const url = "url" in source ? source.url : `data:${mediaType};base64,${source.data}`
  if (type === "image") return { type: "image_url", image_url: { url } }
  if ("data" in source && type === "audio") {
    return { type: "input_audio", input_audio: { data: source.data, format: audioFormats.get(mediaType) ?? "wav" } }
  }
  if ("data" in source && type === "document") {
    return { type: "file", file: { filename: piece.filename ?? "document.pdf", file_data: url } }
  }
  return { type: "text", text: textOf([standIn(piece)]) }
}

const audioFormats: ReadonlyMap<string, string> = new Map([
  ["audio/wav", "wav"],
  ["audio/x-wav", "wav"],
  ["audio/wave", "wav"],
  ["audio/mpeg", "mp3"],
  ["audio/mp3", "mp3"]
])

/** Returns the media that the format supports: images also as addresses, audio and PDF files as bytes. */
export const mediaOf = (imageUrls: boolean): Media => ({
  image: { urls: imageUrls },
  audio: { types: [...audioFormats.keys()], urls: false },
  document: { types: ["application/pdf"], urls: false }
})

/** Returns the options that a model accepts. Reasoning models accept no sampling options. */
export const takes =
  (dialect: Dialect): NonNullable<ProviderShape["takes"]> =>
  ({ generation, model }) => {
    const { stopSequences, temperature, thinking, topP, ...others } = generation
    const effort = thinking?.effort === undefined ? {} : { thinking: { effort: thinking.effort } }
    if (reasonsIn(dialect, model)) return { ...others, ...effort }
    return {
      ...others,
      ...effort,
      ...(temperature === undefined ? {} : { temperature }),
      ...(topP === undefined ? {} : { topP }),
      ...(stopSequences === undefined ? {} : { stopSequences })
    }
  }

const reasonsIn = (dialect: Dialect, { id }: Model): boolean => dialect.reasoners && isReasoner(id)

/** Encodes a request as JSON text. */
export const toBody = (dialect: Dialect, request: Request, messages: ReadonlyArray<ReadonlyArray<Written>>): string => {
  const { model } = request
  const generation = takes(dialect)(request)
  const own = extras(request, dialect.name)
  const reasons = reasonsIn(dialect, model)
  return assemble(
    {
      model: model.id,
      stream: true,
      temperature: generation.temperature,
      top_p: generation.topP,
      max_tokens: reasons ? undefined : generation.maxTokens,
      max_completion_tokens: reasons ? generation.maxTokens : undefined,
      stop: generation.stopSequences,
      [dialect.seedName]: generation.seed,
      reasoning_effort: generation.thinking?.effort,
      tools: functions(request, dialect.name),
      ...constraint(dialect, request),
      ...own,
      stream_options: laidOver(dialect.usageOption ? { include_usage: true } : {}, own["stream_options"])
    },
    "messages",
    joined(answered(dialect, gathered(dialect, messages.flat())))
  )
}

/** Returns the schema of a typed answer in the form of OpenAI, for a model that can be held to it. */
export const structured = ({ shortIds }: Dialect, request: Request): JsonObject | undefined =>
  outputSchema(request, shortIds ? vendorRules.mistral : vendorRules.chat)

const constraint = (dialect: Dialect, request: Request): Settings => {
  const { grammar } = request
  const { grammar: form } = dialect
  const strict = structured(dialect, request)
  if (strict !== undefined) return replyFormat({ name: "reply", strict: true, schema: strict })
  if (form === undefined || grammar === undefined || isStructured(request)) return {}
  if (form === "gbnf") return { grammar: Grammar.gbnfOf(grammar) }
  if (form === "structured_outputs") return { structured_outputs: { grammar: Grammar.gbnfOf(grammar) } }
  const tag = form === "structural_tag" ? Grammar.structuralTagOf(grammar) : undefined
  if (tag !== undefined) return { response_format: tag }
  const schema = Grammar.jsonSchemaOf(grammar)
  // Hosted services only accept objects.
  return schema === undefined || (form === "json_schema" && schema["type"] !== "object")
    ? {}
    : replyFormat({ name: "reply", schema })
}

const replyFormat = (schema: JsonObject): Settings => ({
  response_format: { type: "json_schema", json_schema: schema }
})

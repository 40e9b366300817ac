/**
 * Encodes requests of the Messages API.
 *
 * The model id decides which options are sent: newer Claude models think adaptively and accept no sampling options.
 */

import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { Json, JsonObject } from "../../kit/json.ts"
import { vendorRules } from "../../kit/vendorRules.ts"
import type { Generation } from "../../Generation.ts"
import type { Message } from "../../Message.ts"
import type { ProviderShape, Request } from "../../Provider.ts"
import { assemble, extras, laidOver, type Settings, toolsOf } from "./body.ts"
import { apart, concluded, itemsOf, type Media, type MediaPiece, type Piece, standIn, textOf } from "./messageParts.ts"
import { outputSchema } from "./outputSchema.ts"
import { isFields, text } from "./readFields.ts"

/** The name under which thinking is signed and vendor options are given. */
export const name = "anthropic"

/** The media that the format supports. */
export const media: Media = {
  image: { urls: true },
  document: { types: ["application/pdf", "text/plain"], urls: true }
}

/** A block as JSON text. */
interface WireBlock {
  readonly text: string
  /** The id of a call that Anthropic runs. */
  readonly calls?: string | undefined
  /** The id of the call whose result it is. */
  readonly answers?: string | undefined
  readonly isMarked?: boolean
}

interface WireMessage {
  readonly role: "system" | "user" | "assistant"
  /** Whether these are native results, which are merged with the results of adjacent messages. */
  readonly isResults: boolean
  readonly text: string
  readonly blocks: ReadonlyArray<WireBlock>
  /** Media that the model made. Messages of the model cannot hold media, so a user message shows them. */
  readonly made: ReadonlyArray<WireBlock>
}

export const toMessage = (message: Message, pieces: ReadonlyArray<Piece>): WireMessage => {
  if (message.role === "system") return { role: "system", isResults: false, text: textOf(pieces), blocks: [], made: [] }
  const isModel = message.role === "assistant"
  const { made, said } = isModel ? apart(pieces) : { made: [], said: pieces }
  return {
    role: isModel ? "assistant" : "user",
    isResults: message.role === "tool" && pieces.some((piece) => piece.kind === "result"),
    text: "",
    blocks: written(isModel ? concluded(said, (thought) => itemsOf(thought).length > 0) : said),
    made: written(made)
  }
}

const written = (pieces: ReadonlyArray<Piece>): ReadonlyArray<WireBlock> => toBlocks(pieces).map(writtenBlock)

const writtenBlock = (block: JsonObject): WireBlock => {
  const type = text(block, "type")
  const isHosted = type !== "tool_use" && type !== "tool_result"
  return {
    text: JSON.stringify(block),
    ...(isHosted && type?.endsWith("tool_use") ? { calls: text(block, "id") } : {}),
    ...(isHosted ? { answers: text(block, "tool_use_id") } : {})
  }
}

const toBlocks = (pieces: ReadonlyArray<Piece>): ReadonlyArray<JsonObject> => {
  const blocks: Array<JsonObject> = []
  for (const piece of pieces) {
    if (piece.kind === "thought") blocks.push(...itemsOf(piece))
    const block = toBlock(piece)
    if (block !== undefined) blocks.push(block)
  }
  return blocks
}

const toBlock = (piece: Piece): JsonObject | undefined => {
  switch (piece.kind) {
    case "text":
      return { type: "text", text: piece.text }
    case "media":
      if (piece.type !== "image" && piece.type !== "document") return toBlock(standIn(piece))
      return {
        type: piece.type,
        source: sourceOf(piece),
        ...(piece.filename === undefined ? {} : { title: piece.filename })
      }
    case "call":
      return { type: "tool_use", id: piece.id, name: piece.name, input: piece.input }
    case "result":
      return {
        type: "tool_result",
        tool_use_id: piece.id,
        // A block of text cannot be blank, so a blank result has none.
        ...(piece.pieces.length === 0 ? {} : { content: toBlocks(piece.pieces) }),
        ...(piece.isError ? { is_error: true } : {})
      }
    case "thought": {
      const kept = isFields(piece.signature) ? piece.signature : undefined
      const redacted = text(kept, "redacted")
      if (redacted !== undefined) return { type: "redacted_thinking", data: redacted }
      const signature = text(kept, "signature")
      // The API rejects thinking that it did not sign.
      return signature === undefined ? undefined : { type: "thinking", thinking: piece.text, signature }
    }
  }
}

const sourceOf = ({ mediaType, source }: MediaPiece): JsonObject => {
  if ("url" in source) return { type: "url", url: source.url }
  if (mediaType !== "text/plain") return { type: "base64", media_type: mediaType, data: source.data }
  return { type: "text", media_type: mediaType, data: Result.getOrElse(Base64.decodeString(source.data), () => "") }
}

/**
 * Returns the options that a model accepts. Newer models think adaptively and accept no sampling options, and no model
 * accepts them while it thinks.
 */
export const takes: NonNullable<ProviderShape["takes"]> = ({ generation, model }) => {
  const known = traits(model.id)
  const { seed: _, temperature, thinking, topP, ...others } = generation
  const samples = known.sampling && !thinks(generation, known)
  return {
    ...others,
    ...(samples && temperature !== undefined ? { temperature } : {}),
    ...(samples && topP !== undefined && (known.bothSamplings || temperature === undefined) ? { topP } : {}),
    thinking: {
      ...(thinking?.budget === undefined || isAdaptive(generation, known) ? {} : { budget: thinking.budget }),
      ...(thinking?.effort === undefined || !known.effort ? {} : { effort: thinking.effort })
    }
  }
}

const thinks = ({ thinking }: Generation, known: Traits): boolean =>
  known.isClaude && (thinking?.budget !== undefined || (known.adaptive && thinking?.effort !== undefined))

const isAdaptive = (generation: Generation, known: Traits): boolean => known.adaptive && thinks(generation, known)

/** Returns the encoder of a request around its messages. `lifetime` is that of what a cache mark ends. */
export const toBody = (
  lifetime: "5m" | "1h" | undefined
): ((request: Request, messages: ReadonlyArray<WireMessage>) => string) => {
  const mark: JsonObject = { type: "ephemeral", ...(lifetime === undefined ? {} : { ttl: lifetime }) }
  return (request, messages) => bodyWith(mark, request, messages)
}

const bodyWith = (mark: JsonObject, request: Request, messages: ReadonlyArray<WireMessage>): string => {
  const { model } = request
  const own = extras(request, name)
  const known = traits(model.id)
  const generation = takes(request)
  const marks = new Set((request.cacheBreakpoints ?? []).slice(-4))
  const budget = generation.thinking?.budget
  return assemble(
    {
      model: model.id,
      max_tokens:
        generation.maxTokens ?? (known.isClaude && known.budget && budget !== undefined ? 4096 + budget : 4096),
      system: toSystem(messages, marks, mark),
      stream: true,
      temperature: generation.temperature,
      top_p: generation.topP,
      stop_sequences: generation.stopSequences,
      tools: toolsOf(request, name, (tool) => ({
        name: tool.name,
        description: tool.description,
        input_schema: tool.inputSchema
      })),
      ...own,
      thinking: thinkingOf(isAdaptive(request.generation, known), budget, own["thinking"]),
      output_config: laidOver({ effort: generation.thinking?.effort, format: formatOf(request) }, own["output_config"])
    },
    "messages",
    toMessages(messages, marks, mark)
  )
}

const formatOf = (request: Request): JsonObject | undefined => {
  const schema = outputSchema(request, vendorRules.anthropic)
  return schema === undefined ? undefined : { type: "json_schema", schema }
}

const thinkingOf = (adapts: boolean, budget: number | undefined, own: Json | undefined): Json | undefined => {
  const ours: Settings = adapts
    ? { type: "adaptive", display: "summarized" }
    : budget === undefined
      ? {}
      : { type: "enabled", budget_tokens: budget }
  // Models reject the setting for the other kind of thinking.
  const kind = isFields(own) ? own["type"] : undefined
  return laidOver(kind === undefined || kind === ours["type"] ? ours : {}, own)
}

// The last system message wins. A cache mark on any of them marks it.
const toSystem = (
  messages: ReadonlyArray<WireMessage>,
  marks: ReadonlySet<number>,
  mark: JsonObject
): Json | undefined => {
  let system: Json | undefined
  let isMarked = false
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]
    if (message?.role !== "system") continue
    isMarked ||= marks.has(index)
    if (message.text !== "") system = message.text
  }
  if (system === undefined || !isMarked) return system
  return [{ type: "text", text: system, cache_control: mark }]
}

/** Adjacent messages of the model are one, as a reply is that was paused; so are adjacent results. */
const toMessages = (
  messages: ReadonlyArray<WireMessage>,
  marks: ReadonlySet<number>,
  mark: JsonObject
): ReadonlyArray<string> => {
  const turns: Array<{ readonly kind: "assistant" | "user" | "results"; readonly blocks: Array<WireBlock> }> = []
  messages.forEach(({ blocks, isResults, made, role }, index) => {
    // An empty message is rejected, so a reply of the model without content is left out.
    if (role !== "system" && blocks.length > 0) {
      const kind = isResults ? "results" : role
      let turn = turns.at(-1)
      if (turn === undefined || turn.kind !== kind || kind === "user") turns.push((turn = { kind, blocks: [] }))
      for (const block of blocks) turn.blocks.push(block)
      // A reply that was paused goes back as it is, so the mark stands before it.
      const isOpen = kind === "assistant" && index === messages.length - 1
      const { blocks: own } = (isOpen ? turns.at(-2) : undefined) ?? turn
      if (marks.has(index)) own.push(marked(own.pop(), mark))
    }
    if (made.length > 0) turns.push({ kind: "user", blocks: [...made] })
  })
  return turns.flatMap(({ blocks, kind }, index) => {
    const kept = kind === "assistant" ? paired(blocks, index === turns.length - 1) : blocks
    const role = kind === "assistant" ? kind : "user"
    return kept.length === 0 ? [] : [`{"role":"${role}","content":[${kept.map(({ text }) => text).join(",")}]}`]
  })
}

/**
 * Leaves out calls of Anthropic's own tools without a result, and results without a call. Calls at the end of the
 * conversation stay: Anthropic runs them and continues the reply that it paused.
 */
const paired = (blocks: ReadonlyArray<WireBlock>, isLast: boolean): ReadonlyArray<WireBlock> => {
  if (!blocks.some(({ answers, calls }) => (answers ?? calls) !== undefined)) return blocks
  const open = new Set<string>()
  const answered = new Set<string>()
  const kept = blocks.filter(({ answers, calls }) => {
    if (calls !== undefined) open.add(calls)
    if (answers === undefined) return true
    if (!open.delete(answers)) return false
    answered.add(answers)
    return true
  })
  return isLast ? kept : kept.filter(({ calls }) => calls === undefined || answered.has(calls))
}

const marked = (block: WireBlock = { text: "{}" }, mark: JsonObject): WireBlock =>
  block.isMarked === true
    ? block
    : { ...block, isMarked: true, text: `${block.text.slice(0, -1)},"cache_control":${JSON.stringify(mark)}}` }

/** The features of a model by its id: newer Claude models think differently and accept no sampling options. */
type Traits = ReturnType<typeof traits>

const traits = (id: string) => {
  const isClaude = id.startsWith("claude-")
  const version = /^claude-([a-z]+)-(\d{1,2})(?:-(\d{1,2}))?(?!\d)/.exec(id)
  const family = version?.[1]
  const release = Number(version?.[2] ?? 0) * 100 + Number(version?.[3] ?? 0)
  const adaptive = release >= 500 || (family === "opus" && release >= 407)
  return {
    isClaude,
    adaptive,
    budget: !adaptive,
    sampling: !adaptive,
    bothSamplings: release < 401,
    effort: adaptive || (family === "opus" && release >= 405) || (family === "sonnet" && release >= 406)
  }
}

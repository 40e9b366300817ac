/**
 * The dialects of a turn: blocks in text, or native tool calls.
 *
 * A dialect turns the parts of a reply into the whole reply, without interpreting it. Both dialects keep text, thinking
 * and native calls; only `blocks` looks for blocks in the text. A run speaks one dialect from its first turn to its
 * last.
 *
 * @since 0.1.0
 */

import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Bounds from "./kit/bounds.ts"
import type { Block } from "./Block.ts"
import * as Blocks from "./Block.ts"
import type * as BlockParser from "./BlockParser.ts"
import type { HostedCall } from "./Call.ts"
import type { Content, Thinking } from "./Content.ts"
import * as Contents from "./Content.ts"
import { BlockFold, type Excess } from "./kit/blockFold.ts"
import { jsonObject, parseJson, sizeOf, textOf } from "./kit/json.ts"
import type { dialectName } from "./internal/words/modelCallSchema.ts"
import { Sources } from "./internal/words/sources.ts"
import * as Markups from "./internal/words/markup.ts"
import type { TypeOf } from "./kit/schemas.ts"
import { Pieces } from "./kit/text.ts"
import * as Snapshot from "./kit/snapshot.ts"
import { LimitExceeded } from "./KernelError.ts"
import type { Limits } from "./Limits.ts"
import { kindOf } from "./Media.ts"
import type {
  File,
  Finish,
  HostedResult,
  Metadata,
  ReportedUsage,
  StreamPart,
  TextDelta,
  ToolCall
} from "./StreamPart.ts"

/**
 * A whole reply.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reply {
  /**
   * The text of the assistant message. If the reply has over 1,000 blocks more than `Limits.blocksPerReply`, the text
   * ends with the last block that was read.
   */
  readonly text: string
  readonly blocks: ReadonlyArray<Block>
  /** The block in which the reply ended. Never act on it. */
  readonly unclosed: Block | undefined
  readonly calls: ReadonlyArray<ToolCall>
  /** The calls that the vendor ran itself. */
  readonly hosted: ReadonlyArray<HostedCall>
  /**
   * The contents of the assistant message in the order of the reply: thinking, texts, media and native calls. The
   * sources that the reply names come last.
   */
  readonly content: ReadonlyArray<Content>
  /** Undefined when the stream was cut. */
  readonly finish: Finish | undefined
  /** The usage that was reported before the end. */
  readonly reported: ReportedUsage | undefined
  /** The limit that was exceeded. The rest of the reply was not read. */
  readonly failure: LimitExceeded | undefined
}

/**
 * Reads one reply.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reader {
  /** Reads parts that arrived together. Returns the limit that was exceeded, if any. */
  readonly push: (parts: ReadonlyArray<StreamPart>) => LimitExceeded | undefined
  /** Returns the whole reply. Further calls return the same one. */
  readonly end: () => Reply
  /**
   * Emits everything emitted so far to another listener, in larger pieces: thinking, text with its blocks, whole native
   * calls.
   */
  readonly repeat: (listener: Listener) => void
}

/**
 * Receives the parts of a reply as they become certain.
 *
 * @category models
 * @since 0.1.0
 */
export interface Listener {
  /** A piece of text outside blocks, or of the content of a block. */
  readonly text: (type: "text_chunk" | "block_content", text: string) => void
  /** The start or end of a block, or a block that was never closed. */
  readonly block: (part: Exclude<BlockParser.Part, { readonly text: string }>) => void
  /** Any other part, except `finish`. */
  readonly part: (part: StreamPart) => void
}

/**
 * The name of a dialect: blocks in text, or the vendor's native tool calls.
 *
 * @category models
 * @since 0.1.0
 */
export type DialectName = TypeOf<typeof dialectName>

/**
 * A dialect: its name, and how a reply in it is read.
 *
 * @category models
 * @since 0.1.0
 */
export interface Dialect {
  readonly name: DialectName
  /** True if callables are sent to the provider as native tools. */
  readonly native: boolean
  readonly reader: (
    listener: Listener,
    limits: Limits,
    origin: { readonly provider: string; readonly model: string }
  ) => Reader
}

/**
 * The block dialect: the model writes blocks in its text.
 *
 * @category dialects
 * @since 0.1.0
 */
export const blocks: Dialect = {
  name: "blocks",
  native: false,
  reader: (listener, limits, origin) =>
    new ReplyReader(listener, origin, new BlockFold({ ...limits, blocks: readable(limits) }, exceeded), limits)
}

/**
 * The native dialect: the model calls native tools, and its text is the answer.
 *
 * @category dialects
 * @since 0.1.0
 */
export const tools: Dialect = {
  name: "tools",
  native: true,
  reader: (listener, limits, origin) => new ReplyReader(listener, origin, undefined, limits)
}

export type {
  /**
   * The formats in which models trained on other tools may write calls: `<tool_call>` (Hermes, Qwen), `<function=…>`
   * (Llama), `<invoke>` (older Claude), `[TOOL_CALLS]` (Mistral), a code fence, or only JSON.
   *
   * @category models
   * @since 0.1.0
   */
  Markup
} from "./internal/words/markup.ts"

/**
 * All readable markups, in the order in which they are usually tried.
 *
 * @category models
 * @since 0.1.0
 */
export const markups: ReadonlyArray<Markups.Markup> = ["tool_call", "function", "invoke", "bracket", "fenced", "json"]

/**
 * Returns the dialect with a name. With `markups`, a whole reply that contains no call is read again in those markups.
 *
 * @category dialects
 * @since 0.1.0
 */
export const of = (name: DialectName, markups: ReadonlyArray<Markups.Markup> = none): Dialect => {
  const dialect = name === "tools" ? tools : blocks
  if (markups.length === 0) return dialect
  return {
    ...dialect,
    reader: (listener, limits, origin) => {
      const inner = dialect.reader(listener, limits, origin)
      let reply: Reply | undefined
      return {
        push: (parts) => inner.push(parts),
        repeat: (other) => inner.repeat(other),
        end: () => (reply ??= bounded(rereadIn(inner.end(), dialect, markups), limits))
      }
    }
  }
}

const none: ReadonlyArray<never> = []

/** Applies the limit on blocks to a reply that was read in another markup. */
const bounded = (reply: Reply, limits: Limits): Reply => {
  const limit = readable(limits)
  return reply.blocks.length <= limit ? reply : { ...reply, blocks: reply.blocks.slice(0, limit) }
}

/** Reads a reply without calls again in other markups. */
const rereadIn = (reply: Reply, dialect: Dialect, markups: ReadonlyArray<Markups.Markup>): Reply => {
  if (reply.failure !== undefined || reply.calls.length > 0) return reply
  if (!dialect.native && (reply.blocks.length > 0 || reply.unclosed !== undefined)) return reply
  const reading = Markups.read(reply.text, markups, Bounds.jsonDepth)
  if (reading === undefined) return reply
  if (!dialect.native) {
    const commands = reading.calls.map(({ name, params }) => Blocks.command(name, textOf(params)))
    return { ...reply, blocks: [...reading.blocks, ...commands] }
  }
  const commands = reading.blocks.filter((block) => block.type === "command")
  const found = [...reading.calls, ...commands.map(({ content, name }) => ({ name: name ?? "", params: content }))]
  const calls = found.map(({ name, params }): ToolCall => ({
    type: "tool-call",
    id: "",
    name,
    params: read(params)
  }))
  const text = reading.blocks.find((block) => block.type === "final")?.content ?? Blocks.strip(reading.rest)
  const thinking = reply.content.filter((part) => part.type === "thinking")
  const media = reply.content.filter(Contents.isMedia)
  const sources = reply.content.filter((part) => part.type === "source")
  const content = [...thinking, ...contentOf(text, media, calls, thinking.length), ...sources]
  return { ...reply, text, calls, content }
}

const read = (params: unknown): unknown =>
  typeof params === "string" ? Result.getOrElse(parseJson(params, Bounds.jsonDepth), () => params) : params

/** Returns text and native calls as the assistant message stores them. */
const contentOf = (
  text: string,
  media: ReadonlyArray<Content>,
  calls: ReadonlyArray<ToolCall>,
  before: number
): Array<Content> => {
  const content: Array<Content> = []
  if (text !== "" || before + media.length + calls.length === 0) content.push(Contents.text(text))
  content.push(...media)
  for (const call of calls) content.push(Contents.toolUse(call.id, call.name, jsonObject(call.params)))
  return content
}

const mediumOf = ({ data, fileId, mediaType }: File): Content => ({
  type: kindOf(mediaType),
  mediaType,
  ...(fileId === undefined ? { data: Result.getOrElse(Base64.decode(data), () => new Uint8Array()) } : { fileId })
})

/** A thought, and the data its vendor needs to receive it again. */
interface Thought {
  readonly kind: "thought"
  readonly id: string
  text: string
  metadata: Metadata | undefined
}

/** A part of the text, from one place to another. It has no end until the next one begins. */
interface Passage {
  readonly kind: "passage"
  readonly id: string
  readonly from: number
  to: number | undefined
}

/** A part of a reply, in its order. */
type Entry =
  | Thought
  | Passage
  | { readonly kind: "medium"; readonly content: Content }
  | { readonly kind: "call"; readonly call: ToolCall }

/** Returns the number of blocks to read from a reply. The rest of its text is dropped. */
const readable = ({ blocksPerReply }: Limits): number => Math.max(1, blocksPerReply + Bounds.blocksBeyond)

/** A call whose arguments cannot be written as JSON, such as a number too large for a double, counts as unreadable. */
const written = (call: ToolCall): ToolCall =>
  Result.isSuccess(Snapshot.take(call.params)) ? call : { ...call, params: "" }

/** The calls of a reply that its vendor ran. */
class HostedCalls {
  readonly #calls = new Map<string, HostedCall>()

  begin({ id, name, params }: ToolCall): void {
    if (this.#calls.size >= Bounds.nativeCallsBeyond) return
    const input = Snapshot.take(params)
    this.#calls.set(id, { callId: id, name, input: Result.getOrElse(input, () => ({})), sources: [] })
  }

  end({ id, isFailure, result }: HostedResult): void {
    const call = this.#calls.get(id)
    if (call !== undefined) this.#calls.set(id, { ...call, ...(isFailure && { isError: true }), ...result })
  }

  all(): ReadonlyArray<HostedCall> {
    return [...this.#calls.values()]
  }
}

const exceeded = (excess: Excess): LimitExceeded => new LimitExceeded(excess)

class ReplyReader implements Reader {
  readonly #listener: Listener
  readonly #origin: { readonly provider: string; readonly model: string }
  readonly #parser: BlockFold<LimitExceeded> | undefined
  readonly #limits: Limits
  readonly #text = new Pieces()
  readonly #blocks: Array<Block> = []
  readonly #calls: Array<ToolCall> = []
  readonly #hosted = new HostedCalls()
  readonly #sources = new Sources()
  readonly #entries: Array<Entry> = []
  readonly #thinking = new Map<string, Thought>()
  #textLength = 0
  #passage: Passage | undefined
  #length = 0
  #reply: Reply | undefined
  #unclosed: Block | undefined
  #finish: Finish | undefined
  #reported: ReportedUsage | undefined
  #failure: LimitExceeded | undefined

  constructor(
    listener: Listener,
    origin: { readonly provider: string; readonly model: string },
    parser: BlockFold<LimitExceeded> | undefined,
    limits: Limits
  ) {
    this.#listener = listener
    this.#origin = origin
    this.#parser = parser
    this.#limits = limits
  }

  push(parts: ReadonlyArray<StreamPart>): LimitExceeded | undefined {
    for (let index = 0; index < parts.length && this.#failure === undefined; index++) {
      const part = parts[index]
      if (part === undefined) continue
      switch (part.type) {
        case "text-delta":
          index = this.#read(parts, index, part)
          break
        case "reasoning-delta": {
          const thought = this.#thought(part.id)
          thought.text += part.delta
          this.#grow(part.delta.length)
          if (part.metadata !== undefined) this.#note(thought, part.metadata)
          this.#listener.part(part)
          break
        }
        case "reasoning-start":
        case "reasoning-end": {
          const thought = this.#thought(part.id)
          if (part.metadata !== undefined) this.#note(thought, part.metadata)
          this.#listener.part(part)
          break
        }
        case "tool-params-delta":
          this.#grow(part.delta.length)
          this.#listener.part(part)
          break
        case "tool-call":
          if (part.providerExecuted === true) this.#hosted.begin(part)
          else if (this.#calls.length >= this.#limits.blocksPerReply + Bounds.nativeCallsBeyond) break
          else this.#call(written(part))
          this.#listener.part(part)
          break
        case "tool-result":
          this.#hosted.end(part)
          this.#grow(part.result.sources.reduce((sum, { title = "", url }) => sum + url.length + title.length, 0))
          for (const source of part.result.sources) this.#sources.add(source)
          this.#listener.part(part)
          break
        case "source":
          this.#sources.add(part)
          this.#grow(part.title.length + (part.quote?.length ?? 0))
          this.#listener.part(part)
          break
        case "file":
          this.#entries.push({ kind: "medium", content: mediumOf(part) })
          this.#listener.part(part)
          break
        case "finish":
          this.#finish = part
          break
        case "text-start":
        case "text-end":
          break
        case "response-metadata":
          this.#reported = part.usage ?? this.#reported
          this.#listener.part(part)
          break
        default:
          this.#listener.part(part)
      }
    }
    return this.#failure
  }

  end(): Reply {
    return (this.#reply ??= this.#whole())
  }

  repeat(listener: Listener): void {
    const parser = this.#parser === undefined ? undefined : new BlockFold(this.#limits, exceeded)
    const reader = new ReplyReader(listener, this.#origin, parser, this.#limits)
    const text = this.#text.peek()
    const parts = this.#entries.flatMap((entry): ReadonlyArray<StreamPart> => {
      if (entry.kind === "thought") return [{ type: "reasoning-delta", id: entry.id, delta: entry.text }]
      if (entry.kind === "passage") {
        return [{ type: "text-delta", id: entry.id, delta: text.slice(entry.from, entry.to) }]
      }
      return entry.kind === "call" ? [entry.call] : []
    })
    reader.push(parts)
  }

  #whole(): Reply {
    if (this.#parser !== undefined) this.#emit(this.#parser.flush())
    const text = this.#text.take("")
    return {
      text,
      blocks: this.#blocks,
      unclosed: this.#unclosed,
      calls: this.#calls,
      hosted: this.#hosted.all(),
      content: this.#content(text),
      finish: this.#finish,
      reported: this.#reported,
      failure: this.#failure
    }
  }

  /** Reads deltas that arrived together as one piece. Returns the index of the last. */
  #read(parts: ReadonlyArray<StreamPart>, first: number, { delta, id }: TextDelta): number {
    let last = first
    let text = delta
    for (let next = parts[last + 1]; next?.type === "text-delta" && next.id === id; next = parts[last + 1]) {
      text += next.delta
      last++
    }
    const parser = this.#parser
    if (parser?.unread !== undefined) return last
    if (text !== "") this.#begin(id)
    this.#textLength += text.length
    if (parser === undefined) {
      this.#text.add(text, text.length)
      this.#grow(text.length)
      if (text !== "") this.#listener.text("text_chunk", text)
    } else if (parser.takePlain(text)) {
      this.#text.add(text, text.length)
      this.#listener.text(parser.plain, text)
    } else {
      const found = parser.push(text)
      const length = text.length - (parser.unread ?? 0)
      this.#textLength -= parser.unread ?? 0
      this.#text.add(text.slice(0, length), length)
      this.#emit(found)
      this.#failure ??= parser.failure
    }
    return last
  }

  #emit(parts: ReadonlyArray<BlockParser.Part>) {
    for (const part of parts) {
      if (part.type === "text_chunk" || part.type === "block_content") {
        this.#listener.text(part.type, part.text)
        continue
      }
      if (part.type === "block_complete") this.#blocks.push(part.block)
      else if (part.type === "block_unclosed") {
        this.#unclosed = { type: part.blockType, name: part.name, content: part.content }
      }
      this.#listener.block(part)
    }
  }

  #thought(id: string): Thought {
    let thought = this.#thinking.get(id)
    if (thought === undefined) {
      this.#thinking.set(id, (thought = { kind: "thought", id, text: "", metadata: undefined }))
      this.#entries.push(thought)
      this.#grow(id.length)
    }
    return thought
  }

  /** Stores the vendor data of a thought. A signature may arrive in one part, or repeated in each. */
  #note(thought: Thought, metadata: Metadata) {
    for (const [provider, value] of Object.entries(metadata)) {
      const before = thought.metadata?.[provider]
      this.#grow(provider.length + sizeOf(value) - (before === undefined ? 0 : provider.length + sizeOf(before)))
    }
    thought.metadata = { ...thought.metadata, ...metadata }
  }

  /** The parser limits its own text; this limits everything else in a reply. */
  #grow(length: number) {
    this.#length += length
    if (this.#length > this.#limits.replyLength)
      this.#failure ??= exceeded({ limit: "reply", value: this.#limits.replyLength })
  }

  /** Begins a passage unless the last entry is the one of this text. Texts with other ids stay apart. */
  #begin(id: string) {
    const last = this.#passage
    if (last !== undefined && last.id === id && this.#entries.at(-1) === last) return
    if (last !== undefined) last.to = this.#textLength
    this.#passage = { kind: "passage", id, from: this.#textLength, to: undefined }
    this.#entries.push(this.#passage)
  }

  #call(call: ToolCall) {
    this.#calls.push(call)
    this.#entries.push({ kind: "call", call })
  }

  /** Returns the content in the order of the reply, since vendors may reject thinking that was moved. */
  #content(text: string): ReadonlyArray<Content> {
    const sources = this.#sources.all()
    if (this.#entries.length === 0) return [Contents.text(text), ...sources]
    const content = this.#entries.map((entry): Content => {
      switch (entry.kind) {
        case "passage":
          return Contents.text(text.slice(entry.from, entry.to))
        case "thought":
          return this.#thinkingOf(entry)
        case "medium":
          return entry.content
        case "call":
          return Contents.toolUse(entry.call.id, entry.call.name, jsonObject(entry.call.params))
      }
    })
    return sources.length === 0 ? content : [...content, ...sources]
  }

  #thinkingOf(thought: Thought): Thinking {
    const own = thought.metadata?.[this.#origin.provider]
    return {
      type: "thinking",
      content: thought.text,
      redacted: false,
      origin: { provider: this.#origin.provider, model: this.#origin.model },
      ...(own === undefined ? {} : { signature: own })
    }
  }
}

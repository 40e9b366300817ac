/**
 * Reads the parts of a reply in either dialect: keeps them in their order, and emits them as they become certain.
 */

import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { Block } from "../../Block.ts"
import type * as BlockParser from "../../BlockParser.ts"
import type { HostedCall } from "../../Call.ts"
import type { Content, Thinking } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import * as Bounds from "../../kit/bounds.ts"
import { BlockFold, type Excess } from "../../kit/blockFold.ts"
import { jsonObject, sizeOf } from "../../kit/json.ts"
import * as Snapshot from "../../kit/snapshot.ts"
import { Pieces } from "../../kit/text.ts"
import { LimitExceeded } from "../../KernelError.ts"
import type { Limits } from "../../Limits.ts"
import { kindOf } from "../../Media.ts"
import type {
  File,
  Finish,
  HostedResult,
  Metadata,
  ReportedUsage,
  StreamPart,
  TextDelta,
  ToolCall
} from "../../StreamPart.ts"
import { Sources } from "./sources.ts"
import type { Listener, Reader, Reply } from "./wholeReply.ts"

/** The provider and the model of a reply. Thinking can be sent back only to them. */
export interface Origin {
  readonly provider: string
  readonly model: string
}

/** Reads replies with blocks, at most so many. */
export const ofBlocks = (listener: Listener, origin: Origin, limits: Limits, blocks: number): Reader =>
  new ReplyReader(listener, origin, new BlockFold({ ...limits, blocks }, exceeded), limits)

/** Reads replies whose text is not searched for blocks. */
export const ofText = (listener: Listener, origin: Origin, limits: Limits): Reader =>
  new ReplyReader(listener, origin, undefined, limits)

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
  readonly #origin: Origin
  readonly #parser: BlockFold<LimitExceeded> | undefined
  readonly #limits: Limits
  readonly #text = new Pieces()
  readonly #blocks: Array<Block> = []
  readonly #calls: Array<ToolCall> = []
  /** Inputs of calls that are being written. */
  readonly #inputs = new Map<string, { readonly name: string; text: string }>()
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

  constructor(listener: Listener, origin: Origin, parser: BlockFold<LimitExceeded> | undefined, limits: Limits) {
    this.#listener = listener
    this.#origin = origin
    this.#parser = parser
    this.#limits = limits
  }

  push(parts: ReadonlyArray<StreamPart>): LimitExceeded | undefined {
    for (let index = 0; index < parts.length && this.#failure === undefined; index++) {
      const part = parts[index]
      if (part === undefined) continue
      if (part.type === "text-delta") index = this.#read(parts, index, part)
      else this.#take(part)
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
    const inputs = [...this.#inputs].flatMap(([id, { name, text }]): ReadonlyArray<StreamPart> => [
      { type: "tool-params-start", id, name },
      { type: "tool-params-delta", id, delta: text }
    ])
    reader.push([...parts, ...inputs])
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

  /** Keeps a part other than text, and emits it. */
  #take(part: Exclude<StreamPart, TextDelta>) {
    switch (part.type) {
      case "text-start":
      case "text-end":
        return
      case "finish":
        this.#finish = part
        return
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        this.#think(part)
        break
      case "tool-params-start":
        this.#inputs.set(part.id, { name: part.name, text: "" })
        this.#grow(part.id.length + part.name.length)
        break
      case "tool-params-delta": {
        const input = this.#inputs.get(part.id)
        if (input !== undefined) input.text += part.delta
        this.#grow(part.delta.length)
        break
      }
      case "tool-call":
        this.#inputs.delete(part.id)
        if (part.providerExecuted === true) this.#hosted.begin(part)
        else if (this.#calls.length >= this.#limits.blocksPerReply + Bounds.nativeCallsBeyond) return
        else this.#call(written(part))
        break
      case "tool-result":
        this.#hosted.end(part)
        this.#grow(part.result.sources.reduce((sum, { title = "", url }) => sum + url.length + title.length, 0))
        for (const source of part.result.sources) this.#sources.add(source)
        break
      case "source":
        this.#sources.add(part)
        this.#grow(part.title.length + (part.quote?.length ?? 0))
        break
      case "file":
        this.#entries.push({ kind: "medium", content: mediumOf(part) })
        break
      case "response-metadata":
        this.#reported = part.usage ?? this.#reported
    }
    this.#listener.part(part)
  }

  #think(part: Extract<StreamPart, { readonly type: `reasoning-${string}` }>) {
    const thought = this.#thought(part.id)
    if (part.type === "reasoning-delta") {
      thought.text += part.delta
      this.#grow(part.delta.length)
    }
    if (part.metadata !== undefined) this.#note(thought, part.metadata)
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

/**
 * How a turn is spoken: blocks in text, or native tool calls.
 *
 * A dialect reads the parts of one reply and gives the reply whole; it says
 * nothing about what the reply means. Both dialects keep text, thinking and
 * native calls; only `blocks` looks for blocks in the text.
 *
 * @since 0.1.0
 */
import type { Block } from "./Block.ts"
import * as BlockParser from "./BlockParser.ts"
import type { Content, Thinking } from "./Content.ts"
import * as Contents from "./Content.ts"
import type { JsonObject } from "./internal/json.ts"
import { jsonObject } from "./internal/json.ts"
import { LimitExceeded } from "./KernelError.ts"
import type { Limits } from "./Limits.ts"
import type { Finish, StreamPart, ToolCall } from "./StreamPart.ts"

/**
 * A whole reply, read.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reply {
  /** The raw text: what the assistant message holds. */
  readonly text: string
  readonly blocks: ReadonlyArray<Block>
  /** The block the reply ended in, never to be acted on (BP-25). */
  readonly unclosed: Block | undefined
  readonly calls: ReadonlyArray<ToolCall>
  /** Thinking, text and native calls, as the assistant message keeps them. */
  readonly content: ReadonlyArray<Content>
  /** Absent when the stream was cut (AC-4). */
  readonly finish: Finish | undefined
  /** The limit the reply broke; what came after was not read. */
  readonly failure: LimitExceeded | undefined
}

/**
 * Reads one reply.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reader {
  /** Reads the parts of one read of the provider; gives the limit they break, if they do. */
  readonly push: (parts: ReadonlyArray<StreamPart>) => LimitExceeded | undefined
  /** The whole reply; the same one however often it is asked for. */
  readonly end: () => Reply
}

/**
 * Where a reader tells what became certain.
 *
 * @category models
 * @since 0.1.0
 */
export interface Listener {
  readonly block: (part: BlockParser.Part) => void
  /** Every part that is no text. */
  readonly part: (part: StreamPart) => void
}

/**
 * @category models
 * @since 0.1.0
 */
export interface Dialect {
  readonly name: "blocks" | "tools"
  /** Whether callables are sent to the provider as native tools. */
  readonly native: boolean
  readonly reader: (
    listener: Listener,
    limits: Limits,
    origin: { readonly provider: string; readonly model: string }
  ) => Reader
}

/**
 * The model speaks blocks in its text.
 *
 * @category dialects
 * @since 0.1.0
 */
export const blocks: Dialect = {
  name: "blocks",
  native: false,
  reader: (listener, limits, origin) => new ReplyReader(listener, origin, BlockParser.make(limits), limits)
}

/**
 * The model calls native tools; its text is its answer.
 *
 * @category dialects
 * @since 0.1.0
 */
export const tools: Dialect = {
  name: "tools",
  native: true,
  reader: (listener, limits, origin) => new ReplyReader(listener, origin, undefined, limits)
}

/**
 * The dialect of a name.
 *
 * @category dialects
 * @since 0.1.0
 */
export const of = (name: "blocks" | "tools"): Dialect => (name === "tools" ? tools : blocks)

class ReplyReader implements Reader {
  readonly #listener: Listener
  readonly #origin: { readonly provider: string; readonly model: string }
  readonly #parser: BlockParser.BlockParser | undefined
  readonly #limits: Limits
  readonly #pieces: Array<string> = []
  readonly #blocks: Array<Block> = []
  readonly #calls: Array<ToolCall> = []
  readonly #thinking = new Map<string, { text: string; metadata: JsonObject | undefined }>()
  #length = 0
  #reply: Reply | undefined
  #unclosed: Block | undefined
  #finish: Finish | undefined
  #failure: LimitExceeded | undefined

  constructor(
    listener: Listener,
    origin: { readonly provider: string; readonly model: string },
    parser: BlockParser.BlockParser | undefined,
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
          index = this.#text(parts, index, part.delta)
          break
        case "reasoning-delta": {
          const thought = this.#thought(part.id)
          thought.text += part.delta
          this.#grow(part.delta.length)
          if (part.metadata !== undefined) thought.metadata = { ...thought.metadata, ...part.metadata }
          this.#listener.part(part)
          break
        }
        case "reasoning-start":
        case "reasoning-end": {
          const thought = this.#thought(part.id)
          if (part.metadata !== undefined) thought.metadata = { ...thought.metadata, ...part.metadata }
          this.#listener.part(part)
          break
        }
        case "tool-params-delta":
          this.#grow(part.delta.length)
          this.#listener.part(part)
          break
        case "tool-call":
          this.#calls.push(part)
          this.#listener.part(part)
          break
        case "finish":
          this.#finish = part
          break
        case "text-start":
        case "text-end":
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

  #whole(): Reply {
    if (this.#parser !== undefined) this.#tell(this.#parser.flush())
    const text = this.#pieces.length === 1 ? (this.#pieces[0] ?? "") : this.#pieces.join("")
    return {
      text,
      blocks: this.#blocks,
      unclosed: this.#unclosed,
      calls: this.#calls,
      content: this.#content(text),
      finish: this.#finish,
      failure: this.#failure
    }
  }

  /** Reads the deltas that came in one read as one piece; gives the index of the last. */
  #text(parts: ReadonlyArray<StreamPart>, first: number, delta: string): number {
    let last = first
    let text = delta
    for (let next = parts[last + 1]; next?.type === "text-delta"; next = parts[last + 1]) {
      text += next.delta
      last++
    }
    this.#pieces.push(text)
    if (this.#parser === undefined) {
      this.#grow(text.length)
      if (text !== "") this.#listener.block({ type: "text_chunk", text })
    } else {
      this.#tell(this.#parser.push(text))
      this.#failure ??= this.#parser.failure
    }
    return last
  }

  #tell(parts: ReadonlyArray<BlockParser.Part>) {
    for (const part of parts) {
      if (part.type === "block_complete") this.#blocks.push(part.block)
      else if (part.type === "block_unclosed") {
        this.#unclosed = { type: part.blockType, name: part.name, content: part.content }
      }
      this.#listener.block(part)
    }
  }

  #thought(id: string) {
    let thought = this.#thinking.get(id)
    if (thought === undefined) this.#thinking.set(id, (thought = { text: "", metadata: undefined }))
    return thought
  }

  /** The parser bounds its own text; this bounds everything else a reply may hold. */
  #grow(length: number) {
    this.#length += length
    if (this.#length > this.#limits.replyBytes)
      this.#failure ??= new LimitExceeded({ limit: "reply", value: this.#limits.replyBytes })
  }

  #content(text: string): ReadonlyArray<Content> {
    if (this.#thinking.size === 0 && this.#calls.length === 0) return [Contents.text(text)]
    const content: Array<Content> = []
    for (const thought of this.#thinking.values()) content.push(this.#thinkingOf(thought))
    if (text !== "" || content.length + this.#calls.length === 0) content.push(Contents.text(text))
    for (const call of this.#calls) content.push(Contents.toolUse(call.id, call.name, jsonObject(call.params)))
    return content
  }

  #thinkingOf(thought: { readonly text: string; readonly metadata: JsonObject | undefined }): Thinking {
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

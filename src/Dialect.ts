/**
 * The dialects of a turn: blocks in text, or native tool calls.
 *
 * A dialect turns the parts of a reply into the whole reply, without interpreting it. Both dialects keep text, thinking
 * and native calls; only `blocks` looks for blocks in the text. A run speaks one dialect from its first turn to its
 * last.
 *
 * @since 0.1.0
 */

import * as Result from "effect/Result"
import * as Blocks from "./Block.ts"
import type { Content } from "./Content.ts"
import * as Contents from "./Content.ts"
import * as Markups from "./internal/words/markup.ts"
import type { dialectName } from "./internal/words/modelCallSchema.ts"
import { type Origin, ofBlocks, ofText } from "./internal/words/replyReader.ts"
import type { Listener, Reader, Reply } from "./internal/words/wholeReply.ts"
import * as Bounds from "./kit/bounds.ts"
import { jsonObject, parseJson, textOf } from "./kit/json.ts"
import type { TypeOf } from "./kit/schemas.ts"
import type { Limits } from "./Limits.ts"
import type { ToolCall } from "./StreamPart.ts"

export type { Listener, Reader, Reply }

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
  readonly reader: (listener: Listener, limits: Limits, origin: Origin) => Reader
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
  reader: (listener, limits, origin) => ofBlocks(listener, origin, limits, readable(limits))
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
  reader: (listener, limits, origin) => ofText(listener, origin, limits)
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

/** Returns the number of blocks to read from a reply. The rest of its text is dropped. */
const readable = ({ blocksPerReply }: Limits): number => Math.max(1, blocksPerReply + Bounds.blocksBeyond)

/**
 * Converts a conversation to another dialect: text blocks to native calls, and native calls to text blocks.
 *
 * Only calls and their results are converted. Messages that need no change stay the same objects.
 */

import * as Blocks from "../../Block.ts"
import type { Block } from "../../Block.ts"
import * as BlockParser from "../../BlockParser.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { DialectName } from "../../Dialect.ts"
import type { Message } from "../../Message.ts"
import * as Result from "effect/Result"
import { isJsonObject, type JsonObject, parseJson } from "../../kit/json.ts"
import * as Bounds from "../../kit/bounds.ts"

/** Renders a conversation in a dialect. Thinking of models other than `model` is left out. */
export const inDialect = (
  messages: ReadonlyArray<Message>,
  dialect: DialectName,
  model: string
): ReadonlyArray<Message> => {
  const own = messages.flatMap((message) => ownThinking(message, model))
  return dialect === "tools" ? asTools(own) : asBlocks(own)
}

const ownThinking = (message: Message, model: string): ReadonlyArray<Message> => {
  const content = message.content.filter((part) => part.type !== "thinking" || modelNameIn(part.origin) === model)
  if (content.length === message.content.length) return [message]
  return content.length === 0 ? [] : [{ ...message, content }]
}

const modelNameIn = (origin: unknown): unknown => (isJsonObject(origin) ? origin["model"] : undefined)

// ---------------------------------------------------------------- to blocks

const asBlocks = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const names = new Map<string, string>()
  return messages.flatMap((message) => {
    if (message.role === "tool") return message.content.flatMap((part) => resultBlock(part, names))
    if (!message.content.some(({ type }) => type === "tool_use")) return [message]
    const content = message.content.map((part): Content => {
      if (part.type !== "tool_use") return part
      names.set(part.callId, part.name)
      return Contents.text(Blocks.render(Blocks.command(part.name, JSON.stringify(part.input))))
    })
    return [{ ...message, content: joined(content) }]
  })
}

const resultBlock = (part: Content, names: ReadonlyMap<string, string>): ReadonlyArray<Message> => {
  if (part.type !== "tool_result") return [{ role: "user", content: [part] }]
  const { callId, content, isError } = part
  const call = { callId, name: names.get(callId) ?? null, input: {}, kind: "skill", review: "accepted" } as const
  const text = content.map((inner) => (Contents.isMedia(inner) ? "" : Contents.toText(inner))).join("")
  return Calls.render("blocks", [
    isError === true ? Calls.failed(call, Calls.error("Error", text)) : Calls.succeeded(call, content)
  ])
}

/** Joins consecutive texts into one, separated by line breaks. */
const joined = (content: ReadonlyArray<Content>): ReadonlyArray<Content> => {
  const parts: Array<Content> = []
  for (const part of content) {
    const last = parts.at(-1)
    if (part.type === "text" && part.text === "") continue
    if (part.type !== "text" || last?.type !== "text") parts.push(part)
    else parts[parts.length - 1] = Contents.text(`${last.text}\n${part.text}`)
  }
  return parts
}

// ---------------------------------------------------------------- to native calls

const asTools = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const out: Array<Message> = []
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]
    if (message === undefined) continue
    const blocks = message.role === "assistant" ? blocksOf(message) : []
    const acts = blocks.filter(isAct)
    const results = acts.map((_, offset) => toolResultIn(messages[index + 1 + offset]))
    const isWhole = acts.every((act, at) => results[at]?.block.name === nameOf(act))
    // Calls without results, such as those dropped by a hook, stay text.
    if (acts.length === 0 || !isWhole) {
      out.push(message)
      continue
    }
    out.push(...turnAsTools(message, index, blocks, messages.slice(index + 1, index + 1 + acts.length)))
    index += acts.length
  }
  return out
}

/** Converts a reply and the results of its calls. Builtins have no native form, so they stay text. */
const turnAsTools = (
  message: Message,
  index: number,
  blocks: ReadonlyArray<Block>,
  results: ReadonlyArray<Message>
): ReadonlyArray<Message> => {
  const uses: Array<Content> = []
  const answers: Array<Message> = []
  const others: Array<Message> = []
  const kept: Array<Block> = []
  let at = 0
  for (const block of blocks) {
    const result = isAct(block) ? results[at++] : undefined
    const answer = toolResultIn(result)
    if (result === undefined || answer === undefined || isBuiltin(block)) {
      kept.push(block)
      if (result !== undefined) others.push(result)
      continue
    }
    const callId = `turn_${index}_${uses.length}`
    uses.push(Contents.toolUse(callId, nameOf(block) ?? "", inputOf(block)))
    answers.push({ role: "tool", content: [Contents.toolResult(callId, answer.content, { isError: answer.isError })] })
  }
  const text = [BlockParser.parse(textOf(message)).text, ...kept.map(shownBlock)]
    .map(Blocks.strip)
    .filter(Boolean)
    .join("\n")
  const content = message.content.filter(({ type }) => type !== "text")
  const texts = text === "" ? content : [...content, Contents.text(text)]
  return [{ ...message, content: [...texts, ...uses] }, ...answers, ...others]
}

const textOf = ({ content }: Message): string => content.map((part) => (part.type === "text" ? part.text : "")).join("")

const blocksOf = (message: Message): ReadonlyArray<Block> => BlockParser.parse(textOf(message)).blocks

/** Returns whether a block is a call: a command, or a block of a type that is not built in. */
const isAct = ({ name, type }: Block): boolean =>
  type === "command" ? name !== null : !Blocks.isCoreType(type) && type !== "media"

const isBuiltin = (block: Block): boolean => nameOf(block)?.startsWith("/") === true

const nameOf = ({ name, type }: Block): string | null =>
  type === "command" ? (name === null ? null : Blocks.strip(name)) : type

const shownBlock = (block: Block): string =>
  block.type === "plan" || block.type === "final" ? block.content : Blocks.render(block)

const inputOf = ({ content, type }: Block): JsonObject => {
  if (type !== "command") return { request: content }
  const read = parseJson(content, Bounds.jsonDepth)
  return Result.isSuccess(read) && isJsonObject(read.success) ? read.success : { input: content }
}

/** Returns the result block that a message of the kernel starts with. */
const toolResultIn = (message: Message | undefined) => {
  const [first, ...rest] = message?.role === "user" ? message.content : []
  if (first?.type !== "text") return undefined
  const { blocks, text } = BlockParser.parse(first.text)
  const [block] = blocks
  if (blocks.length !== 1 || block === undefined || !Blocks.isBlank(text)) return undefined
  if (block.type !== "result" && block.type !== "error") return undefined
  const content = [Contents.text(Blocks.unescape(block.content)), ...rest]
  return { block, content, isError: block.type === "error" }
}

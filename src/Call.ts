/**
 * One thing a model asked for, and what came of it.
 *
 * A call is made when a reply is read and keeps its id over crashes, resumes
 * and replays. Everything here is JSON-safe: calls and results are what the
 * journal holds.
 *
 * @since 0.1.0
 */

import type { Json } from "effect/Schema"
import * as Blocks from "./Block.ts"
import type { Content, MediaContent } from "./Content.ts"
import * as Contents from "./Content.ts"
import type { Message } from "./Message.ts"
import type { Expense } from "./Usage.ts"

/**
 * What answers a call: a local skill, an external protocol, a word of the kernel, or a child run.
 *
 * @category models
 * @since 0.1.0
 */
export type CallKind = "skill" | "protocol" | "builtin" | "task"

/**
 * A call as the model (or a rewriting hook) wrote it.
 *
 * `input` is an object of parameters for a skill and in native calls, the content
 * text of the block for a protocol or builtin, and `{ input, dependsOn }` for a
 * task. In the block dialect the id is `<turnId>.<index>` (DR-2), and that of a
 * task, and of its run, `<turnId>/<task, percent-encoded>`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Call {
  readonly callId: string
  /** As written, stripped; null when a command block has no name (BP-62). */
  readonly name: string | null
  readonly input: Json
  readonly kind: CallKind
  readonly review: "unreviewed" | "accepted"
  /** The name attribute of a protocol block, if it has one. */
  readonly blockName?: string
  /** The skill a protocol's call stood for when a policy judged it: the call runs only while it still stands for that. */
  readonly skill?: string
  /** Why the call cannot run, told to the model instead of running it. */
  readonly fault?: CallError
}

/**
 * Why a call gave no result. The text is for the model: type and sentence, never a stack.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallError {
  readonly name: string
  readonly message: string
  readonly recoverable: boolean
}

/**
 * What came of a call: exactly one of `output` and `error` (DR-2).
 *
 * @category models
 * @since 0.1.0
 */
export interface CallResult {
  readonly callId: string
  readonly name: string | null
  readonly kind: CallKind
  readonly input: Json
  readonly output?: ReadonlyArray<Content>
  readonly error?: CallError
  /** Answered without running: by a hook, a policy or a person (DR-11, DR-22). */
  readonly skipped?: boolean
  /** A whole message of a protocol's own, taken as it is (BP-77). */
  readonly message?: Message
  /** Facts for the host; never shown to the model (BP-75). */
  readonly metadata?: { readonly [key: string]: Json }
  readonly durationMs?: number
  /** What a child run used; taken over into the run's own counters (CP-15). */
  readonly spent?: Expense & { readonly turns: number }
}

/**
 * Makes the result of a call from its outcome.
 *
 * @category constructors
 * @since 0.1.0
 */
export const resultOf = (
  { callId, input, kind, name }: Call,
  outcome: Omit<CallResult, "callId" | "name" | "kind" | "input">
): CallResult => ({ callId, name, kind, input, ...outcome })

/**
 * Makes the failed result of a call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const failed = (
  call: Call,
  error: CallError,
  more?: Pick<CallResult, "skipped" | "durationMs" | "spent">
): CallResult => resultOf(call, { error, ...more })

/**
 * Makes the successful result of a call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const succeeded = (
  call: Call,
  output: ReadonlyArray<Content>,
  more?: Pick<CallResult, "message" | "metadata" | "durationMs" | "spent">
): CallResult => resultOf(call, { output, ...more })

/**
 * Makes the error a model is told.
 *
 * @category constructors
 * @since 0.1.0
 */
export const error = (name: string, message: string, recoverable = true): CallError => ({ name, message, recoverable })

/**
 * Puts results into the order of the batch; they arrive as they finish (DR-12).
 *
 * @category combinators
 * @since 0.1.0
 */
export const inOrder = (
  order: ReadonlyArray<string>,
  results: ReadonlyArray<CallResult>
): ReadonlyArray<CallResult> => {
  if (results.length < 2) return results
  const rank = new Map(order.map((id, index) => [id, index]))
  const rankOf = (result: CallResult) => rank.get(result.callId) ?? order.length
  return results.toSorted((a, b) => rankOf(a) - rankOf(b))
}

/**
 * The messages that tell a model what its calls gave, in source order, and what of its reply was passed over.
 *
 * In blocks, one user message per call (BP-72) and one for all tasks of a
 * workflow (BP-60): text from outside is escaped there, so that it cannot open,
 * close or forge a block (BP-76). A protocol's own message alone is taken as it is (BP-77).
 * In native calls, one tool message per call (AC-2), each medium in it after its id.
 *
 * @category combinators
 * @since 0.1.0
 */
export const render = (
  dialect: "blocks" | "tools",
  results: ReadonlyArray<CallResult>,
  note?: string | undefined
): ReadonlyArray<Message> => {
  const tasks = results.filter((result) => result.kind === "task")
  const messages: Array<Message> = tasks.length === 0 ? [] : [tasksMessage(tasks)]
  for (const result of results) {
    if (result.kind === "task") continue
    messages.push(dialect === "tools" ? toolMessage(result) : (result.message ?? blockMessage(result)))
  }
  if (note !== undefined) messages.push(corrective(note))
  return messages
}

/**
 * Answers to the native calls of a message that nothing else answers: calls of
 * a reply that was cut, or that a hook dropped. Providers refuse a conversation
 * in which a call has no result.
 *
 * @category combinators
 * @since 0.1.0
 */
export const unanswered = (said: Message, told: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const calls = said.content.filter((part) => part.type === "tool_use")
  if (calls.length === 0) return []
  const answered = new Set(
    told.flatMap((message) => message.content.flatMap((part) => (part.type === "tool_result" ? [part.callId] : [])))
  )
  return calls.flatMap(({ callId }): ReadonlyArray<Message> => {
    if (answered.has(callId)) return []
    answered.add(callId)
    return [{ role: "tool", content: [Contents.toolResult(callId, "This call was not run.", { isError: true })] }]
  })
}

/**
 * A message by which the kernel corrects the model (BP-41, BP-43).
 *
 * The text stands in its block as it is, since it may show blocks on purpose: escape what it quotes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const corrective = (text: string): Message => told(frame("error", null, text))

/**
 * The text of a result as one string: its parts in their text form, media left out, or `error: ` and what went wrong.
 *
 * @category getters
 * @since 0.1.0
 */
export const textOf = (result: CallResult): string =>
  result.error === undefined ? textOfParts(result.output ?? []) : `error: ${result.error.message}`

const textOfParts = (parts: ReadonlyArray<Content>): string => {
  if (parts.length === 1 && parts[0]?.type === "text") return parts[0].text
  let text = ""
  for (const part of parts) if (!Contents.isMedia(part)) text += Contents.toText(part)
  return text
}

/**
 * The media of a result as a model is shown them: before each one a block with its id (BP-72).
 *
 * @category getters
 * @since 0.1.0
 */
export const mediaOf = (output: ReadonlyArray<Content>): ReadonlyArray<Content> =>
  output.filter(Contents.isMedia).flatMap((part) => [Contents.text(mediaTag(part)), part])

const blockMessage = ({ error, kind, output = [], name }: CallResult): Message => {
  if (error !== undefined) return told(frame("error", name, Blocks.escape(error.message)))
  const text = textOfParts(output)
  // What explains shows whole blocks on purpose; half a block would close this one, or keep it open (BP-76).
  const body =
    kind === "builtin" && name !== "/tasks"
      ? text.replace(/<block[ >](?:(?!<\/?block)[^])*?<\/block>|<(?=\/?block)/g, (it) => (it[1] ? it : "&lt;"))
      : Blocks.escape(text)
  return told(frame("result", name, body), output)
}

const told = (text: string, output: ReadonlyArray<Content> = []): Message => ({
  role: "user",
  content: [Contents.text(text), ...mediaOf(output)]
})

const frame = (type: "result" | "error", name: string | null, body: string): string =>
  `<block type="${type}"${name === null ? "" : ` name="${Blocks.attribute(name)}"`}>${body}</block>`

const mediaTag = (part: MediaContent): string =>
  `<block type="media" id="${Blocks.attribute(part.fileId ?? "")}" kind="${part.type}" mime="${Blocks.attribute(part.mediaType ?? "application/octet-stream")}"/>`

/** A medium after its id, as `Message.text` writes it (BP-150): who calls natively is shown no block. */
const named = (part: Content): ReadonlyArray<Content> =>
  Contents.isMedia(part) ? [Contents.text(`[${part.type}:${part.fileId ?? ""}]`), part] : [part]

const toolMessage = ({ error, message, output = [], callId }: CallResult): Message => ({
  role: "tool",
  content: [
    Contents.toolResult(callId, error?.message ?? message?.content ?? output.flatMap(named), {
      isError: error !== undefined
    })
  ]
})

/** Written pair by pair: an object would reorder ids such as `10` and `2` (BP-58). */
const tasksMessage = (tasks: ReadonlyArray<CallResult>): Message => {
  const pairs = tasks.map((task) => `${JSON.stringify(task.name ?? "")}:${JSON.stringify(textOf(task))}`)
  return told(
    frame("result", "tasks", Blocks.escape(`{${pairs.join(",")}}`)),
    tasks.flatMap(({ output = [] }) => output)
  )
}

/**
 * A call made by a model, and its result.
 *
 * A call is created when a reply is read, and keeps its id over crashes, resumes and replays. Calls and results are
 * stored in the journal, so everything here is JSON.
 *
 * @since 0.1.0
 */

import * as Blocks from "./Block.ts"
import type { Content, MediaContent } from "./Content.ts"
import * as Contents from "./Content.ts"
import type { Message } from "./Message.ts"
import type * as Stored from "./internal/words/callSchema.ts"
import type { TypeOf } from "./kit/schemas.ts"

/**
 * The kind of target: a local skill, an external protocol, a builtin of the kernel, a child run for a task of a plan or
 * another agent, or the hand-over to another agent.
 *
 * @category models
 * @since 0.1.0
 */
export type CallKind = TypeOf<typeof Stored.callKind>

/**
 * The side effects of a call: none (`read`), the same however often it is made (`idempotent`), or new ones each time
 * (`write`, the default).
 *
 * @category models
 * @since 0.1.0
 */
export type Effects = TypeOf<typeof Stored.effects>

/**
 * A call as written by the model, or rewritten by a hook.
 *
 * `input` is an object of parameters for a skill, an agent and in native calls, the content text of the block for a
 * protocol or built-in, and `{ input, dependsOn }` for a task. In the block dialect the id is `<turnId>.<index>`; the id
 * of a task, and of its run, is `<turnId>/<task, percent-encoded>`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Call extends TypeOf<typeof Stored.call> {}

/**
 * The reason why a call has no result. The text is for the model: a type and a sentence, never a stack trace.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallError extends TypeOf<typeof Stored.callError> {}

/**
 * A call that the vendor of the model ran itself, such as a web search. It is never reviewed or run here.
 *
 * @category models
 * @since 0.1.0
 */
export interface HostedCall extends TypeOf<typeof Stored.hostedCall> {}

/**
 * A page that a hosted search found. Its text comes from outside.
 *
 * @category models
 * @since 0.1.0
 */
export interface HostedSource extends TypeOf<typeof Stored.hostedSource> {}

/**
 * The outcome of a call, without the call: `output`, or `error` and the media in `output` that the failure carries.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallOutcome extends TypeOf<typeof Stored.callOutcome> {}

/**
 * The result of a call: the call and its outcome.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallResult extends TypeOf<typeof Stored.callResult> {}

/**
 * Creates the result of a call from its outcome.
 *
 * @category constructors
 * @since 0.1.0
 */
export const resultOf = (
  { approval, callId, input, kind, name }: Pick<Call, "approval" | "callId" | "input" | "kind" | "name">,
  outcome: CallOutcome & Pick<CallResult, "spent">
): CallResult => ({ callId, name, kind, input, ...(approval === undefined ? {} : { approval }), ...outcome })

/**
 * Creates the failed result of a call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const failed = (
  call: Call,
  error: CallError,
  more?: Pick<CallResult, "output" | "skipped" | "durationMs" | "spent">
): CallResult => resultOf(call, { error, ...more })

/**
 * Creates the successful result of a call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const succeeded = (
  call: Call,
  output: ReadonlyArray<Content>,
  more?: Pick<CallResult, "message" | "metadata" | "value" | "durationMs" | "spent">
): CallResult => resultOf(call, { output, ...more })

/**
 * Creates an error for the model.
 *
 * @category constructors
 * @since 0.1.0
 */
export const error = (name: string, message: string, recoverable = true): CallError => ({ name, message, recoverable })

/**
 * Returns the id of a task's call, which is also the id of its run. It differs from the ids of all other tasks, turns
 * and workflows.
 *
 * @category getters
 * @since 0.1.0
 */
export const taskRunId = (turnId: string, task: string): string => `${turnId}/${encoded(task)}`

/**
 * Returns the id of the run that a call starts as a child of its own run, given the id of its turn. Undefined for calls
 * that start none.
 *
 * @category getters
 * @since 0.1.0
 */
export const childRunId = (turnId: string, { callId, kind }: Pick<Call, "callId" | "kind">): string | undefined => {
  if (kind === "task") return callId
  if (kind !== "agent") return undefined
  return taskRunId(turnId, callId.startsWith(`${turnId}.`) ? callId.slice(turnId.length + 1) : callId)
}

/** Percent-encodes a text. A lone surrogate, which JSON can contain, is written as `%ud800`. */
const encoded = (text: string): string =>
  text.isWellFormed()
    ? encodeURIComponent(text)
    : Array.from(text, (character) =>
        character.isWellFormed() ? encodeURIComponent(character) : `%u${character.charCodeAt(0).toString(16)}`
      ).join("")

/**
 * Returns the short id by which a model names a background call: that of its child run, without the run that called it.
 *
 * @category getters
 * @since 0.1.0
 */
export const backgroundId = ({ callId }: Pick<Call, "callId">): string => callId.split(":").slice(-1).join("")

/**
 * Sorts results, which arrive as calls finish, into the order of the batch.
 *
 * @category converting
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
 * Returns the messages that show results to the model, in source order. `note` adds a corrective message.
 *
 * In the block dialect there is one user message per call, and one for all tasks of a workflow. Text from outside is
 * escaped, so that it cannot open, close or forge a block; only a protocol's own message is shown as it is. With native
 * calls there is one tool message per call, with each medium preceded by its id.
 *
 * @category rendering
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
 * Returns the message that shows the result of a background call to the model, in both dialects.
 *
 * @category rendering
 * @since 0.1.0
 */
export const arrived = (result: CallResult): Message => {
  const { error, name, output = [] } = result
  const type = error === undefined ? "result" : "error"
  const head = `<block type="${type}" name="${Blocks.attribute(name ?? "")}" id="${Blocks.attribute(backgroundId(result))}">`
  return userMessage(`${head}${Blocks.escape(error?.message ?? textOfParts(output))}</block>`, output)
}

/**
 * Returns results for the native calls of a message that have none: calls of a reply that was cut, or calls dropped by
 * a hook. Providers reject conversations in which a call has no result.
 *
 * @category converting
 * @since 0.1.0
 */
export const unanswered = (reply: Message, answers: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const calls = reply.content.filter((part) => part.type === "tool_use")
  if (calls.every(({ callId }, index) => answersOnly(answers[index], callId))) return []
  const answered = new Set(
    answers.flatMap((message) => message.content.flatMap((part) => (part.type === "tool_result" ? [part.callId] : [])))
  )
  return calls.flatMap(({ callId }): ReadonlyArray<Message> => {
    if (answered.has(callId)) return []
    answered.add(callId)
    return [{ role: "tool", content: [Contents.toolResult(callId, "This call was not run.", { isError: true })] }]
  })
}

/** Returns whether a message is the result of a call and nothing else. */
const answersOnly = (message: Message | undefined, callId: string): boolean => {
  const [part, ...more] = message?.content ?? []
  return part?.type === "tool_result" && part.callId === callId && more.length === 0
}

/**
 * Creates a message that corrects the model.
 *
 * The text is not escaped, since it may show blocks on purpose: escape what it quotes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const corrective = (text: string): Message => userMessage(frame("error", null, text))

/**
 * Returns a result as one text: the text form of its parts without media, or `error: ` and the message.
 *
 * @category getters
 * @since 0.1.0
 */
export const textOf = ({ error, output = [] }: CallOutcome): string =>
  error === undefined ? textOfParts(output) : `error: ${error.message}`

const textOfParts = (parts: ReadonlyArray<Content>): string => {
  if (parts.length === 1 && parts[0]?.type === "text") return parts[0].text
  let text = ""
  for (const part of parts) if (!Contents.isMedia(part)) text += Contents.toText(part)
  return text
}

/**
 * Returns the media of a result as the model sees them, each preceded by a block with its id.
 *
 * @category getters
 * @since 0.1.0
 */
export const mediaOf = (output: ReadonlyArray<Content>): ReadonlyArray<Content> =>
  output.filter(Contents.isMedia).flatMap((part) => [Contents.text(mediaTag(part)), part])

/** Returns why a person approved a call, for the model. Empty without a reason. */
const approvalText = ({ approval, error }: CallResult): string =>
  approval === undefined || error !== undefined
    ? ""
    : `approved${approval.by === undefined ? "" : ` by ${approval.by}`}: ${approval.reason}`

const blockMessage = (result: CallResult): Message => {
  const { error, kind, output = [], name } = result
  if (error !== undefined) return userMessage(frame("error", name, Blocks.escape(error.message)), output)
  const text = textOfParts(output)
  // Explanations show whole blocks on purpose. An incomplete block is escaped, since it would close this one or leave
  // it open.
  const body =
    kind === "builtin" && name !== "/tasks"
      ? text.replace(/<block[ >](?:(?!<\/?block)[^])*?<\/block>|<(?=\/?block)/g, (it) => (it[1] ? it : "&lt;"))
      : Blocks.escape(text)
  const approved = approvalText(result)
  return userMessage(frame("result", name, approved === "" ? body : `${body}\n(${Blocks.escape(approved)})`), output)
}

const userMessage = (text: string, output: ReadonlyArray<Content> = []): Message => ({
  role: "user",
  content: [Contents.text(text), ...mediaOf(output)]
})

const frame = (type: "result" | "error", name: string | null, body: string): string =>
  `<block type="${type}"${name === null ? "" : ` name="${Blocks.attribute(name)}"`}>${body}</block>`

const mediaTag = (part: MediaContent): string =>
  `<block type="media" id="${Blocks.attribute(part.fileId ?? "")}" kind="${part.type}" mime="${Blocks.attribute(part.mediaType ?? "application/octet-stream")}"/>`

/** Puts the id of a medium before it, in the form of `Message.text`, since the native dialect has no blocks. */
const withId = (part: Content): ReadonlyArray<Content> =>
  Contents.isMedia(part) ? [Contents.text(`[${part.type}:${part.fileId ?? ""}]`), part] : [part]

const errorParts = ({ message }: CallError, media: ReadonlyArray<Content>): string | ReadonlyArray<Content> =>
  media.length === 0 ? message : [Contents.text(message), ...media]

const toolMessage = (result: CallResult): Message => {
  const { callId, error, message, output = [] } = result
  const approved = approvalText(result)
  const shown = [...output.flatMap(withId), ...(approved === "" ? [] : [Contents.text(`(${approved})`)])]
  return {
    role: "tool",
    content: [
      Contents.toolResult(callId, error === undefined ? (message?.content ?? shown) : errorParts(error, shown), {
        isError: error !== undefined
      })
    ]
  }
}

/** Writes the pairs one by one, because an object would reorder ids such as `10` and `2`. */
const tasksMessage = (tasks: ReadonlyArray<CallResult>): Message => {
  const pairs = tasks.map((task) => `${JSON.stringify(task.name ?? "")}:${JSON.stringify(textOf(task))}`)
  return userMessage(
    frame("result", "tasks", Blocks.escape(`{${pairs.join(",")}}`)),
    tasks.flatMap(({ output = [] }) => output)
  )
}

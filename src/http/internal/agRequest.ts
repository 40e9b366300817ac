/** Decodes requests of AG-UI clients: the new message, the answers to interrupts, and the earlier messages. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import * as Bounds from "../../kit/bounds.ts"
import { isEmpty, isJsonObject, type Json, parseJson, plain } from "../../kit/json.ts"
import * as Messages from "../../Message.ts"
import { type HttpProblem, Invalid } from "../HttpProblem.ts"
import type { CallerRuns } from "../ServedRuns.ts"
import { askedBy } from "./agEvent.ts"
import * as Conversations from "./conversations.ts"
import { fileOf } from "./uiRequest.ts"

const Message = Schema.StructWithRest(Schema.Struct({ id: Schema.String, role: Schema.String }), [
  Schema.Record(Schema.String, Schema.Json)
])

type Message = typeof Message.Type

const Resume = Schema.Struct({
  interruptId: Schema.String,
  status: Schema.Literals(["resolved", "cancelled"]),
  payload: Schema.optionalKey(Schema.Json)
})

/** The body of a request. */
export const AgRequest = Schema.Struct({
  threadId: Conversations.Id,
  runId: Conversations.Id,
  messages: Schema.Array(Message),
  /** The state of the page, which is the context of a new run where the server accepts one. */
  state: Schema.optionalKey(Schema.Json),
  /** The tools that the page runs itself. The agent has those that are its external skills. */
  tools: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.Struct({ name: Schema.String })))),
  resume: Schema.optionalKey(Schema.NullOr(Schema.Array(Resume))),
  forwardedProps: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        agent: Schema.optionalKey(Schema.String),
        /** Whether the run continues or is cancelled when the page leaves. Default: `continue`. */
        onLeave: Schema.optionalKey(Schema.Literals(["continue", "cancel"]))
      })
    )
  )
})

/** The body of a request. */
export type AgRequest = typeof AgRequest.Type

/** The answering run. A page that opens its thread again lacks the messages before it. */
export interface Answering extends Conversations.Answering {
  readonly isReopened: boolean
}

/**
 * Answers the request of a page: a new message, the answers to interrupts, or without either the last run of the thread.
 * `agent` answers unless the page names one.
 */
export const answer = (
  runs: CallerRuns,
  agent: string | undefined,
  given: AgRequest
): Effect.Effect<Answering, HttpProblem> => {
  // The work of called agents is not part of the conversation.
  const messages = given.messages.filter(({ subagentRunId = null }) => subagentRunId === null)
  const request = { ...given, messages }
  const { resume } = request
  const last = messages.at(-1)
  if (resume !== undefined && resume !== null && resume.length > 0) return known(decide(runs, request, resume))
  if (last?.role === "tool") return known(give(runs, request))
  return last?.role === "user" ? known(start(runs, agent, request, last)) : reopen(runs, request)
}

const known = <E>(answering: Effect.Effect<Conversations.Answering, E>): Effect.Effect<Answering, E> =>
  Effect.map(answering, (answering) => ({ ...answering, isReopened: false }))

const reopen = (runs: CallerRuns, { threadId }: AgRequest): Effect.Effect<Answering, HttpProblem> =>
  Effect.flatMap(Conversations.last(runs, threadId), (head) =>
    head === undefined
      ? Effect.fail(new Invalid({ detail: "the thread is new, and the last message is not from the user" }))
      : Effect.succeed({ runId: head.runId, after: 0, isReopened: true })
  )

const start = Effect.fnUntraced(function* (
  runs: CallerRuns,
  agent: string | undefined,
  { forwardedProps, messages, runId, state, threadId }: AgRequest,
  last: Message
): Effect.fn.Return<Conversations.Answering, HttpProblem> {
  const [input, history] = yield* Effect.all([contentOf(last), historyOf(runs, threadId, messages.slice(0, -1))])
  // Every page sends a state, usually an empty one. Most servers leave it to the page.
  const context = runs.takesContext && isJsonObject(state) && !isEmpty(state) ? state : undefined
  const name = Conversations.nameOf(threadId, runId)
  return yield* Conversations.begin(runs, name, { agent: forwardedProps?.agent ?? agent, context, input, history })
})

const decide = Effect.fnUntraced(function* (
  runs: CallerRuns,
  { threadId }: AgRequest,
  resume: ReadonlyArray<typeof Resume.Type>
): Effect.fn.Return<Conversations.Answering, HttpProblem> {
  const [first = "", ...others] = new Set(resume.map(({ interruptId }) => askedBy(interruptId).runId))
  if (others.length > 0) return yield* new Invalid({ detail: "the interrupts belong to more than one run" })
  const decisions = yield* Effect.forEach(resume, decisionOf)
  return yield* Conversations.decide(runs, threadId, first, decisions)
})

/** Gives the results of the tools that the page ran: its last messages. */
const give = Effect.fnUntraced(function* (
  runs: CallerRuns,
  { messages, threadId }: AgRequest
): Effect.fn.Return<Conversations.Answering, HttpProblem> {
  const head = yield* Conversations.last(runs, threadId)
  if (head === undefined) return yield* new Invalid({ detail: "no run of the thread waits for a result" })
  const first = messages.findLastIndex(({ role }) => role !== "tool") + 1
  const results = messages
    .slice(first)
    .flatMap(({ content, error, toolCallId: callId }): Array<Conversations.Decision> => {
      if (typeof callId !== "string") return []
      return typeof error === "string" ? [{ callId, error }] : [{ callId, output: valueOf(content) }]
    })
  return yield* Conversations.decide(runs, threadId, head.runId, results)
})

/** Returns the value in the content of a tool message, which is JSON or a text. */
const valueOf = (content: Json | undefined): Json => {
  if (typeof content !== "string") return content ?? null
  const value = parseJson(content, Bounds.jsonDepth)
  return Result.isSuccess(value) ? plain(value.success) : content
}

const Payload = Schema.Struct({
  approved: Schema.Boolean,
  reason: Schema.optionalKey(Schema.String),
  input: Schema.optionalKey(Schema.Json),
  values: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  dismissed: Schema.optionalKey(Schema.Boolean)
})

/** The result of an external call, or its failure. */
const External = [Schema.Struct({ output: Schema.Json }), Schema.Struct({ error: Schema.String })] as const

const decisionOf = ({
  interruptId,
  payload,
  status
}: typeof Resume.Type): Effect.Effect<Conversations.Decision | Conversations.PlainAnswer, HttpProblem> => {
  const { callId } = askedBy(interruptId)
  if (status === "resolved" && typeof payload === "string") return Effect.succeed({ callId, text: payload })
  if (status === "cancelled" || callId === "") return Effect.succeed({ callId, approved: false })
  return Schema.decodeUnknownEffect(Schema.Union([Payload, ...External]))(payload).pipe(
    Effect.map((decided) => ({ callId, ...decided })),
    Effect.mapError(
      () =>
        new Invalid({
          detail: "the payload of an answer is { approved, reason?, input?, values? }, { output }, { error } or a text"
        })
    )
  )
}

const Source = Schema.Union([
  Schema.Struct({ type: Schema.Literal("data"), value: Schema.String, mimeType: Schema.String }),
  Schema.Struct({
    type: Schema.Literal("url"),
    value: Schema.String,
    mimeType: Schema.optionalKey(Schema.String)
  })
])

const Part = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literals(["image", "audio", "video", "document"]), source: Source })
])

/** The content of a message. */
const Parts = Schema.Union([Schema.String, Schema.Array(Part)])

const contentOf = (message: Message): Effect.Effect<ReadonlyArray<Content>, HttpProblem> =>
  Schema.decodeUnknownEffect(Parts)(message["content"]).pipe(
    Effect.mapError(({ message }) => new Invalid({ detail: `the content of the message: ${message}`.slice(0, 1_000) })),
    Effect.flatMap((parts) =>
      typeof parts === "string"
        ? Effect.succeed([Contents.text(parts)])
        : Effect.forEach(parts, (part) =>
            part.type === "text" ? Effect.succeed<Content>(Contents.text(part.text)) : mediumOf(part.type, part.source)
          )
    )
  )

const mediumOf = (kind: string, source: typeof Source.Type): Effect.Effect<Content, HttpProblem> =>
  source.type === "data"
    ? fileOf(`data:;base64,${source.value}`, source.mimeType)
    : fileOf(source.value, source.mimeType ?? (kind === "document" ? "application/pdf" : `${kind}/*`))

/** Returns the earlier messages from the run that answered last. */
const historyOf = Effect.fnUntraced(function* (
  runs: CallerRuns,
  threadId: string,
  before: ReadonlyArray<Message>
): Effect.fn.Return<ReadonlyArray<Messages.Message>, HttpProblem> {
  const runIdOf = ({ id }: Message) => id.slice(0, Math.max(0, id.lastIndexOf(":")))
  const at = before.findLastIndex(({ role }) => role === "assistant")
  const last = before[at]
  if (last === undefined || !Conversations.isOf(runs, threadId, runIdOf(last))) return textOf(before)
  const held = yield* Conversations.messagesOf(runs, runIdOf(last))
  return held === undefined ? textOf(before) : [...held, ...textOf(before.slice(at + 1))]
})

/** Returns messages as text, for a conversation whose runs are not stored here. */
const textOf = (messages: ReadonlyArray<Message>): ReadonlyArray<Messages.Message> =>
  messages.flatMap(({ content, role }) => {
    if (typeof content !== "string" || content === "") return []
    if (role === "user") return [Messages.user(content)]
    return role === "assistant" ? [Messages.assistant(content)] : []
  })

/**
 * Runs of conversations: each message of a user is one run, whose name begins with the id of its conversation.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import * as ChatHistory from "../../ChatHistory.ts"
import { sha256 } from "../../kit/sha256.ts"
import * as EmbeddedMedia from "../../store-kit/EmbeddedMedia.ts"
import type { Message } from "../../Message.ts"
import { Conflict, type HttpProblem, Invalid, NotFound } from "../HttpProblem.ts"
import type { Head, Start } from "../RunBodies.ts"
import type { CallerRuns } from "../ServedRuns.ts"
import type { Answers } from "../RunBodies.ts"
import { decisionOf } from "./plainAnswer.ts"

/** The answering run, and the revision up to which the page has it. */
export interface Answering {
  readonly runId: string
  readonly after: number
}

/** A decision about a call, or the result of an external one. */
export type Decision = Answers["answers"][number]

/**
 * An id that a client chose, in any characters. It is escaped in the names of runs, and the client sees its own.
 */
export const Id = Schema.String.check(
  Schema.isNonEmpty(),
  Schema.makeFilter((id) => (id.isWellFormed() && escaped(id).length <= longest) || "the id is too long")
)

// A run id holds two of them, and the id of its caller.
const longest = 640

/** Returns an id without characters that separate the parts of a run id or that a store, path or list could misread. */
const escaped = (id: string): string =>
  encodeURIComponent(id.toWellFormed())
    .replace(/[.!~*'()]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%", "=")

/** Returns the id that was escaped. An id that this server did not make stays unchanged. */
const unescaped = (text: string): string =>
  Option.getOrElse(Option.liftThrowable(decodeURIComponent)(text.replaceAll("=", "%")), () => text)

/** Returns the name of the run of a message in a conversation. Without a message, the beginning of all such names. */
export const nameOf = (id: string, message = ""): string => `${escaped(id)}.${escaped(message)}`

/** Returns the ids of the conversation and of the message in the name of a run. */
export const idsIn = (name: string): { readonly conversation: string; readonly message: string } => {
  const [conversation = "", message = ""] = name.split(".")
  return { conversation: unescaped(conversation), message: unescaped(message) }
}

/** Returns the default address of a stored medium: that of `HttpKernel` at `/runs`. */
export const mediaUrl = (runId: string, mediaId: string): string =>
  `/runs/${encodeURIComponent(runId)}/media/${mediaId}`

/** Returns true if a run belongs to a conversation of the caller. */
export const isOf = (runs: CallerRuns, id: string, runId: string): boolean =>
  runs.idOf(runId).startsWith(runs.idOf(nameOf(id)))

/** The message that starts a run. */
type Beginning = Pick<Start, "history"> & {
  readonly input: ReadonlyArray<Content>
  readonly agent?: string | undefined
  readonly context?: Start["context"] | undefined
}

/**
 * Starts a run, or returns the one that was already started with the same message. Another text under a known name is
 * another message, as when a user edits one, and has a run of its own.
 */
export const begin = Effect.fnUntraced(function* (
  runs: CallerRuns,
  name: string,
  beginning: Beginning
): Effect.fn.Return<Answering, HttpProblem> {
  const started = yield* startUnlessKnown(runs, name, beginning)
  if (started.isNew || textOf(yield* inputOf(runs, started.runId)) === textOf(beginning.input)) {
    return { runId: started.runId, after: 0 }
  }
  const digest = yield* sha256(textOf(beginning.input))
  const edited = yield* startUnlessKnown(runs, `${name}.${digest.slice(0, 16)}`, beginning)
  return { runId: edited.runId, after: 0 }
})

const startUnlessKnown = (
  runs: CallerRuns,
  name: string,
  { agent, context, ...request }: Beginning
): Effect.Effect<{ readonly runId: string; readonly isNew: boolean }, HttpProblem> => {
  const runId = runs.idOf(name)
  const begun = runs.start({
    ...request,
    runId,
    ...(agent === undefined ? {} : { agent }),
    ...(context === undefined ? {} : { context })
  })
  return Effect.as(begun, { runId, isNew: true }).pipe(
    Effect.catchIf(
      (problem) => problem._tag === "Conflict" && problem.reason === "exists",
      () => Effect.succeed({ runId, isNew: false })
    )
  )
}

/** Returns the contents that a run was started with. */
const inputOf = (runs: CallerRuns, runId: string): Effect.Effect<ReadonlyArray<Content>, HttpProblem> =>
  Effect.map(runs.state(runId), ({ input }) => input.at(-1)?.content ?? [])

/** Returns the text of a message, and the number of its media, whose bytes are not compared. */
const textOf = (contents: ReadonlyArray<Content>): string =>
  JSON.stringify(contents.map((content) => (Contents.isMedia(content) ? content.type : Contents.toText(content))))

/** An answer as plain text. */
export interface PlainAnswer {
  readonly callId: string
  readonly text: string
}

/** Records those decisions for which a run of the conversation still waits. */
export const decide = Effect.fnUntraced(function* (
  runs: CallerRuns,
  id: string,
  runId: string,
  decisions: ReadonlyArray<Decision | PlainAnswer>
): Effect.fn.Return<Answering, HttpProblem> {
  if (!isOf(runs, id, runId)) return yield* new Conflict({ reason: "moved", id: runId })
  const { revision } = yield* runs.head(runId)
  const open = new Map((yield* runs.questions(runId)).map((question) => [question.callId, question]))
  const answers: Array<Decision> = []
  for (const decision of decisions) {
    const question = open.get(decision.callId)
    if (question === undefined) continue
    const answer = "text" in decision ? decisionOf(question, decision.text) : decision
    if (answer === undefined) return yield* new Invalid({ detail: "the text of the answer is neither yes nor no" })
    answers.push(answer)
  }
  if (answers.length > 0) yield* runs.answer(runId, { answers })
  return { runId, after: revision }
})

/** Returns the last run of a conversation. */
export const last = (runs: CallerRuns, id: string): Effect.Effect<Head | undefined, HttpProblem> =>
  Effect.map(runs.list({ limit: 1, prefix: nameOf(id) }), ({ runs: [head] }) => head)

/** Cancels the last run of a conversation. */
export const stop = (runs: CallerRuns, id: string): Effect.Effect<void, HttpProblem> =>
  Effect.flatMap(last(runs, id), (head) =>
    head === undefined
      ? Effect.fail(new NotFound({ what: "run", id }))
      : Effect.asVoid(runs.cancel(head.runId, "stopped"))
  )

/** Cancels a run whose page has left. */
export const leave = (runs: CallerRuns, runId: string, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> =>
  Exit.hasInterrupts(exit) ? Effect.ignore(runs.cancel(runId, "the page left")) : Effect.void

/**
 * Returns the messages of a run and of the conversation before it, with their media: also those of a turn that was
 * interrupted, whose calls get a result that says so. Returns none for a run that cannot be read.
 */
export const messagesOf = Effect.fnUntraced(function* (
  runs: CallerRuns,
  runId: string
): Effect.fn.Return<ReadonlyArray<Message> | undefined, HttpProblem, Scope.Scope> {
  const found = yield* Effect.option(runs.state(runId))
  if (found._tag === "None") return undefined
  const state = found.value
  const messages = ChatHistory.ofState(state)
  const store = yield* runs.mediaOf(state.rootRunId)
  return yield* Effect.forEach(messages, (message) => EmbeddedMedia.ofMessage(message, store))
}, Effect.scoped)

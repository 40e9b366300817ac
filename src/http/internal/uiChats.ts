/**
 * Conversations of pages as runs: one run for each message of a user.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { whole } from "../../internal/chat/chatMedia.ts"
import { randomId } from "../../internal/base/ids.ts"
import type { Message } from "../../Message.ts"
import * as RunState from "../../RunState.ts"
import { Conflict, type HttpProblem, NotFound } from "../HttpProblem.ts"
import type { Head } from "../RunBodies.ts"
import type { CallerRuns } from "../ServedRuns.ts"
import { askedIn, type Decision, inputOf, textOf, type UiMessage, type UiRequest } from "./uiRequest.ts"

/** The run that answers, and the revision up to which the page has it. */
export interface Answer {
  readonly runId: string
  readonly after: number
}

/** A request, with the agent of the route unless it names one. */
export type ChatRequest = Omit<UiRequest, "agent"> & { readonly agent?: string | undefined }

/** Answers what a page asks. */
export const answer = Effect.fnUntraced(function* (
  runs: CallerRuns,
  request: ChatRequest
): Effect.fn.Return<Answer, HttpProblem> {
  const asked = yield* askedIn(request.messages)
  return yield* asked._tag === "Decisions"
    ? decide(runs, request.id, asked.runId, asked.decisions)
    : start(runs, request, asked.message, asked.before)
})

/** Starts the run of a message. A message that was sent before is answered by the run it began. */
const start = Effect.fnUntraced(function* (
  runs: CallerRuns,
  { agent, context, id, trigger }: ChatRequest,
  message: UiMessage,
  before: ReadonlyArray<UiMessage>
): Effect.fn.Return<Answer, HttpProblem> {
  const again = trigger === "regenerate-message" ? `.${randomId(yield* Random.Random)}` : ""
  const runId = runs.idOf(`${id}.${message.id}${again}`)
  const [input, history] = yield* Effect.all([inputOf(message), historyOf(runs, id, before)])
  const begun = runs.start({
    runId,
    input,
    history,
    ...(agent === undefined ? {} : { agent }),
    ...(context === undefined ? {} : { context })
  })
  yield* Effect.catchIf(
    begun,
    (problem) => problem._tag === "Conflict" && problem.reason === "exists",
    () => Effect.succeed(runId)
  )
  return { runId, after: 0 }
})

/** Records the decisions that the run still waits for. */
const decide = Effect.fnUntraced(function* (
  runs: CallerRuns,
  chatId: string,
  runId: string,
  decisions: ReadonlyArray<Decision>
): Effect.fn.Return<Answer, HttpProblem> {
  if (!isOf(runs, chatId, runId)) return yield* new Conflict({ reason: "moved", id: runId })
  const { revision } = yield* runs.head(runId)
  const open = new Set((yield* runs.questions(runId)).map(({ callId }) => callId))
  const answers = decisions.filter(({ callId }) => open.has(callId))
  if (answers.length > 0) yield* runs.answer(runId, { answers })
  return { runId, after: revision }
})

/** The last run of a chat, among the newest of its caller. */
export const last = (runs: CallerRuns, chatId: string): Effect.Effect<Head | undefined, HttpProblem> =>
  Effect.map(runs.list({ limit: 100 }), (page) => page.runs.find(({ runId }) => isOf(runs, chatId, runId)))

/** Cancels the last run of a chat. */
export const stop = (runs: CallerRuns, chatId: string): Effect.Effect<void, HttpProblem> =>
  Effect.flatMap(last(runs, chatId), (head) =>
    head === undefined ? Effect.fail(new NotFound({ what: "run", id: chatId })) : runs.cancel(head.runId, "stopped")
  )

const isOf = (runs: CallerRuns, chatId: string, runId: string): boolean =>
  runs.idOf(runId).startsWith(runs.idOf(`${chatId}.`))

/** The conversation before a message, as the run that answered last has it. */
const historyOf = Effect.fnUntraced(function* (
  runs: CallerRuns,
  chatId: string,
  before: ReadonlyArray<UiMessage>
): Effect.fn.Return<ReadonlyArray<Message>, HttpProblem, Scope.Scope> {
  const at = before.findLastIndex(({ role }) => role === "assistant")
  const last = before[at]
  if (last === undefined || !isOf(runs, chatId, last.id)) return textOf(before)
  const found = yield* Effect.option(runs.state(last.id))
  if (found._tag === "None") return textOf(before)
  const state = found.value
  const messages = state.input.concat(state.turns.flatMap(RunState.messagesOf))
  const store = yield* runs.mediaOf(state.rootRunId)
  const held = yield* Effect.forEach(messages, (message) => whole(message, store))
  return [...held, ...textOf(before.slice(at + 1))]
}, Effect.scoped)

/** Cancels a run whose page has left. */
export const leave = (runs: CallerRuns, runId: string, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> =>
  Exit.hasInterrupts(exit) ? Effect.ignore(runs.cancel(runId, "the page left")) : Effect.void

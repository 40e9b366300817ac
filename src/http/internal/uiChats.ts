/** Runs the conversations of pages: one run for each message of a user. */

import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { randomId } from "../../kit/randomId.ts"
import type { Message } from "../../Message.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import type { CallerRuns } from "../ServedRuns.ts"
import * as Conversations from "./conversations.ts"
import { askedIn, inputOf, textOf, type UiMessage, type UiRequest } from "./uiRequest.ts"

/** A request, with the agent of the route unless it names one. */
type ChatRequest = Omit<UiRequest, "agent"> & { readonly agent?: string | undefined }

/** Answers the request of a page. */
export const answer = Effect.fnUntraced(function* (
  runs: CallerRuns,
  request: ChatRequest
): Effect.fn.Return<Conversations.Answering, HttpProblem> {
  const asked = yield* askedIn(request)
  return yield* asked._tag === "Decisions"
    ? Conversations.decide(runs, request.id, asked.runId, asked.decisions)
    : start(runs, request, asked.message, asked.before)
})

/** Starts the run of a message. A message that is sent again is answered by its first run. */
const start = Effect.fnUntraced(function* (
  runs: CallerRuns,
  { agent, context, id, trigger }: ChatRequest,
  message: UiMessage,
  before: ReadonlyArray<UiMessage>
): Effect.fn.Return<Conversations.Answering, HttpProblem> {
  const again = trigger === "regenerate-message" ? `.${randomId(yield* Random.Random)}` : ""
  const [input, history] = yield* Effect.all([inputOf(message), historyOf(runs, id, before)])
  const name = Conversations.nameOf(id, message.id) + again
  return yield* Conversations.begin(runs, name, { agent, context, input, history })
})

/** Returns the earlier messages from the run that answered last. */
const historyOf = Effect.fnUntraced(function* (
  runs: CallerRuns,
  chatId: string,
  before: ReadonlyArray<UiMessage>
): Effect.fn.Return<ReadonlyArray<Message>, HttpProblem> {
  const at = before.findLastIndex(({ role }) => role === "assistant")
  const last = before[at]
  if (last === undefined || !Conversations.isOf(runs, chatId, last.id)) return textOf(before)
  const held = yield* Conversations.messagesOf(runs, last.id)
  return held === undefined ? textOf(before) : [...held, ...textOf(before.slice(at + 1))]
})

/**
 * The transitions of one turn, from its start until it becomes part of the conversation.
 */

import type { Call, Effects } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Message } from "../../Message.ts"
import type { Question, CallChange, Turn } from "../../RunModel.ts"

/** A shared empty list. */
export const none: ReadonlyArray<never> = []

/** Returns a turn that has just started. */
export const openTurn = (
  turnId: string,
  turn: number,
  startedAt: number,
  steering: ReadonlyArray<Message> | undefined
): Turn => {
  const opened: Turn = {
    turnId,
    turn,
    attempt: 0,
    startedAt,
    dialect: "blocks",
    tools: none,
    usage: null,
    pending: none,
    inFlight: none,
    completed: none,
    order: none
  }
  return steering === undefined ? opened : { ...opened, steering }
}

/** Removes the data for preparing a turn again, which a decided turn does not need. */
export const decided = (turn: Turn): Turn => {
  if (turn.before === undefined) return turn
  const { before: _, ...rest } = turn
  return rest
}

/** Returns the ids of calls, in their order. */
export const idsOf = (calls: ReadonlyArray<Call>): ReadonlyArray<string> =>
  calls.length === 0 ? none : calls.map((call) => call.callId)

/** Marks a call as reviewed: accepted as it is, rewritten, or skipped with a result. */
export const review = (turn: Turn, callId: string, change: CallChange | undefined): Turn => {
  const { completed, pending } = turn
  const at = indexOf(pending, callId)
  if (change?.type === "skip") {
    return { ...turn, pending: without(pending, at), completed: completed.concat(change.result) }
  }
  const call = change === undefined ? pending[at] : change.call
  if (call === undefined || at === -1) return turn
  const next = pending.slice()
  next[at] = { ...call, review: "accepted" }
  return { ...turn, pending: next }
}

/** Returns the first call that has not been accepted. */
export const unreviewed = (calls: ReadonlyArray<Call>): Call | undefined =>
  calls.find((call) => call.review !== "accepted")

/** Returns the questions without an answer. */
export const unanswered = (questions: ReadonlyArray<Question>): ReadonlyArray<Question> =>
  questions.filter((question) => question.answer === undefined)

/** Moves calls from pending to in flight. */
export const launch = (turn: Turn, ids: ReadonlyArray<string>, effects?: Effects): Turn => {
  let { pending } = turn
  const launched: Array<Call> = []
  for (const id of ids) {
    const at = indexOf(pending, id)
    const call = pending[at]
    if (call === undefined) continue
    pending = without(pending, at)
    launched.push(effects === undefined ? call : { ...call, effects })
  }
  return { ...turn, pending, inFlight: turn.inFlight.concat(launched) }
}

/** Moves calls from in flight back to pending, before those that still wait. */
export const giveBack = (turn: Turn, ids: ReadonlyArray<string>): Turn => {
  const given = new Set(ids)
  return {
    ...turn,
    pending: turn.inFlight.filter(({ callId }) => given.has(callId)).concat(turn.pending),
    inFlight: turn.inFlight.filter(({ callId }) => !given.has(callId))
  }
}

// A plan may have thousands of calls, and each moves three times. Copying a list whole is faster than `filter` or
// `with`.
/** Returns the index of a call, or -1. */
export const indexOf = (calls: ReadonlyArray<Call>, callId: string): number => {
  const last = calls.length - 1
  // Tasks usually start in the order of their plan or in reverse.
  if (calls[last]?.callId === callId) return last
  for (let at = 0; at < last; at++) if (calls[at]?.callId === callId) return at
  return -1
}

/** Returns the calls without the one at an index; all of them for -1. */
export const without = (calls: ReadonlyArray<Call>, at: number): ReadonlyArray<Call> =>
  at === -1
    ? calls
    : calls.length === 1
      ? none
      : at === 0
        ? calls.slice(1)
        : calls.slice(0, at).concat(calls.slice(at + 1))

/**
 * Returns the messages that a turn adds to the conversation: the reply, a result for each of its calls, and the
 * kernel's note.
 */
export const messagesOf = (turn: Turn): ReadonlyArray<Message> => {
  const { message, outcome } = turn
  if (message === undefined) return none
  const isCorrected = outcome?.type === "corrective"
  const results = isCorrected ? none : Calls.render(turn.dialect, Calls.inOrder(turn.order, turn.completed))
  const word = isCorrected
    ? outcome.corrective
    : results.length > 0 && outcome !== undefined && "note" in outcome
      ? outcome.note
      : undefined
  const messages = [message].concat(results, Calls.unanswered(message, results))
  if (word !== undefined) messages.push(Calls.corrective(word))
  return messages
}

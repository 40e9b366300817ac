/** Asks the person at the client the questions of a run. */

import * as Effect from "effect/Effect"
import { isJsonObject, type JsonObject } from "../../kit/json.ts"
import { flat, shorten } from "../../kit/text.ts"
import type { GivenAnswer, OpenQuestion } from "../../RunState.ts"
import * as Shown from "./acpCalls.ts"
import type { Peer } from "./acpPeer.ts"
import type { AcpProblem } from "./acpProblem.ts"
import * as Wire from "./acpWire.ts"

/** Where questions are asked. */
export interface Asker {
  readonly peer: Peer
  readonly sessionId: string
  readonly cwd: string
  /** What the person allowed for the rest of the session. */
  readonly always: Set<string>
  /** Returns what a person would allow with a call and similar ones. Empty: the call is always asked about. */
  readonly similar: (name: string, input: JsonObject) => ReadonlyArray<string>
}

/** Asks a question. Returns undefined if the client cancelled the prompt instead. */
export const ask = Effect.fnUntraced(function* (
  asker: Asker,
  question: OpenQuestion
): Effect.fn.Return<GivenAnswer | undefined, AcpProblem> {
  const { asking, callId, input, name, reason } = question
  if (asking?.output !== undefined) return { callId, error: "The editor cannot make this call." }
  if (asking?.form !== undefined) {
    return { callId, approved: false, reason: "The editor cannot show the form of this question." }
  }
  const similar = asking === undefined ? asker.similar(name, isJsonObject(input) ? input : {}) : []
  const isAllowed = similar.length > 0 && similar.every((one) => asker.always.has(one))
  const option = isAllowed ? "once" : yield* choose(asker, question, similar)
  switch (option) {
    case undefined:
      return undefined
    case "always":
      for (const one of similar) asker.always.add(one)
      return { callId, approved: true }
    case "once":
      return { callId, approved: true }
    default:
      return { callId, approved: false, reason: `The person rejected it: ${shorten(flat(reason), 200)}` }
  }
})

const choose = Effect.fnUntraced(function* (
  { cwd, peer, sessionId }: Asker,
  { asking, callId, input, name, reason }: OpenQuestion,
  similar: ReadonlyArray<string>
) {
  const { content, ...call } = Shown.shown({ callId, input, kind: "skill", name }, cwd)
  const text =
    asking === undefined ? reason : [asking.message, ...(asking.url === undefined ? [] : [asking.url])].join("\n")
  const differences = Array.isArray(content) ? content : []
  const options = [
    { optionId: "once", kind: "allow_once", name: "Allow" },
    ...(similar.length === 0
      ? []
      : [{ optionId: "always", kind: "allow_always", name: `Always allow ${shorten(flat(similar.join(", ")), 100)}` }]),
    { optionId: "reject", kind: "reject_once", name: "Reject" }
  ]
  const toolCall = { ...call, status: "pending", content: [...differences, Shown.textContent(text)] }
  const { outcome } = yield* peer.request(
    "session/request_permission",
    { sessionId, toolCall, options },
    Wire.Permission
  )
  return outcome.outcome === "cancelled" ? undefined : outcome.optionId
})

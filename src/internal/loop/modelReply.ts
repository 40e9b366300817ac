/**
 * A whole reply of a model: whether it counts, and the events that it becomes.
 */

import * as Cause from "effect/Cause"
import type { Reply } from "../../Dialect.ts"
import { ProviderError } from "../../KernelError.ts"
import type { ModelCall } from "../../Middleware.ts"
import type { StreamPart } from "../../StreamPart.ts"
import type { Usage } from "../../Usage.ts"
import { freeze } from "../base/snapshot.ts"
import type { Draft, LiveEvent } from "../run/publish.ts"
import { isEmpty } from "./intent.ts"
import type { Intent } from "../reply/meaning.ts"
import type { ReplyError } from "../run/run.ts"

/** A reply, the call it answers, and what it used. */
export interface ModelReply {
  readonly reply: Reply
  readonly call: ModelCall
  readonly usage: Usage | null
  readonly costUsd: number
  readonly latencyMs: number
  /** The parts as the provider sent them. Empty without a hook that wants them. */
  readonly raw: ReadonlyArray<StreamPart>
  /** Why a reply that had ended must not count, such as a middleware that refused it. */
  readonly refused: Cause.Cause<ReplyError> | undefined
}

/** Did anything of a reply arrive? Its content is an empty text if not. */
export const hasBegun = ({ calls, content, text }: Reply): boolean =>
  text !== "" || calls.length > 0 || content.some(({ type }) => type !== "text")

/** Why a reply cannot count as an answer: it was refused, cut off, filtered, or failed. */
export const refusal = ({ call, refused, reply }: ModelReply): Cause.Cause<ReplyError> | undefined => {
  if (refused !== undefined) return refused
  if (reply.failure !== undefined) return Cause.fail(reply.failure)
  const failed = (reason: ProviderError["reason"], detail: string) =>
    Cause.fail(new ProviderError({ provider: call.provider.name, reason, detail }))
  switch (reply.finish?.reason) {
    case undefined:
      return failed("incomplete", "the reply ended too early")
    case "content-filter":
      return failed("content_filter", "the reply was withheld by a content filter")
    case "error":
      // A failed reply without content counts as empty: the model may have miswritten a call, and may try again.
      return isEmpty(reply) ? undefined : failed("unknown", "the model failed")
  }
  return undefined
}

/** The event that records a reply and what it means. */
export const completedDraft = ({ call, costUsd, latencyMs, reply, usage }: ModelReply, meaning: Intent): Draft => {
  // A skill that changes its input must not change the journal.
  for (const call of meaning.calls) freeze(call.input)
  return {
    type: "model_completed",
    message: meaning.message,
    model: `${call.provider.name}/${call.request.model.id}`,
    usage,
    finishReason: reply.finish?.reason ?? "unknown",
    latencyMs,
    outcome: meaning.outcome,
    calls: meaning.calls,
    ...(reply.hosted.length === 0 ? undefined : { hosted: reply.hosted }),
    ...(costUsd === 0 ? undefined : { costUsd })
  }
}

/** The other events about a reply, in order. */
export const replyEvents = ({ latencyMs, reply, usage }: ModelReply, meaning: Intent): ReadonlyArray<LiveEvent> => {
  const response: LiveEvent = { type: "llm_response", content: reply.text, latencyMs, usage }
  if (reply.unclosed === undefined) return [response, ...meaning.facts]
  const { content, name, type: blockType } = reply.unclosed
  const finishReason = reply.finish?.reason ?? "unknown"
  return [{ type: "block_unclosed", blockType, name, content, finishReason }, response, ...meaning.facts]
}

/**
 * A complete reply of a model: whether it is accepted or retried, its usage, its media and its events.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Contents from "../../Content.ts"
import type { Reply } from "../../Dialect.ts"
import { ProviderError } from "../../KernelError.ts"
import type { ModelCall } from "../../Middleware.ts"
import type { Request } from "../../Provider.ts"
import { type StreamPart, unreported } from "../../StreamPart.ts"
import type { LeftOut } from "../../RunModel.ts"
import * as Usage from "../../Usage.ts"
import { isJsonObject } from "../../kit/json.ts"
import { redact } from "../../kit/redact.ts"
import { freeze } from "../../kit/snapshot.ts"
import { shorten } from "../../kit/text.ts"
import { estimate, ofTools } from "../prompt/tokenEstimate.ts"
import type { Intent } from "./meaning.ts"
import type { Draft, LiveEvent } from "../run/publish.ts"
import { type MediaError, type ReplyError, type Run, carry, currentTurn } from "../run/run.ts"
import { isEmpty } from "./intent.ts"
import { noteLeftOut } from "./requestWarnings.ts"

/** A reply, the call it answers, and its usage. */
export interface ModelReply {
  readonly reply: Reply
  readonly call: ModelCall
  readonly usage: Usage.Usage | null
  /** Undefined where no price is known. */
  readonly costUsd: number | undefined
  readonly latencyMs: number
  /** The parts as the provider sent them. Empty without a hook that wants them. */
  readonly raw: ReadonlyArray<StreamPart>
  /** Why a finished reply is rejected, such as a middleware that refused it. */
  readonly refused: Cause.Cause<ReplyError> | undefined
  /** The media that the request left out. Absent: none. */
  readonly leftOut?: ReadonlyArray<LeftOut>
  /** Warnings about the request, for live consumers. */
  readonly warnings?: Pick<Extract<LiveEvent, { readonly type: "llm_response" }>, "cacheMissed" | "dropped">
}

/** Returns whether any part of a reply has arrived. Until then its content is an empty text. */
export const hasBegun = ({ calls, content, text }: Reply): boolean =>
  text !== "" || calls.length > 0 || content.some(({ type }) => type !== "text")

/** Returns why a reply cannot be accepted: it was refused, cut off, filtered, or failed. */
export const refusal = ({ call, refused, reply }: ModelReply): Cause.Cause<ReplyError> | undefined => {
  if (refused !== undefined) return reply.finish === undefined ? withText(refused, reply.text) : refused
  if (reply.failure !== undefined) return Cause.fail(reply.failure)
  const failed = (reason: ProviderError["reason"], detail: string, words = "") => {
    const vendor = words === "" ? undefined : { vendor: { message: redact(shorten(words, 2_000)) } }
    return Cause.fail(new ProviderError({ provider: call.provider.name, reason, detail, ...vendor }))
  }
  switch (reply.finish?.reason) {
    case undefined:
      return failed("incomplete", "the reply ended too early", reply.text)
    case "content-filter":
      return failed("content_filter", "the reply was withheld by a content filter", reply.text)
    case "error":
      // A failed reply without content counts as empty, because the model may have written an invalid call.
      return isEmpty(reply) ? undefined : failed("unknown", "the model failed")
  }
  return undefined
}

/** Adds the text that arrived to the errors of a cut reply, so that it is not lost. Words of the vendor stay. */
const withText = (cause: Cause.Cause<ReplyError>, text: string): Cause.Cause<ReplyError> =>
  text === ""
    ? cause
    : Cause.map(cause, (error) =>
        error instanceof ProviderError && error.vendor === undefined
          ? new ProviderError({ ...error, vendor: { message: redact(shorten(text, 2_000)) } })
          : error
      )

/** Returns the event that records a reply and its meaning. */
export const completedDraft = (run: Run, modelReply: ModelReply, meaning: Intent): Draft => {
  const { call, costUsd, latencyMs, reply, usage } = modelReply
  const leftOut = noteLeftOut(run, modelReply.leftOut)
  // A skill that mutates its input must not change the journal.
  for (const call of meaning.calls) freeze(call.input)
  return {
    type: "model_completed",
    model: `${call.provider.name}/${call.request.model.id}`,
    finishReason: reply.finish?.reason ?? "unknown",
    ...vendorReason(reply),
    latencyMs,
    outcome: meaning.outcome,
    ...(reply.hosted.length === 0 ? undefined : { hosted: reply.hosted }),
    ...(leftOut === undefined ? undefined : { leftOut }),
    ...(costUsd === undefined ? undefined : { costUsd }),
    message: meaning.message,
    usage,
    calls: meaning.calls
  }
}

/** Returns the vendor's own word for an end that is `other`, which providers leave in the metadata. */
const vendorReason = ({ finish }: Reply): { readonly vendorReason?: string } => {
  if (finish?.reason !== "other") return {}
  const [word] = Object.values(finish.metadata ?? {}).flatMap((told) =>
    isJsonObject(told) ? [told["finishReason"]] : []
  )
  return typeof word === "string" ? { vendorReason: redact(shorten(word, 200)) } : {}
}

/** Returns the live events of a reply, in order. */
export const replyEvents = (
  { latencyMs, reply, usage, warnings }: ModelReply,
  meaning: Intent
): ReadonlyArray<LiveEvent> => {
  const finishReason = reply.finish?.reason ?? "unknown"
  const end = { latencyMs, finishReason, ...vendorReason(reply), usage }
  const response: LiveEvent = { type: "llm_response", content: reply.text, ...end, ...warnings }
  if (reply.unclosed === undefined) return [response, ...meaning.facts]
  const { content, name, type: blockType } = reply.unclosed
  return [{ type: "block_unclosed", blockType, name, content, finishReason }, response, ...meaning.facts]
}

/**
 * Returns whether a middleware wants to restart the reply. Middleware is asked in order until one does; each may wait
 * first.
 */
export const wantsRestart = (run: Run, cause: Cause.Cause<unknown>): Effect.Effect<boolean> => {
  const error = cause.reasons.find(Cause.isFailReason)?.error
  const restarts = run.middleware.flatMap(({ shouldRestart }) => (shouldRestart === undefined ? [] : [shouldRestart]))
  if (restarts.length === 0 || !(error instanceof ProviderError)) return Effect.succeed(false)
  const failure = { error, attempt: currentTurn(run).attempt }
  return run.restore(firstOf(restarts.map((restart) => restart(failure))))
}

/** Stores the media of a reply. A refused reply and one without media are returned unchanged. */
export const keepMedia = (run: Run, reply: ModelReply): Effect.Effect<ModelReply, MediaError> => {
  const { content } = reply.reply
  if (reply.refused !== undefined || !content.some(Contents.isMedia)) return Effect.succeed(reply)
  return run.media.admit(content).pipe(
    Effect.tapError(() =>
      Effect.sync(() => {
        carryUsage(run, reply)
      })
    ),
    Effect.map((kept) => ({ ...reply, reply: { ...reply.reply, content: kept } }))
  )
}

/**
 * Returns the usage of a reply that was cut off by an interruption, a lost connection or a reader that stopped, marked
 * as partial. Null if nothing arrived.
 *
 * Vendors charge for such a reply. Some report the tokens of the prompt first; of others they are estimated. The output
 * is estimated from what arrived.
 */
export const cutUsage = (reply: Reply, { messages, tools }: Request): Usage.Usage | null => {
  const { content, reported } = reply
  const isBegun = hasBegun(reply)
  if (reported === undefined && !isBegun) return null
  const { inputTokens, outputTokens } = reported ?? unreported
  const output = isBegun ? estimate({ role: "assistant", content }) : 0
  const usage = Usage.fromAi({
    inputTokens: reported === undefined ? { total: estimatePrompt(messages) + ofTools(tools) } : inputTokens,
    outputTokens: { ...outputTokens, total: Math.max(output, outputTokens.total ?? 0) }
  })
  return usage === undefined ? null : { ...usage, partial: true }
}

const estimatePrompt = (messages: Request["messages"]): number =>
  messages.reduce((sum, message) => sum + estimate(message), 0)

const firstOf = (answers: ReadonlyArray<Effect.Effect<boolean>>): Effect.Effect<boolean> =>
  answers.reduceRight<Effect.Effect<boolean>>(
    (rest, answer) => Effect.flatMap(answer, (isWanted) => (isWanted ? Effect.succeed(true) : rest)),
    Effect.succeed(false)
  )

/** Counts what a reply used with the next record of the run, where the reply itself is not recorded. */
export const carryUsage = (run: Run, { costUsd, usage }: Pick<ModelReply, "usage" | "costUsd">): void => {
  if (usage !== null) carry(run, { spent: Usage.expense(usage, costUsd) })
}

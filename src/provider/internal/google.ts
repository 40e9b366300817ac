/**
 * Shared parts of both Google formats: keys, media, signatures of calls, and token counts.
 *
 * Google signs native calls and expects the signatures back with them. A call has no field for a signature, so it is
 * stored as a thought without text that names its call.
 */

import * as Redacted from "effect/Redacted"
import type { ReportedUsage } from "../../StreamPart.ts"
import type { Vendor } from "./adapter.ts"
import { type Fault, saysDayIsOver, saysTooLong, statusReason, type FaultFacts } from "./providerFault.ts"
import { type Piece, wireId } from "./messageParts.ts"
import { count, fields, isFields, list, string, sum, text } from "./readFields.ts"
import { promptTokens } from "./replyUsage.ts"

/** The variables of the key, in the order of lookup. */
export const variables = ["GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_API_KEY"] as const

/** Creates the vendor for one of Google's formats. */
export const vendor = (
  name: string,
  options: {
    readonly apiKey: Redacted.Redacted
    readonly baseUrl?: string | undefined
    readonly headers?: { readonly [name: string]: string } | undefined
  }
): Vendor => ({
  name,
  apiKey: options.apiKey,
  baseUrl: options.baseUrl ?? "https://generativelanguage.googleapis.com",
  version: "/v1beta",
  headers: () => ({ ...options.headers, "x-goog-api-key": Redacted.value(options.apiKey) }),
  fault,
  list: { path: "/models", key: "models", id: "name", query: "pageSize=1000" }
})

/** Returns the signatures among the pieces of one message, by the id of their call. */
export const callSignatures = (pieces: ReadonlyArray<Piece>): ReadonlyMap<string, string> => {
  const signatures = new Map<string, string>()
  for (const piece of pieces) {
    if (piece.kind !== "thought" || !isFields(piece.signature)) continue
    const callId = text(piece.signature, "callId")
    const signature = text(piece.signature, "signature")
    if (callId !== undefined && signature !== undefined) signatures.set(wireId(callId), signature)
  }
  return signatures
}

/**
 * Converts usage. Google does not count thoughts as part of the answer, nor the prompts of tools as part of the prompt.
 */
export const toUsage = (counts: {
  readonly prompt: number | undefined
  readonly byTools: number | undefined
  readonly cacheRead: number | undefined
  readonly answer: number | undefined
  readonly reasoning: number | undefined
}): ReportedUsage => {
  const { answer, byTools, cacheRead, prompt, reasoning } = counts
  return {
    inputTokens: promptTokens(prompt === undefined ? undefined : sum(prompt, byTools), cacheRead),
    outputTokens: { total: sum(answer, reasoning), text: answer, reasoning }
  }
}

const reasons: ReadonlyMap<string, Fault["reason"]> = new Map<string, Fault["reason"]>([
  ["UNAUTHENTICATED", "authentication"],
  ["API_KEY_INVALID", "authentication"],
  ["API_KEY_EXPIRED", "authentication"],
  ["PERMISSION_DENIED", "permission"],
  ["NOT_FOUND", "not_found"],
  ["INVALID_ARGUMENT", "invalid_request"],
  ["FAILED_PRECONDITION", "invalid_request"],
  ["RESOURCE_EXHAUSTED", "rate_limited"],
  ["UNAVAILABLE", "overloaded"],
  ["INTERNAL", "server_error"],
  ["DEADLINE_EXCEEDED", "timeout"]
])

/** Classifies an error document. A specific detail overrides the general status. */
export const fault = (document: unknown, status: number): FaultFacts => {
  const error = isFields(document) ? fields(document, "error") : undefined
  const details = list(error, "details")
  const code = [
    ...details.map((detail) => string(detail, "reason")),
    string(error, "status"),
    string(error, "code")
  ].find((code) => code !== undefined && reasons.has(code))
  const number = count(error, "code")
  const known = number !== undefined && number >= 400 ? number : status
  // Google sends no header. The document holds the wait in seconds, with an "s".
  const waits = details.map((detail) => /^(\d+(?:\.\d+)?)s$/.exec(string(detail, "retryDelay") ?? "")?.[1])
  const wait = waits.find((seconds) => seconds !== undefined)
  if (saysDayIsOver(error)) return { reason: "quota_exhausted", code }
  const reason = reasons.get(code ?? "") ?? statusReason(known)
  return {
    reason: reason === "invalid_request" && saysTooLong(string(error, "message")) ? "context_length" : reason,
    code,
    waitMs: wait === undefined ? undefined : Math.ceil(Number(wait) * 1000)
  }
}

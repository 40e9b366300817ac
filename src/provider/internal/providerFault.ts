/**
 * Failures of model calls: a reason with a fixed text for everyone, and the vendor's own text for developers.
 *
 * A vendor's text may quote a key or a prompt, so it never becomes part of the message.
 */

import * as Effect from "effect/Effect"
import { holdsPiece } from "../../kit/encodedSecrets.ts"
import { retryAfterDate, retryAfterNumber } from "../../kit/failedRequest.ts"
import {
  type FailedAttempt,
  isTransient,
  ProviderError,
  type ProviderReason,
  type VendorWords
} from "../../KernelError.ts"
import { ForbidReal } from "../../Provider.ts"
import { type Fields, list, string } from "./readFields.ts"
import { safeWords } from "./vendorWords.ts"

/** A failure that is not tied to a provider yet. `code` is the vendor's, unchecked. */
export interface Fault {
  readonly reason: ProviderReason
  readonly code?: string | undefined
  /** A note in our own words. */
  readonly note?: string | undefined
  readonly status?: number | undefined
  readonly retryAt?: number | undefined
  /** The wait that the refusal asks for, in milliseconds. */
  readonly waitMs?: number | undefined
  /** The vendor's own statement on retrying. Default: the reason decides. */
  readonly retry?: boolean | undefined
  /** Whether the model failed and not the request. The failure then counts as a reply without content. */
  readonly isReply?: boolean | undefined
  /** The vendor's own text, unchecked. */
  readonly vendor?: VendorWords | undefined
}

/** The facts of an error document. */
export type FaultFacts = Pick<Fault, "reason" | "code" | "waitMs" | "isReply">

const sentences: { readonly [reason in ProviderReason]: string } = {
  not_configured: "no key is configured",
  authentication: "the key was refused",
  permission: "the key lacks permission for this",
  invalid_request: "the request was refused",
  not_found: "there is no such model or address",
  rate_limited: "too many requests",
  quota_exhausted: "the quota is used up",
  overloaded: "the service is overloaded",
  server_error: "the service failed",
  disconnected: "the connection was lost",
  timeout: "no reply arrived in time",
  incomplete: "the reply was cut",
  invalid_response: "the reply cannot be read",
  content_filter: "a content filter stopped the call",
  refusal: "the model refused",
  context_length: "the prompt does not fit the model's window",
  redirect: "the service redirects elsewhere, which is not followed",
  limit_exceeded: "the reply exceeds a limit",
  forbidden: "Provider.forbidReal forbids real requests here",
  unknown: "the call failed"
}

/** Fails if real requests are forbidden. */
export const allowed: Effect.Effect<void, Fault> = Effect.flatMap(ForbidReal, (isForbidden) =>
  isForbidden ? Effect.fail<Fault>({ reason: "forbidden" }) : Effect.void
)

/**
 * Returns the reason behind an HTTP status.
 *
 * Browsers report status 0 for a redirect they did not follow.
 */
export const statusReason = (status: number): ProviderReason => {
  switch (status) {
    case 401:
      return "authentication"
    case 402:
      return "quota_exhausted"
    case 403:
      return "permission"
    case 404:
      return "not_found"
    case 408:
      return "timeout"
    case 409:
      return "overloaded"
    case 429:
      return "rate_limited"
    case 503:
    case 529:
      return "overloaded"
  }
  if (status === 0 || (status >= 300 && status < 400)) return "redirect"
  if (status >= 500) return "server_error"
  return status >= 400 ? "invalid_request" : "invalid_response"
}

/**
 * Classifies a refused call: the status decides whether it may be retried, the document gives the reason.
 *
 * A document that contradicts its status is ignored, except for an empty account and a prompt that is too long, which
 * no retry can help.
 */
export const refusal = (facts: Pick<Fault, "reason" | "code">, status: number): Pick<Fault, "reason" | "code"> => {
  const reason = statusReason(status)
  // A rate limit on tokens also mentions lengths, but may be retried.
  const isLasting = lasting.has(facts.reason) && !(status === 429 && facts.reason === "context_length")
  const isAgreed = isLasting || isTransient(facts.reason) === isTransient(reason)
  return isAgreed ? facts : { ...facts, reason }
}

const lasting: ReadonlySet<ProviderReason> = new Set(["quota_exhausted", "context_length", "content_filter"])

/**
 * Returns true if a message says that a prompt is too long, for which many vendors have no code. The message is only
 * inspected, never passed on.
 */
export const saysTooLong = (sentence: string | undefined): boolean => sentence !== undefined && tooLong.test(sentence)

const tooLong =
  /(prompt|input) (is )?too long|context (window|length|limit|size)|maximum (prompt|model|allowed input) length|range of input length|prompt token count|model token limit|validation error: `inputs`|reduce the length of the (messages|prompt)|exceeds the maximum number of tokens/i

/**
 * Returns true if a message says that a daily quota is used up. Then no wait within a call helps, even if the message
 * names one.
 */
export const saysDayIsOver = (error: Fields | undefined): boolean =>
  // The message of OpenRouter for free models.
  (string(error, "message") ?? "").includes("free-models-per-day") ||
  // The detail of Google, which also appears in other formats.
  list(error, "details").some((detail) =>
    list(detail, "violations").some((violation) => string(violation, "quotaId")?.includes("PerDay"))
  )

/** Returns true if the same call may succeed a little later. */
export const isPassing = (fault: Fault): boolean => fault.retry !== false && isTransient(fault.reason)

// Words in one case without digits: codes look like that, and keys do not.
const codeShape = /^(?=.{2,48}$)(?:[a-z]+(?:_[a-z]+)*|[A-Z]+(?:_[A-Z]+)*)$/

/**
 * Returns a vendor's error code if it is a plain word and contains no secret.
 *
 * The code is compared with the secrets in both directions, because a hostile response could hold a key, or a piece of
 * one, as its code.
 */
const safeCode = (code: string | undefined, secrets: ReadonlyArray<string>): string | undefined =>
  code !== undefined &&
  codeShape.test(code) &&
  !holdsPiece(code, secrets) &&
  !secrets.some((secret) => secret !== "" && (secret.includes(code) || code.includes(secret)))
    ? code
    : undefined

/** Creates the error for the caller, after the calls in `history` failed. */
export const toError = (
  provider: string,
  fault: Fault,
  secrets: ReadonlyArray<string>,
  attempts: number,
  history: ReadonlyArray<FailedAttempt> = []
): ProviderError =>
  new ProviderError({
    ...factsOf(provider, fault, secrets),
    attempts,
    ...(history.length === 0 ? {} : { history }),
    ...(fault.retryAt === undefined ? {} : { retryAt: instant(fault.retryAt) }),
    ...(fault.retry === false ? { shouldRetry: false } : {})
  })

/** Creates the record of a call that failed and is retried. */
export const failedAttempt = (
  provider: string,
  fault: Fault,
  secrets: ReadonlyArray<string>,
  failedAt: number
): FailedAttempt => ({ ...factsOf(provider, fault, secrets), failedAt })

const factsOf = (provider: string, fault: Fault, secrets: ReadonlyArray<string>) => {
  const { note, reason, status } = fault
  const facts = [status === undefined ? undefined : `status ${status}`, safeCode(fault.code, secrets), note].filter(
    (fact) => fact !== undefined
  )
  const vendor = safeWords(fault.vendor, secrets)
  return {
    provider,
    reason,
    detail: facts.length === 0 ? sentences[reason] : `${sentences[reason]} (${facts.join(", ")})`,
    ...(status === undefined ? {} : { status }),
    ...(vendor === undefined ? {} : { vendor })
  }
}

/** Limits a time to the last one that a `Date` can express. */
export const instant = (at: number): number => Math.min(at, 8.64e15)

/** Creates the fault of an exceeded limit, with its name and value. */
export const limitFault = (limit: string, value: number): Fault => ({
  reason: "limit_exceeded",
  note: `${limit} is ${value}`
})

/**
 * Returns the time to retry after, from the headers of a refused call, in milliseconds since the epoch.
 *
 * Reads `retry-after-ms` first, then `retry-after` in seconds or as a date.
 */
export const retryAt = (headers: { readonly [name: string]: string | undefined }, now: number): number | undefined => {
  const milliseconds = retryAfterNumber(headers["retry-after-ms"])
  if (milliseconds !== undefined) return now + Math.ceil(milliseconds)
  const after = headers["retry-after"]
  const seconds = retryAfterNumber(after)
  if (seconds !== undefined) return now + Math.ceil(seconds * 1000)
  const date = retryAfterDate(after)
  return date === undefined ? undefined : Math.max(now, date)
}

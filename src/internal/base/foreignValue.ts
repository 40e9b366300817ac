/**
 * Reads what code of others threw, failed or died with.
 *
 * Such a value may be anything: an error whose message throws, a revoked proxy, a circle, megabytes of text. Nothing
 * here throws, and every text is without what looks like a key and no longer than `Bounds.failureBytes`.
 */

import * as Cause from "effect/Cause"
import * as Bounds from "./bounds.ts"
import { plain } from "./json.ts"
import { redact } from "./redact.ts"
import { clip, ends, logText } from "./text.ts"

/** Returns what `read` returns, or `otherwise` when it throws. */
export const attempt = <A, B>(read: () => A, otherwise: B): A | B => {
  try {
    return read()
  } catch {
    return otherwise
  }
}

/** Returns a field of a value. Undefined when there is none, or when it cannot be read. */
export const field = (value: unknown, key: string): unknown =>
  isObject(value) ? attempt((): unknown => Reflect.get(value, key), undefined) : undefined

/** Is this an instance of a class? False for a value that cannot be asked. */
export const isA = <A>(value: unknown, type: abstract new (...args: never) => A): value is A =>
  attempt(() => value instanceof type, false)

/** Does this value have this `_tag`? */
export const hasTag = (value: unknown, tag: string): boolean => field(value, "_tag") === tag

/** Names a failure: its `_tag`, the name of an error, or `Error`. At most 200 characters. */
export const tagOf = (error: unknown): string => {
  const tag = field(error, "_tag")
  if (typeof tag === "string") return word(tag)
  const name = isA(error, Error) ? field(error, "name") : undefined
  return typeof name === "string" ? word(name) : "Error"
}

/** Returns the sentence of a failure: its message, its text, or else its name. `clean` takes out secrets. */
export const messageOf = (error: unknown, clean = redact, bytes = Bounds.failureBytes): string => {
  const message = typeof error === "string" ? error : field(error, "message")
  if (typeof message === "string") {
    // A tagged error without a sentence of its own has an empty message: its tag says more.
    const tag = message.trim() === "" && isObject(error) ? tagOf(error) : "Error"
    return tag === "Error" ? bounded(message, clean, bytes) : clean(tag)
  }
  return bounded(ownText(error) ?? plainText(error) ?? tagOf(error), clean, bytes)
}

/** Returns a whole cause for a log, with its stacks. */
export const causeText = (cause: Cause.Cause<unknown>, clean = redact): string => {
  const text = attempt(() => Cause.pretty(cause), undefined)
  return text === undefined
    ? logText(cause.reasons.map((reason) => reasonText(reason, clean)).join("\n"))
    : logText(bounded(text, clean, Bounds.failureBytes))
}

/** The first typed failure of a cause. */
export const failureIn = (cause: Cause.Cause<unknown>): unknown => cause.reasons.find(Cause.isFailReason)?.error

/** What a cause is about: its first failure, or else its first defect. */
export const reasonIn = (cause: Cause.Cause<unknown>): unknown => {
  const failure = cause.reasons.find(Cause.isFailReason)
  return failure === undefined ? cause.reasons.find(Cause.isDieReason)?.defect : failure.error
}

/** Cleans a text, and keeps the head and the tail of one that is too long. Of a huge one, only these are looked at. */
export const bounded = (text: string, clean: (text: string) => string, bytes: number): string =>
  attempt(() => {
    const window = Math.max(bytes, margin) + margin
    if (text.length <= 2 * window) return clip(clean(text), bytes)
    // A secret that the window cuts in two is not recognized: the text beside the cut is left out.
    const head = clean(text.slice(0, window)).slice(0, -margin)
    const tail = clean(text.slice(-window)).slice(margin)
    return ends(head, tail, bytes, text.length)
  }, "unreadable")

/** Longer than any secret, in UTF-16 units. */
const margin = 8_192

const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function"

const word = (text: string): string => text.slice(0, 200)

/** The text of a value that has one of its own. */
const ownText = (value: unknown): string | undefined => {
  if (!isObject(value)) return value === undefined || value === null ? undefined : String(value)
  const write = field(value, "toString")
  if (typeof write !== "function" || write === Object.prototype.toString || typeof value === "function") {
    return undefined
  }
  const text = attempt((): unknown => Reflect.apply(write, value, []), undefined)
  return typeof text === "string" && text !== "" ? text : undefined
}

/** An object without a name or a text is written as JSON. */
const plainText = (value: unknown): string | undefined => {
  if (!isObject(value) || typeof value === "function" || field(value, "_tag") !== undefined) return undefined
  const text = attempt(() => JSON.stringify(plain(value)), "{}")
  return text === "{}" ? undefined : text
}

const reasonText = (reason: Cause.Reason<unknown>, clean: (text: string) => string): string => {
  switch (reason._tag) {
    case "Fail":
      return named(reason.error, clean)
    case "Die":
      return named(reason.defect, clean)
    case "Interrupt":
      return "interrupted"
  }
}

const named = (error: unknown, clean: (text: string) => string): string =>
  `${clean(tagOf(error))}: ${messageOf(error, clean)}`

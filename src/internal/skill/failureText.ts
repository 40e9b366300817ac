/**
 * Converts failures of foreign code to text for a model.
 *
 * The text of a failure is its message, followed by its fields as JSON. Only errors with a schema show their fields,
 * encoded by it. A `cause` is only logged. The messages of the kernel's errors are written for models, so their fields
 * are left out.
 */

import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaParser from "effect/SchemaParser"
import * as Calls from "../../Call.ts"
import type { CallError } from "../../Call.ts"
import { isMedia } from "../../Content.ts"
import { isKernelError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { Redactor } from "../../Redaction.ts"
import { perObject } from "../../kit/perObject.ts"
import { attempt, bounded, causeText, failureIn, field, isA, logged, messageOf, tagOf } from "../../kit/foreignCode.ts"
import { type Json, type JsonObject, isJsonObject } from "../../kit/json.ts"
import { deep, redact } from "../../kit/redact.ts"
import * as Snapshot from "../../kit/snapshot.ts"
import { clip } from "../../kit/text.ts"
import { toText } from "../words/contentText.ts"
import { carried } from "./skillOutput.ts"

/** Foreign code exceeded its timeout. */
export class TimedOut {
  readonly _tag = "TimedOut"
  readonly message: string
  constructor(timeout: Duration.Duration) {
    this.message = `took longer than ${Duration.toMillis(timeout)} ms`
  }
}

/**
 * Returns a typed failure as text: its message and, if it has a schema, its fields, up to `Limits.resultBytes`.
 * `encode` is the schema that a skill declared. A defect gets a fixed text, and its cause is logged.
 */
export const explain = (
  { redactor }: { readonly redactor: Redactor | undefined },
  subject: string,
  cause: Cause.Cause<unknown>,
  encode?: Encode
): Effect.Effect<CallError> => {
  const clean = (text: string) => redact(redactor === undefined ? text : redactor.text(text))
  if (cause.reasons.some(Cause.isFailReason)) return errorOf(subject, failureIn(cause), clean, encode)
  if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(Calls.error("Interrupted", `${subject} was interrupted`))
  return Effect.as(
    logged(Effect.logError(`${subject} failed unexpectedly`, causeText(cause, clean))),
    Calls.error("Defect", `${subject} failed unexpectedly`)
  )
}

/** Clips the text of an error to `Limits.resultBytes`. */
export const short = (error: CallError, { resultBytes }: Limits): CallError => {
  const message = clip(error.message, resultBytes)
  return message === error.message ? error : { ...error, message }
}

/** Encodes a failure that fits a schema. Fails for any other. */
type Encode = (error: unknown) => Effect.Effect<unknown, unknown>

/** Creates the encoder of failures for a declared schema. */
export const encoder = (schema: Schema.ConstraintEncoder<unknown>): Encode =>
  SchemaParser.encodeUnknownEffect(Schema.toCodecJson(schema))

/**
 * Formats a failure with its declared schema if it fits, else with the schema of its class. The fields of the declared
 * schema are kept for programs, unless they are longer than a text may be.
 */
const failureError = (
  error: unknown,
  encode: Encode | undefined,
  clean: (text: string) => string,
  bytes: number
): Effect.Effect<CallError> => {
  const write = (fields: Json | undefined) =>
    Calls.error(clean(tagOf(error)), bounded(textOf(error, fields), clean, bytes))
  if (encode === undefined) return Effect.sync(() => write(ofClass(error)))
  return Effect.matchCause(
    Effect.suspend(() => encode(error)),
    {
      onFailure: () => write(ofClass(error)),
      onSuccess: (encoded) => {
        const fields = shown(error, encoded)
        const isKept = fields !== undefined && JSON.stringify(fields).length <= bytes
        return isKept ? { ...write(fields), fields: deep(fields, clean) } : write(fields)
      }
    }
  )
}

const errorOf = (
  subject: string,
  error: unknown,
  clean: (text: string) => string,
  encode: Encode | undefined
): Effect.Effect<CallError> =>
  isA(error, TimedOut)
    ? Effect.succeed(Calls.error("Timeout", `${subject} ${error.message}`))
    : Limits.use(({ resultBytes }) => failureError(error, encode, clean, resultBytes))

const textOf = (error: unknown, fields: Json | undefined): string => {
  const parts = carried(error)
  const hasSentence = typeof field(error, "message") === "string" || typeof field(error, "_tag") === "string"
  const sentence = hasSentence || parts === undefined ? messageOf(error, same, Infinity) : ""
  const carriedText = (parts?.content ?? []).map((part) => (isMedia(part) ? "" : toText(part))).join("")
  const whole = [...new Set([sentence, carriedText])].filter((text) => text !== "").join("\n")
  const written = isJsonObject(fields) ? more(whole, fields, parts !== undefined) : undefined
  if (written === undefined) return whole
  if (!hasSentence) return written
  return `${whole}${whole === tagOf(error) ? " " : "\n"}${written}`
}

/** Returns the fields as JSON, unless the message contains them all. */
const more = (sentence: string, fields: JsonObject, isCarrier: boolean): string | undefined => {
  const names = Object.keys(fields).filter((name) => name !== "message" && !(isCarrier && name === "content"))
  const words = new Set(sentence.length > longestSentence ? [] : sentence.split(/[^\p{L}\p{N}_.-]+/u))
  const isContained = (value: Json | undefined) =>
    (typeof value === "string" || typeof value === "number") &&
    (words.has(String(value)) || (/[^\p{L}\p{N}_.-]/u.test(String(value)) && sentence.includes(String(value))))
  if (names.every((name) => isContained(fields[name]))) return undefined
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, fields[name]])))
}

const longestSentence = 10_000

const same = (text: string): string => text

/** Returns the encoded fields of an error whose class is a schema. Undefined if encoding needs services. */
const ofClass = (error: unknown): Json | undefined =>
  attempt(() => {
    const type = field(error, "constructor")
    if (!Schema.isSchema(type) || typeof type !== "function" || isKernelError(error)) return undefined
    const encoded = encoderOf(type)(error)
    return Exit.isExit(encoded) && Exit.isSuccess(encoded) ? shown(error, encoded.value) : undefined
  }, undefined)

const encoderOf = perObject((type: Schema.Constraint) => SchemaParser.encodeUnknownEffect(Schema.toCodecJson(type)))

/**
 * Returns the part of an encoded failure that a model may see. A `Redacted` encodes to its secret, which is removed
 * again.
 */
const shown = (error: unknown, encoded: unknown): Json | undefined =>
  attempt(() => {
    const taken = Snapshot.take(encoded)
    if (Result.isFailure(taken)) return undefined
    const secrets = new Set<unknown>()
    findSecrets(error, secrets, maxDepth)
    const open = without(taken.success, secrets)
    if (!isJsonObject(open)) return open
    const { _tag, ...fields } = open
    return fields
  }, undefined)

const maxDepth = 8

const findSecrets = (value: unknown, found: Set<unknown>, depth: number): void => {
  if (typeof value !== "object" || value === null || depth === 0) return
  if (Redacted.isRedacted(value)) {
    const secret = Redacted.value(value)
    found.add(typeof secret === "bigint" ? String(secret) : secret)
    return findSecrets(secret, found, depth - 1)
  }
  const inner = isA(value, Map) || isA(value, Set) ? [...value] : Object.values(value)
  for (const item of inner) findSecrets(item, found, depth - 1)
}

/** Removes causes and replaces secrets. A short secret is replaced only as a whole value. */
const without = (value: Json, secrets: ReadonlySet<unknown>): Json => {
  if (secrets.has(value)) return redacted
  if (typeof value === "string") {
    let text = value
    for (const secret of secrets) {
      if (typeof secret === "string" && secret.length >= 4) text = text.replaceAll(secret, redacted)
    }
    return text
  }
  if (Array.isArray(value)) return value.map((item) => without(item, secrets))
  if (!isJsonObject(value)) return value
  const kept: { [key: string]: Json } = {}
  for (const [key, item] of Object.entries(value)) {
    if (key !== "cause" && key !== "stack") Snapshot.define(kept, key, without(item, secrets))
  }
  return kept
}

const redacted = "<redacted>"

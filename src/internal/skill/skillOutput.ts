/**
 * Converts values returned by skills and protocols into contents, media and JSON.
 *
 * Text stays text, media are returned for storing, an object becomes data, and other JSON becomes text. Any other value
 * fails with its path.
 */

import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Contents from "../../Content.ts"
import type { Content } from "../../Content.ts"
import { SkillResultInvalid } from "../../KernelError.ts"
import { Kind, type Media, isMedia, toJson } from "../../Media.ts"
import type { Redactor } from "../../Redaction.ts"
import { isWhole } from "../words/contentCodec.ts"
import { toText } from "../words/contentText.ts"
import type { Fault } from "../../kit/fault.ts"
import { attempt, field } from "../../kit/foreignCode.ts"
import type { Json, JsonObject } from "../../kit/json.ts"
import { isEmpty, isJsonObject } from "../../kit/json.ts"
import { deep } from "../../kit/redact.ts"
import * as Snapshot from "../../kit/snapshot.ts"

/** Text with media and metadata, as a skill may return them together. */
export interface SkillResult {
  readonly "~kernai/SkillResult": true
  readonly text: string
  readonly media: ReadonlyArray<Media>
  readonly metadata: JsonObject
}

/**
 * A returned value for the model and the journal: contents in order, media to store, metadata for the host only, and
 * the value as JSON for `skill_result`.
 */
export interface Output {
  readonly content: ReadonlyArray<Content>
  readonly media: ReadonlyArray<Media>
  readonly metadata?: JsonObject
  readonly value: Json
  /** Whether the value cannot be read from the contents, which show a list, a number, a boolean or null as text. */
  readonly isShownAsText?: true
}

/** Removes the secrets known to a redactor. Media contain no text. */
export const clean = (output: Output, redactor: Redactor | undefined): Output => {
  if (redactor === undefined) return output
  const { media, ...rest } = output
  return { ...deep(rest, redactor.text), media }
}

/** Creates a result of text, media and metadata. */
export const result = (
  text = "",
  more: {
    readonly media?: Media | ReadonlyArray<Media> | undefined
    readonly metadata?: JsonObject | undefined
  } = {}
): SkillResult => ({
  "~kernai/SkillResult": true,
  text,
  media: more.media == null ? [] : isMedia(more.media) ? [more.media] : more.media,
  metadata: more.metadata ?? {}
})

/** Converts the value returned by a skill. */
export const toOutput = (value: unknown): Result.Result<Output, SkillResultInvalid> => {
  const path: Array<number> = []
  try {
    return Result.mapError(read(value, path), refused)
  } catch {
    // A value that throws when read (a proxy, a getter) is not a result. The exception may hold anything, so it is left
    // out.
    return Result.fail(refused({ path: path.map((index) => `/${index}`).join(""), reason: "cannot be read" }))
  }
}

/**
 * Converts the value returned by a protocol. A list counts as a list of parts only if it contains one, otherwise it is
 * JSON. A list of one content is that content.
 */
export const toAnswer = (value: unknown): Result.Result<Output, SkillResultInvalid> => {
  if (!Array.isArray(value)) return toOutput(value)
  if (!value.some(isPart)) return Result.mapError(json(value), refused)
  return toOutput(value.length === 1 ? value[0] : value)
}

/**
 * Returns the contents and media that a failure carries, as a value that a skill may return or in its `content`.
 * Undefined if it carries none.
 */
export const carried = (error: unknown): Pick<Output, "content" | "media"> | undefined =>
  attempt(() => {
    const content = field(error, "content")
    const parts = isPart(error) || !Array.isArray(content) ? error : content.map(asContent)
    if (!isPart(parts) && !(Array.isArray(parts) && parts.some(isPart))) return undefined
    return Result.getOrUndefined(toOutput(parts))
  }, undefined)

/** Freezes a content, as its constructor does. */
const asContent = (value: unknown): unknown => (isWhole(value) ? Snapshot.freeze(value) : value)

const isPart = (value: unknown): boolean => isSkillResult(value) || isMedium(value) || isContent(value)

const refused = (fault: Fault) => new SkillResultInvalid({ path: fault.path.slice(0, 200), reason: fault.reason })

const read = (value: unknown, path: Array<number>): Result.Result<Output, Fault> => {
  if (typeof value === "string") return Result.succeed(textOutput(value))
  // A skill that returns nothing has an empty result.
  if (value === null || value === undefined)
    return Result.succeed({ content: [Contents.text("")], media: [], value: null, isShownAsText: true })
  return Array.isArray(value) ? list(value, path) : one(value)
}

const textOutput = (text: string): Output => ({ content: [Contents.text(text)], media: [], value: text })

/** Keeps strings and media, and converts other parts to text. */
const list = (values: ReadonlyArray<unknown>, path: Array<number>): Result.Result<Output, Fault> => {
  const content: Array<Content> = []
  const media: Array<Media> = []
  const value: Array<Json> = []
  for (let index = 0; index < values.length; index++) {
    path.push(index)
    const part = element(values[index])
    if (Result.isFailure(part)) {
      return Result.fail({ path: `/${index}${part.failure.path}`, reason: part.failure.reason })
    }
    content.push(...part.success.content)
    media.push(...part.success.media)
    value.push(part.success.value)
    path.pop()
  }
  return Result.succeed({ content, media, value, ...(values.some(isPart) ? {} : { isShownAsText: true }) })
}

const element = (value: unknown): Result.Result<Output, Fault> =>
  typeof value === "string" || value === null ? read(value, []) : one(value)

const one = (value: unknown): Result.Result<Output, Fault> => {
  if (isSkillResult(value)) return rich(value)
  if (isMedium(value)) return Result.succeed({ content: [], media: [value], value: toJson(value) })
  if (isContent(value)) return Result.succeed({ content: [value], media: [], value: toText(value) })
  return json(value)
}

/** Converts an object to data, and other JSON to text. Models read the same for both. */
const json = (value: unknown): Result.Result<Output, Fault> =>
  Result.map(Snapshot.take(value), (json) => ({
    content: [isJsonObject(json) ? Contents.data(json) : Contents.text(JSON.stringify(json))],
    media: [],
    value: json,
    ...(isJsonObject(json) ? {} : { isShownAsText: true })
  }))

const rich = (value: SkillResult): Result.Result<Output, Fault> => {
  // Results may come from untyped code.
  if (typeof value.text !== "string") return Result.fail({ path: "/text", reason: "is not a string" })
  const invalid = Array.isArray(value.media) ? value.media.findIndex((media) => !isMedium(media)) : 0
  if (invalid !== -1) return Result.fail({ path: `/media/${invalid}`, reason: "is not media" })
  const output = { ...textOutput(value.text), media: value.media }
  return Result.flatMap(Snapshot.take(value.metadata), (metadata) =>
    isJsonObject(metadata)
      ? Result.succeed(isEmpty(metadata) ? output : { ...output, metadata })
      : Result.fail({ path: "", reason: "is not an object" })
  ).pipe(Result.mapError((fault) => ({ path: `/metadata${fault.path}`, reason: fault.reason })))
}

/** Returns whether a value was created by `result`. */
export const isSkillResult = (value: unknown): value is SkillResult =>
  typeof value === "object" && value !== null && "~kernai/SkillResult" in value

const isKind = Schema.is(Kind)

/** Returns whether a value is a complete medium, which can be stored. JSON may have fields with the same names. */
const isMedium = (value: unknown): value is Media => {
  if (!isMedia(value) || typeof value.mimeType !== "string" || !isKind(value.kind) || !isJsonObject(value.metadata))
    return false
  const source: unknown = value.source
  if (typeof source !== "object" || source === null || !("_tag" in source)) return false
  switch (source._tag) {
    case "Bytes":
      return "bytes" in source && source.bytes instanceof Uint8Array
    case "Path":
      return "path" in source && typeof source.path === "string"
    case "Url":
      return "url" in source && typeof source.url === "string"
    default:
      return false
  }
}

/** Returns whether a value is a content. Constructors freeze contents, so an unfrozen object with a `type` is JSON. */
const isContent = (value: unknown): value is Content => Object.isFrozen(value) && isWhole(value)

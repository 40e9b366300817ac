/**
 * What a skill returned, taken apart into contents, media and JSON (BP-72 to BP-75).
 *
 * Text stays text, media wait to be stored, an object becomes data, other JSON
 * its text. What is none of these is refused with its path.
 */

import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Contents from "../../Content.ts"
import type { Content } from "../../Content.ts"
import { SkillResultInvalid } from "../../KernelError.ts"
import type { Media } from "../../Media.ts"
import { isMedia, Kind, toJson } from "../../Media.ts"
import type { Redactor } from "../../Redaction.ts"
import { isWhole } from "../words/contentNeeds.ts"
import { toText } from "../words/contentText.ts"
import type { Fault } from "../base/fault.ts"
import type { Json, JsonObject } from "../base/json.ts"
import { isEmpty, isJsonObject } from "../base/json.ts"
import { deep } from "../base/redact.ts"
import * as Snapshot from "../base/snapshot.ts"

/** Text with media and metadata. */
export interface SkillResult {
  readonly "~kernai/SkillResult": true
  readonly text: string
  readonly media: ReadonlyArray<Media>
  readonly metadata: JsonObject
}

/** What a skill returned, as the model and the journal will hold it. */
export interface Output {
  readonly content: ReadonlyArray<Content>
  readonly media: ReadonlyArray<Media>
  readonly metadata?: JsonObject
  readonly value: Json
}

/** An output without the secrets a redactor knows (S-7); media hold no text. */
export const clean = (output: Output, redactor: Redactor | undefined): Output => {
  if (redactor === undefined) return output
  const { media, ...said } = output
  return { ...deep(said, redactor.text), media }
}

/** Makes a result of text, media and metadata. */
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

/** Takes a returned value apart. */
export const toOutput = (value: unknown): Result.Result<Output, SkillResultInvalid> => {
  const path: Array<number> = []
  try {
    return Result.mapError(read(value, path), refused)
  } catch {
    // A value that throws when looked at (a proxy, a getter) is no result; what it throws may hold anything.
    return Result.fail(refused({ path: path.map((index) => `/${index}`).join(""), reason: "cannot be read" }))
  }
}

/**
 * Takes an answer of a protocol apart: a list is a list of parts only when it
 * holds one, else it is JSON (BP-77). One content in a list is that content.
 */
export const toAnswer = (value: unknown): Result.Result<Output, SkillResultInvalid> => {
  if (!Array.isArray(value)) return toOutput(value)
  if (!value.some(isPart)) return Result.mapError(json(value), refused)
  return toOutput(value.length === 1 ? value[0] : value)
}

const isPart = (value: unknown): boolean => isSkillResult(value) || isMedium(value) || isContent(value)

const refused = (fault: Fault) => new SkillResultInvalid({ path: fault.path.slice(0, 200), reason: fault.reason })

const read = (value: unknown, path: Array<number>): Result.Result<Output, Fault> => {
  if (typeof value === "string") return Result.succeed(told(value))
  if (value === null) return Result.succeed({ content: [Contents.text("")], media: [], value: null })
  return Array.isArray(value) ? list(value, path) : one(value)
}

const told = (text: string): Output => ({ content: [Contents.text(text)], media: [], value: text })

/** Strings and media are kept, others by their text form (BP-73). */
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
  return Result.succeed({ content, media, value })
}

const element = (value: unknown): Result.Result<Output, Fault> =>
  typeof value === "string" || value === null ? read(value, []) : one(value)

const one = (value: unknown): Result.Result<Output, Fault> => {
  if (isSkillResult(value)) return rich(value)
  if (isMedium(value)) return Result.succeed({ content: [], media: [value], value: toJson(value) })
  if (isContent(value)) return Result.succeed({ content: [value], media: [], value: toText(value) })
  return json(value)
}

/** An object is data (AC-14); other JSON is its text. A model reads the same of both (BP-73). */
const json = (value: unknown): Result.Result<Output, Fault> =>
  Result.map(Snapshot.take(value), (json) => ({
    content: [isJsonObject(json) ? Contents.data(json) : Contents.text(JSON.stringify(json))],
    media: [],
    value: json
  }))

const rich = (value: SkillResult): Result.Result<Output, Fault> => {
  // A skill may be made without types.
  if (typeof value.text !== "string") return Result.fail({ path: "/text", reason: "is not a text" })
  const odd = Array.isArray(value.media) ? value.media.findIndex((media) => !isMedium(media)) : 0
  if (odd !== -1) return Result.fail({ path: `/media/${odd}`, reason: "is not a medium" })
  const output = { ...told(value.text), media: value.media }
  return Result.flatMap(Snapshot.take(value.metadata), (metadata) =>
    isJsonObject(metadata)
      ? Result.succeed(isEmpty(metadata) ? output : { ...output, metadata })
      : Result.fail({ path: "", reason: "is not an object" })
  ).pipe(Result.mapError((fault) => ({ path: `/metadata${fault.path}`, reason: fault.reason })))
}

/** Tells whether a value is a rich result. */
export const isSkillResult = (value: unknown): value is SkillResult =>
  typeof value === "object" && value !== null && "~kernai/SkillResult" in value

const isKind = Schema.is(Kind)

/** JSON may have fields of the same names, and be what became of a medium: only a whole one can be stored. */
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

/** Contents are frozen by their constructors: other JSON that has a `type` of its own stays JSON. */
const isContent = (value: unknown): value is Content => Object.isFrozen(value) && isWhole(value)

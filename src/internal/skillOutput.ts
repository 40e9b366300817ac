/**
 * What a skill returned, taken apart into contents, media and JSON (BP-72 to BP-75).
 *
 * Text stays text, media wait to be stored, a JSON object is a data content and
 * other JSON its text. Anything that is none of these is refused with its path.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import { SkillResultInvalid } from "../KernelError.ts"
import type { Media } from "../Media.ts"
import { toText } from "./contentText.ts"
import type { Content } from "./contentType.ts"
import type { Json, JsonObject } from "./json.ts"
import type { Fault } from "./jsonValue.ts"
import { toJson, toJsonObject } from "./jsonValue.ts"
import { pathText } from "./path.ts"
import { isRecord } from "./untrusted.ts"

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

/** Makes a result of text, media and metadata. */
export const result = (
  text = "",
  more: { readonly media?: Media | ReadonlyArray<Media>; readonly metadata?: JsonObject } = {}
): SkillResult => ({
  "~kernai/SkillResult": true,
  text,
  media: more.media === undefined ? [] : isMedia(more.media) ? [more.media] : more.media,
  metadata: more.metadata ?? {}
})

/** Takes a returned value apart. */
export const toOutput = (value: unknown): Result.Result<Output, SkillResultInvalid> => {
  try {
    return Result.mapError(read(value), refused)
  } catch {
    return Result.fail(refused({ path: [], reason: "unreadable: it throws" }))
  }
}

const refused = (fault: Fault) =>
  new SkillResultInvalid({ path: pathText(["result", ...fault.path]), reason: fault.reason })

const read = (value: unknown): Result.Result<Output, Fault> => {
  if (typeof value === "string") return Result.succeed(told(value))
  if (value === null) return Result.succeed({ content: [textOf("")], media: [], value: null })
  if (isSkillResult(value)) return rich(value)
  if (Array.isArray(value)) return list(value)
  return one(value)
}

const told = (text: string): Output => ({ content: [textOf(text)], media: [], value: text })

const textOf = (text: string): Content => ({ type: "text", text })

const rich = (value: SkillResult): Result.Result<Output, Fault> => {
  if (Object.keys(value.metadata).length === 0) return Result.succeed({ ...told(value.text), media: value.media })
  const metadata = toJsonObject(value.metadata)
  return Result.isFailure(metadata)
    ? Result.fail({ ...metadata.failure, path: ["metadata", ...metadata.failure.path] })
    : Result.succeed({ ...told(value.text), media: value.media, metadata: metadata.success })
}

/** Strings and media are kept, others by their text form (BP-73). */
const list = (values: ReadonlyArray<unknown>): Result.Result<Output, Fault> => {
  const content: Array<Content> = []
  const media: Array<Media> = []
  const told: Array<Json> = []
  for (let index = 0; index < values.length; index++) {
    const value = values[index]
    const part = isSkillResult(value)
      ? rich(value)
      : typeof value === "string" || value === null
        ? read(value)
        : one(value)
    if (Result.isFailure(part)) return Result.fail({ ...part.failure, path: [index, ...part.failure.path] })
    content.push(...part.success.content)
    media.push(...part.success.media)
    told.push(part.success.value)
  }
  return Result.succeed({ content, media, value: told })
}

const one = (value: unknown): Result.Result<Output, Fault> => {
  if (isMedia(value)) return Result.succeed({ content: [], media: [value], value: mediaValue(value) })
  if (isContent(value)) return Result.succeed({ content: [value], media: [], value: toText(value) })
  return Result.map(toJson(value), (json) => ({
    content: [typeof json === "object" && isRecord(json) ? { type: "data", data: json } : textOf(JSON.stringify(json))],
    media: [],
    value: json
  }))
}

/** A medium as events tell it: never its bytes. */
const mediaValue = (media: Media): Json => ({
  kind: media.kind,
  mimeType: media.mimeType,
  ...(media.id === undefined ? {} : { id: media.id })
})

const isSkillResult = (value: unknown): value is SkillResult => isRecord(value) && value["~kernai/SkillResult"] === true

const kinds: ReadonlySet<unknown> = new Set(["image", "audio", "video", "document"])

const isMedia = (value: unknown): value is Media =>
  isRecord(value) &&
  kinds.has(value["kind"]) &&
  typeof value["mimeType"] === "string" &&
  isRecord(value["source"]) &&
  typeof value["source"]["_tag"] === "string" &&
  isRecord(value["metadata"])

const types: ReadonlySet<unknown> = new Set<Content["type"]>([
  "text",
  "code",
  "data",
  "error",
  "image",
  "audio",
  "video",
  "document",
  "tool_use",
  "tool_result",
  "thinking",
  "ui_resource",
  "custom",
  "unknown"
])

/** Contents are frozen by their constructors: other JSON that has a `type` of its own stays JSON. */
const isContent = (value: unknown): value is Content =>
  isRecord(value) && Object.isFrozen(value) && types.has(value["type"])

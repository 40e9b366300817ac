/**
 * Prepares values returned by foreign code for the journal and the model: stores media, removes secrets, truncates long
 * texts.
 *
 * The full text of a truncated result is stored among the run's media. A model with the skill to read it gets its id.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Contents from "../../Content.ts"
import type { Content } from "../../Content.ts"
import type { LimitExceeded, MediaConflict, SkillResultInvalid, StoreError } from "../../KernelError.ts"
import * as Media from "../../Media.ts"
import * as Messages from "../../Message.ts"
import type { Message } from "../../Message.ts"
import type * as Skills from "../../Skill.ts"
import type { Output } from "../../Skill.ts"
import { type JsonObject, isJsonObject } from "../../kit/json.ts"
import { boundary, utf8Length } from "../../kit/text.ts"
import { refusalOf } from "../model/permissions.ts"
import type { Run } from "../run/run.ts"
import { clean, isSkillResult } from "../skill/skillOutput.ts"
import { isWhole } from "../words/contentCodec.ts"

/** A returned value in the form for the model and the journal. */
export interface Kept {
  readonly content: ReadonlyArray<Content>
  readonly metadata?: JsonObject
  /** The value as JSON. */
  readonly value: Output["value"]
  /** Whether the value cannot be read from the contents. */
  readonly isShownAsText?: true
  /** Facts about a truncated result. */
  readonly truncated: Truncated | undefined
  /** The ids of its stored media, in order. */
  readonly ids: ReadonlyArray<string>
  /** The types of the bytes that contradict the given type of their medium, by its id. */
  readonly bytesTypes?: ReadonlyMap<string, string>
}

/** Reads a returned value, stores its media, and truncates texts that are too long for a model. */
export const keep = (
  run: Run,
  value: unknown,
  read: typeof Skills.toOutput
): Effect.Effect<Kept, SkillResultInvalid | MediaConflict | LimitExceeded | StoreError> => {
  const output = read(value)
  if (Result.isFailure(output)) return Effect.fail(output.failure)
  const { content, media, ...rest } = clean(output.success, run.redactor)
  const kept = (content: ReadonlyArray<Content>, ids: ReadonlyArray<string> = []): Effect.Effect<Kept> =>
    isLong(content, run.limits.resultBytes)
      ? Effect.map(shorten(run, content, rest.isShownAsText === true), (short) => ({ ...short, ...rest, ids }))
      : Effect.succeed({ content, ...rest, truncated: undefined, ids })
  return media.length === 0 && content.every((part) => part.type === "text" || part.type === "data")
    ? kept(content)
    : Effect.flatMap(run.media.admit([...content, ...media]), (all) =>
        Effect.map(kept(all, idsOf(all.slice(content.length))), (done) => {
          const bytesTypes = contradicted([...content, ...media], all)
          return bytesTypes.size === 0 ? done : { ...done, bytesTypes }
        })
      )
}

/** Returns the types of the bytes of those media that are something else than they are called, by their ids. */
const contradicted = (
  given: ReadonlyArray<Content | Media.Media>,
  stored: ReadonlyArray<Content>
): ReadonlyMap<string, string> => {
  const types = new Map<string, string>()
  for (const [index, part] of given.entries()) {
    const reference = stored[index]
    if (reference === undefined || !Contents.isMedia(reference) || reference.fileId === undefined) continue
    const [declared, bytes] = declaredIn(part)
    const type = declared === undefined || bytes === undefined ? undefined : Media.contradiction(declared, bytes)
    if (type !== undefined && type !== reference.mediaType) types.set(reference.fileId, type)
  }
  return types
}

const declaredIn = (
  part: Content | Media.Media
): readonly [type?: string | undefined, bytes?: Uint8Array | undefined] => {
  if ("type" in part) return Contents.isMedia(part) ? [part.mediaType, part.data] : []
  return part.source._tag === "Bytes" ? [part.mimeType, part.source.bytes] : []
}

/** Sets the ids of the stored media in a returned value. */
export const withIds = (value: unknown, { ids }: Kept): unknown =>
  ids.length === 0 ? value : identified(value, ids.values())

/** Returns whether a value is a message that a journal can hold. Otherwise a similar value counts as an answer. */
export const isWholeMessage = (value: unknown): value is Message =>
  Messages.isMessage(value) &&
  value.content.every(isWhole) &&
  (value.name === undefined || typeof value.name === "string") &&
  (value.metadata === undefined || (isJsonObject(value.metadata) && Result.isSuccess(Contents.json(value.metadata))))

/** The name of the skill that reads truncated results. */
export const readerName = "read_result"

/** Returns the hint that follows a truncated text. */
export const readerBlock = (id: string, next: number, bytes: number): string =>
  `[cut after ${next} of ${bytes} bytes; go on with ${readerName} ${JSON.stringify({ id, offset: next })}]`

const identified = (value: unknown, ids: Iterator<string>): unknown => {
  if (Array.isArray(value)) return value.map((entry: unknown) => identified(entry, ids))
  if (isSkillResult(value)) return { ...value, media: value.media.map((entry) => identified(entry, ids)) }
  // Contents have a `type`, and already have their ids.
  return Media.isMedia(value) && !("type" in value) ? { ...value, id: ids.next().value } : value
}

const idsOf = (stored: ReadonlyArray<Content>): ReadonlyArray<string> =>
  stored.flatMap((part) => (Contents.isMedia(part) && part.fileId !== undefined ? [part.fileId] : []))

interface Truncated {
  readonly truncated: true
  /** Bytes of the full text. */
  readonly bytes: number
  /** Media id of the full text. Absent if it could not be stored. */
  readonly full_result?: string
  /** The form of a value in the full text: a list as its joined items, or an object as JSON. Absent for a text. */
  readonly shows?: "list" | "object"
}

/** Returns whether the text of contents is longer than `limit` bytes. Media do not count. */
const isLong = (content: ReadonlyArray<Content>, limit: number): boolean => {
  let length = 0
  for (const part of content) length += textIn(part).length
  // A UTF-16 unit takes at most three bytes, so most results need no measuring.
  return length * 3 > limit && encoder.encode(textOf(content)).length > limit
}

/** Keeps head and tail of texts within the limit, and stores the full text. */
const shorten = Effect.fnUntraced(function* (run: Run, content: ReadonlyArray<Content>, isList: boolean) {
  const whole = encoder.encode(textOf(content))
  const stored = yield* Effect.option(run.media.put(Media.fromBytes(whole, "text/plain")))
  const reader = run.skills.find(readerName)
  const mayRead = Option.isSome(reader) && refusalOf(run, reader.value) === undefined
  const truncated: Truncated = {
    truncated: true,
    bytes: whole.length,
    ...(Option.isSome(stored) ? { full_result: stored.value.id } : {}),
    ...(isList ? { shows: "list" } : content[0]?.type === "data" ? { shows: "object" } : {})
  }
  const id = mayRead && Option.isSome(stored) ? stored.value.id : undefined
  return { content: endsOf(content, whole, run.limits.resultBytes, id), truncated }
})

/**
 * Returns head and tail of contents with a note between them, which refers to the full text if the model can read it. A
 * limit too small for the note keeps the head alone.
 */
const endsOf = (
  content: ReadonlyArray<Content>,
  whole: Uint8Array,
  limit: number,
  id: string | undefined
): ReadonlyArray<Content> => {
  const half = Math.floor((limit - (id === undefined ? noteBytes : readerBytes)) / 2)
  if (half < 1 && id === undefined) return between(content, whole, [0, boundary(whole, limit)], () => true)
  const head = boundary(whole, Math.max(0, half))
  const tail = boundary(whole, whole.length - Math.max(0, half))
  const note = id === undefined ? `[… ${tail - head} bytes left out …]` : readerBlock(id, head, whole.length)
  return [
    ...between(content, whole, [0, head], (at) => at <= head),
    Contents.text(`\n${note}\n`),
    ...between(content, whole, [tail, whole.length], (at) => at > head)
  ]
}

// Bytes reserved for the notes.
const noteBytes = 64
const readerBytes = 200

const encoder = new TextEncoder()

const textOf = (content: ReadonlyArray<Content>): string => {
  let text = ""
  for (const part of content) text += textIn(part)
  return text
}

const textIn = (part: Content): string =>
  part.type === "text" ? part.text : Contents.isMedia(part) ? "" : Contents.toText(part)

/** Returns the contents between two offsets of their text. Media have no text: `holds` says at which offsets they are kept. */
const between = (
  content: ReadonlyArray<Content>,
  whole: Uint8Array,
  [from, to]: readonly [from: number, to: number],
  holds: (at: number) => boolean
): ReadonlyArray<Content> => {
  let end = 0
  return content.flatMap((part): ReadonlyArray<Content> => {
    const start = end
    if (Contents.isMedia(part)) return holds(start) ? [part] : []
    end += utf8Length(textIn(part))
    const [first, last] = [Math.max(start, from), Math.min(end, to)]
    if (first >= last) return []
    // Other contents are truncated as text.
    return first === start && last === end ? [part] : [Contents.text(decoder.decode(whole.subarray(first, last)))]
  })
}

// A byte order mark is part of the text.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

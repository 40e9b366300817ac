/**
 * Keeps what foreign code returned: media by reference, secrets out, long texts cut.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { LimitExceeded, MediaConflict, SkillResultInvalid, StoreError } from "../../KernelError.ts"
import * as Media from "../../Media.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { Output } from "../../Skill.ts"
import type * as Skills from "../../Skill.ts"
import { isJsonObject, type JsonObject } from "../base/json.ts"
import { clean, isSkillResult } from "../skill/skillOutput.ts"
import { isWhole } from "../words/contentCodec.ts"
import { isLong, shorten, type Truncated } from "./longResults.ts"
import type { Run } from "../run/run.ts"

/** A returned value as the model and the journal hold it. */
export interface Kept {
  readonly content: ReadonlyArray<Content>
  readonly metadata?: JsonObject
  /** The value as JSON. */
  readonly value: Output["value"]
  /** Facts about a result that was too long. */
  readonly truncated: Truncated | undefined
  /** The ids under which its media values were stored, in their order. */
  readonly ids: ReadonlyArray<string>
}

/** Reads a returned value, stores its media, and cuts what is too long for a model. */
export const keep = (
  run: Run,
  value: unknown,
  read: typeof Skills.toOutput
): Effect.Effect<Kept, SkillResultInvalid | MediaConflict | LimitExceeded | StoreError> => {
  const output = read(value)
  if (Result.isFailure(output)) return Effect.fail(output.failure)
  const { content, media, metadata, value: json } = clean(output.success, run.redactor)
  const rest = metadata === undefined ? { value: json } : { value: json, metadata }
  const kept = (content: ReadonlyArray<Content>, ids: ReadonlyArray<string> = []): Effect.Effect<Kept> =>
    isLong(content, run.limits.resultBytes)
      ? Effect.map(shorten(run, content), (short) => ({ ...short, ...rest, ids }))
      : Effect.succeed({ content, ...rest, truncated: undefined, ids })
  return media.length === 0 && content.every((part) => part.type === "text" || part.type === "data")
    ? kept(content)
    : Effect.flatMap(run.media.admit([...content, ...media]), (all) => kept(all, idsOf(all.slice(content.length))))
}

/** Returns a returned value whose media have the ids under which they were stored. */
export const withIds = (value: unknown, { ids }: Kept): unknown =>
  ids.length === 0 ? value : identified(value, ids.values())

const identified = (value: unknown, ids: Iterator<string>): unknown => {
  if (Array.isArray(value)) return value.map((entry: unknown) => identified(entry, ids))
  if (isSkillResult(value)) return { ...value, media: value.media.map((entry) => identified(entry, ids)) }
  // Contents have a `type`, and their ids already.
  return Media.isMedia(value) && !("type" in value) ? { ...value, id: ids.next().value } : value
}

const idsOf = (stored: ReadonlyArray<Content>): ReadonlyArray<string> =>
  stored.flatMap((part) => (Contents.isMedia(part) && part.fileId !== undefined ? [part.fileId] : []))

/** Is this a message that a journal can hold? A value that only looks like one counts as an answer. */
export const isWholeMessage = (value: unknown): value is Message =>
  Messages.isMessage(value) &&
  value.content.every(isWhole) &&
  (value.name === undefined || typeof value.name === "string") &&
  (value.metadata === undefined || (isJsonObject(value.metadata) && Result.isSuccess(Contents.json(value.metadata))))

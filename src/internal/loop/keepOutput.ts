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
import { isWhole } from "../words/contentNeeds.ts"
import { isLong, shorten, type Truncated } from "./longResults.ts"
import type { Run } from "./run.ts"

/** A returned value as the model and the journal hold it. */
export interface Kept {
  readonly content: ReadonlyArray<Content>
  readonly metadata?: JsonObject
  /** The value as JSON. */
  readonly value: Output["value"]
  /** Facts about a result that was too long. */
  readonly truncated: Truncated | undefined
}

/** Reads a returned value, stores its media, and cuts what is too long for a model. */
export const keep = (
  run: Run,
  value: unknown,
  read: typeof Skills.toOutput
): Effect.Effect<Kept, SkillResultInvalid | MediaConflict | LimitExceeded | StoreError> => {
  const output = read(value)
  if (Result.isFailure(output)) return Effect.fail(output.failure)
  const { content, media, ...rest } = clean(output.success, run.redactor)
  const kept = (content: ReadonlyArray<Content>): Effect.Effect<Kept> =>
    isLong(content, run.limits.resultBytes)
      ? Effect.map(shorten(run, content), (short) => ({ ...short, ...rest }))
      : Effect.succeed({ content, ...rest, truncated: undefined })
  return media.length === 0 && content.every((part) => part.type === "text" || part.type === "data")
    ? kept(content)
    : Effect.flatMap(run.media.admit([...content, ...media]), kept)
}

/** Returns a returned value whose media have the ids under which they were stored. */
export const withIds = (value: unknown, { content }: Kept): Effect.Effect<unknown> =>
  content.some(Contents.isMedia) ? identified(value) : Effect.succeed(value)

const identified = (value: unknown): Effect.Effect<unknown> => {
  if (Array.isArray(value)) return Effect.forEach(value, identified)
  if (isSkillResult(value)) {
    return Effect.map(Effect.forEach(value.media, identified), (media) => ({ ...value, media }))
  }
  // Contents have a `type`, and their ids already.
  if (!Media.isMedia(value) || "type" in value) return Effect.succeed(value)
  return Effect.map(Media.id(value), (id) => ({ ...value, id }))
}

/** Is this a message that a journal can hold? A value that only looks like one counts as an answer. */
export const isWholeMessage = (value: unknown): value is Message =>
  Messages.isMessage(value) &&
  value.content.every(isWhole) &&
  (value.name === undefined || typeof value.name === "string") &&
  (value.metadata === undefined || (isJsonObject(value.metadata) && Result.isSuccess(Contents.json(value.metadata))))

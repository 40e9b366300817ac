/**
 * Reads the input of a new run: contents, or a value of the agent's `input` schema, whose JSON becomes the message.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Agent } from "../../Agent.ts"
import type { Content } from "../../Content.ts"
import { AgentConfigInvalid, type LimitExceeded, type MediaConflict, type StoreError } from "../../KernelError.ts"
import type { Media } from "../../Media.ts"
import * as Medias from "../../Media.ts"
import type { MediaStoreShape, StoredMedia } from "../../MediaStore.ts"
import * as Fault from "../../kit/fault.ts"
import { isRecord } from "../../kit/json.ts"
import { perObject } from "../../kit/perObject.ts"

type Part = string | Media | Content

/**
 * Returns the contents of an input. A text is taken as it is. A value of the schema comes before contents that look like
 * one.
 */
export const contentsOf = (
  { input: schema }: Pick<Agent, "input">,
  input: unknown,
  store: MediaStoreShape
): Effect.Effect<ReadonlyArray<Part>, AgentConfigInvalid | MediaConflict | LimitExceeded | StoreError> => {
  const parts: ReadonlyArray<unknown> = Array.isArray(input) ? input : [input]
  const contents = parts.every(isPart) ? parts : undefined
  if (schema === undefined || typeof input === "string") {
    return contents === undefined ? Effect.fail(noContents()) : Effect.succeed(contents)
  }
  const found: Array<StoredMedia> = []
  return Effect.flatMap(Effect.map(stored(input, store, found), encoderOf(schema)), (encoded) =>
    Effect.matchEffect(encoded, {
      onSuccess: (json) => Effect.succeed([json, ...found]),
      onFailure: (error) => {
        if (contents !== undefined) return Effect.succeed(contents)
        const { path, reason } = Fault.ofSchema(error)
        return Effect.fail(new AgentConfigInvalid({ path: `input${path.replaceAll("/", ".")}`, reason }))
      }
    })
  )
}

/** Stores the media in lists and plain objects of a value, and returns the value with the stored ones. */
const stored = (
  value: unknown,
  store: MediaStoreShape,
  found: Array<StoredMedia>
): Effect.Effect<unknown, MediaConflict | LimitExceeded | StoreError> => {
  if (Medias.isMedia(value)) return Effect.tap(store.put(value), (media) => Effect.sync(() => found.push(media)))
  if (Array.isArray(value)) return Effect.forEach(value, (item) => stored(item, store, found))
  if (!isPlainObject(value)) return Effect.succeed(value)
  const entries = Effect.forEach(Object.entries(value), ([name, part]) =>
    Effect.map(stored(part, store, found), (part) => [name, part] as const)
  )
  return Effect.map(entries, Object.fromEntries)
}

const isPlainObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype

const encoderOf = perObject((schema: Schema.ConstraintCodec<unknown, unknown>) => {
  const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(schema))
  return (value: unknown) => Effect.map(encode(value), (json) => JSON.stringify(json))
})

const noContents = () =>
  new AgentConfigInvalid({
    path: "input",
    reason: "it is no text, medium or content, and the agent has no `input` schema"
  })

const isPart = (part: unknown): part is Part =>
  typeof part === "string" || Medias.isMedia(part) || (isRecord(part) && typeof part["type"] === "string")

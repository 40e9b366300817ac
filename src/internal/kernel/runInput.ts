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
import { attempt } from "../../kit/foreignCode.ts"
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
  const contents = attempt(() => partsIn(input), undefined)
  if (schema === undefined || typeof input === "string") {
    return contents === undefined ? Effect.fail(noContents()) : Effect.succeed(contents)
  }
  const found: Array<StoredMedia> = []
  // A value of a host may throw when it is read.
  const value = Effect.catchDefect(stored(input, store, found, { values: maxValues }), () => Effect.fail(unreadable()))
  return Effect.flatMap(Effect.map(value, encoderOf(schema)), (encoded) =>
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

/** Returns the contents that an input is. Undefined if it is another value. */
const partsIn = (input: unknown): ReadonlyArray<Part> | undefined => {
  const parts: ReadonlyArray<unknown> = Array.isArray(input) ? input : [input]
  return parts.every(isPart) ? parts : undefined
}

/**
 * Stores the media in lists and plain objects of a value, and returns the value with the stored ones. Reads a bounded
 * number of values, since a value may hold itself.
 */
const stored = (
  value: unknown,
  store: MediaStoreShape,
  found: Array<StoredMedia>,
  left: { values: number }
): Effect.Effect<unknown, MediaConflict | LimitExceeded | StoreError> =>
  Effect.suspend(() => {
    if (Medias.isMedia(value)) return Effect.tap(store.put(value), (media) => Effect.sync(() => found.push(media)))
    if (--left.values < 0) return Effect.succeed(value)
    if (Array.isArray(value)) return Effect.forEach(value, (item) => stored(item, store, found, left))
    if (!isPlainObject(value)) return Effect.succeed(value)
    const entries = Effect.forEach(Object.entries(value), ([name, part]) =>
      Effect.map(stored(part, store, found, left), (part) => [name, part] as const)
    )
    return Effect.map(entries, Object.fromEntries)
  })

/** Number of values of an input among which media are found. */
const maxValues = 10_000

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

const unreadable = () => new AgentConfigInvalid({ path: "input", reason: "it cannot be read" })

const isPart = (part: unknown): part is Part =>
  typeof part === "string" || Medias.isMedia(part) || (isRecord(part) && typeof part["type"] === "string")

/**
 * The notes of a store about schedules: how each is defined, which processes with it write, and that it is paused, which
 * operators write.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StoreError } from "../../KernelError.ts"
import type { Note, Notes } from "../../RunStore.ts"
import type { TypeOf } from "../../kit/schemas.ts"
import { lazily } from "../../kit/schemas.ts"

const definition = lazily(() =>
  Schema.Struct({
    name: Schema.String,
    agent: Schema.String,
    tenant: Schema.optionalKey(Schema.String),
    cron: Schema.String,
    timeZone: Schema.optionalKey(Schema.String)
  })
)

/** A schedule as a process defined it. */
export interface Definition extends TypeOf<typeof definition> {}

const pause = lazily(() =>
  Schema.Struct({
    /** Milliseconds since the epoch. */
    at: Schema.Finite,
    by: Schema.optionalKey(Schema.String),
    reason: Schema.optionalKey(Schema.String)
  })
)

/**
 * Since when a schedule is paused, by whom, and why.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pause extends TypeOf<typeof pause> {}

const defined = "schedule/"
const paused = "paused/"

/** Stores how a schedule is defined. A pause stays. */
export const define = (notes: Notes, schedule: Definition): Effect.Effect<void, StoreError> =>
  notes.set(defined + schedule.name, JSON.stringify(schedule))

/** Pauses a schedule, or resumes it without a pause. */
export const setPause = (notes: Notes, name: string, pause: Pause | undefined): Effect.Effect<void, StoreError> =>
  notes.set(paused + name, pause === undefined ? undefined : JSON.stringify(pause))

/** Deletes what is stored about a schedule. */
export const forget = (notes: Notes, name: string): Effect.Effect<void, StoreError> =>
  Effect.andThen(notes.set(defined + name, undefined), notes.set(paused + name, undefined))

/** Returns whether a schedule is paused. */
export const isPaused = (notes: Notes, name: string): Effect.Effect<boolean, StoreError> =>
  Effect.map(notes.list(paused + name), (all) => all.some(({ key }) => key === paused + name))

/** Returns all schedules by name, each with its pause. Notes that cannot be read are left out. */
export const all = Effect.fnUntraced(function* (
  notes: Notes
): Effect.fn.Return<ReadonlyArray<readonly [Definition, Pause | undefined]>, StoreError> {
  const pauses = new Map(
    (yield* notes.list(paused)).map((note) => [note.key.slice(paused.length), read(readPause, note)])
  )
  return (yield* notes.list(defined)).flatMap((note) => {
    const schedule = read(readDefinition, note)
    return schedule === undefined ? [] : [[schedule, pauses.get(schedule.name)] as const]
  })
})

const readDefinition = lazily(() => Schema.decodeUnknownResult(Schema.fromJsonString(definition())))

const readPause = lazily(() => Schema.decodeUnknownResult(Schema.fromJsonString(pause())))

const read = <A, E>(decode: () => (text: unknown) => Result.Result<A, E>, { text }: Note): A | undefined =>
  Result.getOrUndefined(decode()(text))

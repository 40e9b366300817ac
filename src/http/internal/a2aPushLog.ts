/**
 * Stores the push notification configurations of a task, and how far each was notified, with the media of its run.
 *
 * Media are deleted with their run, and survive a restart where their store does. Each entry is a medium whose id follows
 * from its place in the log, so that the entries are found without reading the other media of the run.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Media from "../../Media.ts"
import type { MediaStoreShape } from "../../MediaStore.ts"
import { asProblem, type HttpProblem, TooMany } from "../HttpProblem.ts"
import { PushConfig } from "./a2aPush.ts"

const Entry = Schema.Union([
  Schema.Struct({ type: Schema.Literal("set"), config: PushConfig, after: Schema.Int }),
  Schema.Struct({ type: Schema.Literal("removed"), id: Schema.String }),
  Schema.Struct({ type: Schema.Literal("notified"), id: Schema.String, after: Schema.Int })
])

/** An entry of the log. */
export type Entry = typeof Entry.Type

/** A configuration that was not removed, and what its receiver knows. */
export interface Subscription {
  readonly config: PushConfig
  /** The place in the log at which the configuration was set. */
  readonly place: number
  /** The revision of the run up to which its receiver needs no notification. */
  readonly after: number
}

/** The log of a task. */
export interface PushLog {
  /** Returns the subscriptions in the order in which they were set. */
  readonly read: Effect.Effect<ReadonlyArray<Subscription>, HttpProblem>
  readonly append: (entry: Entry) => Effect.Effect<void, HttpProblem>
}

/** Opens the log of a run in the store of its media. */
export const make = (media: MediaStoreShape, runId: string): PushLog => {
  const entries = Effect.gen(function* () {
    const found: Array<Entry> = []
    while (true) {
      const stored = yield* media.get(yield* Media.id(mediumOf(runId, found.length)))
      const entry = Option.flatMap(stored, ({ metadata }) => decode(metadata))
      if (Option.isNone(entry)) return found
      found.push(entry.value)
    }
  }).pipe(asProblem(runId))

  return {
    read: Effect.map(entries, subscriptionsOf),
    append: Effect.fnUntraced(function* (entry) {
      const metadata = encode(entry)
      let place = (yield* entries).length
      while (true) {
        if (place >= mostEntries[entry.type]) {
          return yield* new TooMany({ detail: "the push notification configs of the task were changed too often" })
        }
        const stored = yield* asProblem(runId)(media.put(mediumOf(runId, place, metadata)))
        // Another process may have taken the place.
        if (isSame(stored.metadata, metadata)) return
        place++
      }
    })
  }
}

/** The entries up to which one of each type is appended. What was set can be removed. */
const mostEntries = { set: 128, notified: 256, removed: Infinity }

const mediumOf = (runId: string, place: number, metadata: Media.Media["metadata"] = {}): Media.Media =>
  Media.fromBytes(new TextEncoder().encode(`a2a push notifications of ${runId}: ${place}`), mimeType, { metadata })

const mimeType = "application/vnd.kernai.a2a-push"

const decode = Schema.decodeUnknownOption(Entry)

const encode = Schema.encodeSync(Entry)

const isSame = (self: Media.Media["metadata"], that: Media.Media["metadata"]): boolean =>
  JSON.stringify(encodedOf(self)) === JSON.stringify(encodedOf(that))

/** Returns the metadata of an entry with its fields in the order of the schema. */
const encodedOf = (metadata: Media.Media["metadata"]) => Option.map(decode(metadata), encode)

const subscriptionsOf = (entries: ReadonlyArray<Entry>): ReadonlyArray<Subscription> => {
  const found = new Map<string, Subscription>()
  entries.forEach((entry, place) => {
    if (entry.type === "set") found.set(entry.config.id, { config: entry.config, place, after: entry.after })
    else if (entry.type === "removed") found.delete(entry.id)
    else {
      const known = found.get(entry.id)
      if (known !== undefined) found.set(entry.id, { ...known, after: entry.after })
    }
  })
  return [...found.values()]
}

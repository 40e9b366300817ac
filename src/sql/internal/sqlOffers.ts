/**
 * Offers runs to workers in other processes: through notifications of PostgreSQL, or a folder next to a SQLite file.
 */

import { layer as layerFiles } from "@effect/platform-node/NodeFileSystem"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as PubSub from "effect/PubSub"
import type { SqlClient } from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { offerFolder } from "../../store-kit/Offers.ts"
import type { Announce } from "./announcer.ts"
import * as Key from "./key.ts"
import { fileOf } from "./sqlChanges.ts"

/** The offers of a database. */
export interface SqlOffers {
  readonly emit: (runId: string) => Effect.Effect<void>
  /** Offers of other processes. Absent if they cannot be received. */
  readonly offers?: Stream.Stream<string>
  /** Passes on an announcement of the database if it is an offer. Synchronous. */
  readonly announced: (payload: string) => void
}

/** Creates offers that the database announces to listeners. */
export const announced = Effect.fnUntraced(function* (announce: Announce, isListening: boolean) {
  const heard = yield* PubSub.sliding<string>(1_000)
  const offers: SqlOffers = {
    emit: (runId) => {
      const payload = mark + Key.escape(runId)
      // PostgreSQL does not send longer payloads.
      return Effect.sync(() => (payload.length <= 2_000 ? announce(payload, true) : undefined))
    },
    announced: (payload) => {
      if (payload.startsWith(mark)) PubSub.publishUnsafe(heard, Key.unescape(payload.slice(mark.length)))
    },
    ...(isListening ? { offers: Stream.fromPubSub(heard) } : {})
  }
  return offers
})

/** Distinguishes an offer from the key of a run, since no key begins like this. */
const mark = "%o"

/** Creates offers in a folder next to a database file. A database in memory has none. */
export const besideFile = Effect.fnUntraced(function* (sql: SqlClient) {
  const file = yield* fileOf(sql)
  if (file === "") return silent
  const folder = offerFolder(yield* FileSystem.FileSystem, `${file}-offers`)
  const offers: SqlOffers = { ...folder, announced: () => {} }
  return offers
}, Effect.provide(layerFiles))

const silent: SqlOffers = { emit: () => Effect.void, announced: () => {} }

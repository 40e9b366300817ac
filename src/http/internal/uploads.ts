/**
 * Holds uploaded media until their run starts. A media store in memory keeps the media of a run only while a scope
 * holds them, and until the run starts, that is the scope of the server.
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as RcMap from "effect/RcMap"
import type * as Scope from "effect/Scope"
import type { MediaStoreShape } from "../../MediaStore.ts"

/** The media store of a root run, held for a while after its last use. */
export type Uploads = (rootRunId: string) => Effect.Effect<MediaStoreShape, never, Scope.Scope>

/** Holds the media of each run until they have not been used for a time. */
export const uploads = (media: MediaStoreShape, time: Duration.Input): Effect.Effect<Uploads, never, Scope.Scope> =>
  Effect.map(
    RcMap.make({ lookup: (rootRunId: string) => media.run(rootRunId), idleTimeToLive: time }),
    (map) => (rootRunId) => RcMap.get(map, rootRunId)
  )

/**
 * Media that callers read.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { StoredMedia } from "../../MediaStore.ts"
import { type HttpProblem, NotFound } from "../HttpProblem.ts"
import type { ServerResources } from "./serverResources.ts"
import { asProblem } from "../HttpProblem.ts"

/** Reads a medium that a run of a tree stored or received. Media of the application are not found. */
export const getMedia = (
  { uploads }: ServerResources,
  rootRunId: string,
  id: string
): Effect.Effect<{ readonly media: StoredMedia; readonly bytes: Uint8Array }, HttpProblem> =>
  Effect.scoped(
    Effect.gen(function* () {
      const store = yield* uploads.open(rootRunId)
      const found = yield* asProblem(rootRunId)(store.get(id))
      const own = yield* asProblem(rootRunId)(store.list)
      if (Option.isNone(found) || !own.some((medium) => medium.id === id)) {
        return yield* new NotFound({ what: "medium", id })
      }
      return { media: found.value, bytes: yield* asProblem(id)(store.bytes(id)) }
    })
  )

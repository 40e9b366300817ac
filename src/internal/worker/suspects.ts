/**
 * Suspects of a crash: runs that were in progress when their process died, of which one at a time is attempted.
 *
 * A run that makes progress is no suspect any more, since its attempts are counted from there. It continues, and the next
 * suspect is attempted beside it.
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { RunHead, RunStoreShape as RunStore } from "../../RunStore.ts"
import { follow } from "../../store-kit/Follow.ts"
import type { Claim } from "./driverModel.ts"
import { isProgress } from "./retries.ts"

/**
 * Returns the claim on a suspect that is attempted alone. `cleared` runs once it has made progress, and again when its
 * attempt has ended.
 */
export const alone = (store: RunStore, head: RunHead, claim: Claim, cleared: Effect.Effect<void>): Claim => {
  const watched = Effect.andThen(progressOf(store, head), cleared)
  return {
    ...claim,
    isAlone: true,
    keep: Effect.raceFirst(claim.keep ?? Effect.never, Effect.andThen(watched, Effect.never)),
    release: Effect.andThen(claim.release ?? Effect.void, cleared)
  }
}

/** Waits until progress of a run is stored. Waits for ever if it cannot be seen. */
const progressOf = (store: RunStore, { revision, runId }: RunHead): Effect.Effect<void> =>
  follow(store, runId, { after: revision }).pipe(
    Stream.filter(isProgress),
    Stream.runHead,
    Effect.flatMap((found) => (found._tag === "Some" ? Effect.void : Effect.never)),
    Effect.catch(() => Effect.never)
  )

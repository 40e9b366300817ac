/**
 * Brings the run of a message to rest on the runner that received it.
 *
 * The reply is sent when the run is at rest in the store. A message for later is sent first if the run is to be retried,
 * or if its questions have a deadline.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Claim, RunDriver } from "../../RunDriver.ts"
import { Drive, type Driven } from "../RunEntity.ts"
import type { Messenger } from "./messenger.ts"
import { refusal } from "./runEnd.ts"

/** Replies once the run is at rest in the store. */
export const driveMessage = Effect.fnUntraced(function* (
  driver: RunDriver,
  { later }: Messenger,
  claim: Claim,
  { at: sentFor, how, revision, runId }: Drive
): Effect.fn.Return<typeof Driven.Type> {
  for (;;) {
    const driven = yield* driver.drive(runId, claim, how === undefined ? undefined : { ...how, revision })
    if (driven._tag === "Refused") {
      const refused = refusal(driven.error)
      if (refused !== undefined) return { refused }
      // Another runner may accept it.
      yield* Effect.sleep("5 seconds")
      continue
    }
    const { next } = driven
    if (next === undefined) return {}
    if (next.at !== sentFor || next.revision !== revision) {
      yield* later(new Drive({ runId, ...next }))
      return {}
    }
    // The clock was set back: another message for this time would count as a repetition of this one.
    yield* Effect.sleep(next.at - (yield* Clock.currentTimeMillis))
  }
})

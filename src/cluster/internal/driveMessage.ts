/**
 * Brings the run of a message to rest, on the runner that received it or on one that has its agent.
 *
 * The reply is sent when the run is at rest in the store. A message for later is sent first if the run is to be retried,
 * if its questions have a deadline, or if the runner cannot continue it, so that a run which waits holds no place. A run
 * whose agent no runner has is left in the queue, with the reason.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { flat } from "../../kit/text.ts"
import { StoreError } from "../../KernelError.ts"
import type { Claim, Driven as DrivenHere, RunDriver } from "../../RunDriver.ts"
import { type RunStoreShape, unplaced } from "../../RunStore.ts"
import { Drive, type Driven, type Lent } from "../RunEntity.ts"
import type { Elsewhere, Guest } from "./elsewhere.ts"
import type { Messenger } from "./messenger.ts"
import { refusal } from "./runEnd.ts"

/** A runner, as its entities know it. */
export interface Runner {
  readonly driver: RunDriver
  readonly claim: Claim
  readonly store: RunStoreShape
  readonly messenger: Messenger
  readonly elsewhere: Elsewhere
}

/** Drives the run of a message on this runner. */
export const driveHere = (
  { claim, driver }: Pick<Runner, "claim" | "driver">,
  { how, revision, runId }: Drive
): Effect.Effect<typeof Lent.Type> =>
  Effect.map(driver.drive(runId, claim, how === undefined ? undefined : { ...how, revision }), lentOf)

const lentOf = (driven: DrivenHere): typeof Lent.Type => {
  switch (driven._tag) {
    case "AtRest":
      return { type: "rest", ...(driven.next === undefined ? {} : { next: driven.next }) }
    case "Postponed":
      return { type: "rest", next: driven.next }
    case "Refused": {
      const refused = refusal(driven.error)
      // Another runner may accept it.
      return refused === undefined ? { type: "again" } : { type: "refused", refused }
    }
    case "UnknownAgent":
      return { type: "unknown", agent: driven.agent }
    case "Again":
      return { type: "again" }
  }
}

/** Replies once the run is at rest in the store, or is queued for a runner with its agent. */
export const driveMessage = Effect.fnUntraced(function* (
  runner: Runner,
  guest: Guest,
  message: Drive
): Effect.fn.Return<typeof Driven.Type> {
  const { elsewhere, messenger } = runner
  const { at: sentFor, revision, runId } = message
  for (;;) {
    const here = yield* driveHere(runner, message)
    const driven = here.type === "unknown" ? yield* elsewhere.lend(message, here.agent, guest) : here
    switch (driven.type) {
      case "refused":
        return { refused: driven.refused }
      case "unknown": {
        const left = yield* Effect.option(leave(runner, message, driven.agent))
        if (Option.isSome(left)) return left.value
        break
      }
      case "rest": {
        const { next } = driven
        if (next === undefined) return {}
        if (next.at !== sentFor || next.revision !== revision) {
          yield* messenger.later(new Drive({ runId, ...next }))
          return {}
        }
        // The clock was set back: another message for this time would count as a repetition of this one.
        yield* Effect.sleep(next.at - (yield* Clock.currentTimeMillis))
        continue
      }
    }
    yield* Effect.sleep("3 seconds")
  }
})

/**
 * Leaves a run to a runner that has its agent. An active run is queued with the reason, and found by polling; another one
 * gets a message for later. Fails if the run has changed.
 */
const leave = Effect.fnUntraced(function* ({ messenger, store }: Runner, { how, runId }: Drive, agent: string) {
  const reason = unplaced(agent)
  yield* Effect.logWarning(`run ${flat(runId)} waits: ${flat(reason)}`)
  if (how !== undefined) {
    const refused = refusal(new StoreError({ operation: "resume a run", reason: "unavailable", detail: reason }))
    return refused === undefined ? {} : { refused }
  }
  const head = Option.getOrUndefined(yield* store.head(runId))
  if (head === undefined) return {}
  const { lease, revision, status } = head
  if (status.type === "queued" || status.type === "running" || status.type === "interrupted") {
    if (lease?.workerId !== reason) yield* store.acquire(runId, { workerId: reason, lease: 0, seen: head })
  } else {
    yield* messenger.later(new Drive({ runId, revision, at: (yield* Clock.currentTimeMillis) + lookAgain }))
  }
  return {}
})

/** Milliseconds until a run at rest is looked at again whose agent no runner had. */
const lookAgain = 20_000

/**
 * Runs that need a driver at a known time. A single timer waits for the nearest one.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { RunHead } from "../../RunStore.ts"

/** Runs by id, each with the time at which it is due. */
export interface DueRuns {
  readonly times: Map<string, Time>
  /** Opened when a run is added. */
  readonly added: Latch.Latch
}

/** A due time in milliseconds since the epoch, for a run at this revision. An infinite time is never due. */
interface Time {
  readonly revision: number
  readonly until: number
}

/** Creates an empty list of due runs. */
export const make = (): DueRuns => ({ times: new Map(), added: Latch.makeUnsafe() })

/** Returns the due time of a run at its current revision, if it is known and has not come yet. Removes one that has. */
export const dueLater = (
  { times }: DueRuns,
  { revision, runId }: Pick<RunHead, "revision" | "runId">,
  now: number
): number | undefined => {
  const time = times.get(runId)
  if (time !== undefined && time.until > now) return time.revision === revision ? time.until : undefined
  times.delete(runId)
  return undefined
}

/** Sets the due time of a run. If there are too many runs, those with the latest times are dropped. */
export const setDue = (
  { added, times }: DueRuns,
  { revision, runId }: Pick<RunHead, "revision" | "runId">,
  until: number
): void => {
  times.set(runId, { revision, until })
  added.openUnsafe()
  if (times.size < 2 * most) return
  const furthest = [...times].sort(([, a], [, b]) => b.until - a.until).slice(0, times.size - most)
  for (const [forgotten] of furthest) times.delete(forgotten)
}

/** Leaves a run alone for a while that could not be resumed or failed. */
export const defer = (due: DueRuns, head: Pick<RunHead, "revision" | "runId">): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeMillis, (now) => setDue(due, head, now + deferredMs))

/** How long a run is left alone that could not be resumed, failed or declined. */
export const deferredMs = 30_000

/** Waits until a run is due, and removes it from the list. */
export const nextDue = Effect.fnUntraced(function* ({ added, times }: DueRuns): Effect.fn.Return<string> {
  for (;;) {
    added.closeUnsafe()
    const nearest = nearestOf(times)
    if (nearest === undefined) {
      yield* added.await
      continue
    }
    const wait = Math.max(0, nearest.until - (yield* Clock.currentTimeMillis))
    const isDue = yield* Effect.raceFirst(Effect.as(Effect.sleep(wait), true), Effect.as(added.await, false))
    if (!isDue) continue
    times.delete(nearest.runId)
    return nearest.runId
  }
})

const most = 10_000

/** Returns the run that is due first. */
const nearestOf = (times: DueRuns["times"]): { readonly runId: string; readonly until: number } | undefined => {
  let nearest: { readonly runId: string; readonly until: number } | undefined
  for (const [runId, { until }] of times) {
    if (until < (nearest?.until ?? Infinity)) nearest = { runId, until }
  }
  return nearest
}

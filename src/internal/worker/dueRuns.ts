/**
 * Runs that need a driver at a known time. A single timer waits for the nearest one.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { RunHead } from "../../RunStore.ts"
import { monotonic } from "../../kit/time.ts"

/** Runs by id, each with the time at which it is due. */
export interface DueRuns {
  readonly times: Map<string, Time>
  /** Opened when a run is added. */
  readonly added: Latch.Latch
  readonly clock: Clock.Clock
}

/**
 * A due time in milliseconds since the epoch, for a run at this revision. An infinite time is never due. `at` is the same
 * by the monotonic clock, so that a clock that is set back delays nothing.
 */
interface Time {
  readonly revision: number
  readonly until: number
  readonly at: number
}

/** Creates an empty list of due runs. */
export const make = (clock: Clock.Clock): DueRuns => ({
  times: new Map(),
  added: Latch.makeUnsafe(),
  clock
})

/** Returns how many milliseconds are left until a due time: by the earlier one of its clocks. */
const leftUntil = ({ clock }: DueRuns, { at, until }: Time): number =>
  Math.min(until - clock.currentTimeMillisUnsafe(), at - monotonic(clock))

/** Returns the due time of a run at its current revision, if it is known and has not come yet. Removes one that has. */
export const dueLater = (
  due: DueRuns,
  { revision, runId }: Pick<RunHead, "revision" | "runId">
): number | undefined => {
  const time = due.times.get(runId)
  if (time !== undefined && leftUntil(due, time) > 0) return time.revision === revision ? time.until : undefined
  due.times.delete(runId)
  return undefined
}

/** Sets the due time of a run. If there are too many runs, those with the latest times are dropped. */
export const setDue = (due: DueRuns, { revision, runId }: Pick<RunHead, "revision" | "runId">, until: number): void => {
  const { added, clock, times } = due
  const known = times.get(runId)
  if (known?.revision === revision && known.until === until) return
  times.set(runId, { revision, until, at: monotonic(clock) + until - clock.currentTimeMillisUnsafe() })
  added.openUnsafe()
  if (times.size < 2 * most) return
  const furthest = [...times].sort(([, a], [, b]) => b.until - a.until).slice(0, times.size - most)
  for (const [forgotten] of furthest) times.delete(forgotten)
}

/** Leaves a run alone for a while that could not be resumed or failed, for a moment if the store was away. */
export const defer = (due: DueRuns, head: Pick<RunHead, "revision" | "runId">, isMoment = false): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeMillis, (now) => setDue(due, head, now + (isMoment ? momentMs : deferredMs)))

const momentMs = 2_000

/** How long a run is left alone that could not be resumed, failed or declined. */
export const deferredMs = 30_000

/** Waits until a run is due, and removes it from the list. */
export const nextDue = Effect.fnUntraced(function* (due: DueRuns): Effect.fn.Return<string> {
  const { added, times } = due
  for (;;) {
    added.closeUnsafe()
    const nearest = nearestOf(due)
    if (nearest === undefined) {
      yield* added.await
      continue
    }
    const wait = Effect.sleep(Math.max(0, nearest.left))
    const isDue = yield* Effect.raceFirst(Effect.as(wait, true), Effect.as(added.await, false))
    if (!isDue) continue
    times.delete(nearest.runId)
    return nearest.runId
  }
})

const most = 10_000

/** Returns the run that is due first, and the milliseconds until then. */
const nearestOf = (due: DueRuns): { readonly runId: string; readonly left: number } | undefined => {
  let nearest: { readonly runId: string; readonly left: number } | undefined
  for (const [runId, time] of due.times) {
    const left = leftUntil(due, time)
    if (left < (nearest?.left ?? Infinity)) nearest = { runId, left }
  }
  return nearest
}

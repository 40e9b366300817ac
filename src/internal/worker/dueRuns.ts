/**
 * Runs, each with the time at which it is looked at again. One timer waits for the nearest time, however many there are.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { RunHead } from "../../RunStore.ts"

/** Runs by their ids. */
export interface DueRuns {
  readonly times: Map<string, Time>
  /** Opened when a run is added. */
  readonly added: Latch.Latch
}

/** A time in milliseconds since the epoch, for a run at this revision. */
export interface Time {
  readonly revision: number
  readonly until: number
}

export const make = (): DueRuns => ({ times: new Map(), added: Latch.makeUnsafe() })

/** Notes the time of a run. Among very many runs, those whose time is furthest are forgotten. */
export const set = (
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

const most = 10_000

/** Waits until the time of a run has come, and forgets the run. */
export const next = Effect.fnUntraced(function* ({ added, times }: DueRuns): Effect.fn.Return<string> {
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

/** The run whose time comes first. Some have no end to wait for. */
const nearestOf = (times: DueRuns["times"]): { readonly runId: string; readonly until: number } | undefined => {
  let nearest: { readonly runId: string; readonly until: number } | undefined
  for (const [runId, { until }] of times) {
    if (until < (nearest?.until ?? Infinity)) nearest = { runId, until }
  }
  return nearest
}

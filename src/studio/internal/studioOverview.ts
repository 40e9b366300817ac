/** Counts of runs over time and what they used, for the overview of the page. */

import * as Effect from "effect/Effect"
import type { StoreError } from "../../KernelError.ts"
import {
  type CountRange,
  isPoisoned,
  type RunCount,
  type RunHead,
  type RunSpending,
  type RunStoreShape
} from "../../RunStore.ts"

/** The root runs of a range by slot, agent and status, and what those used that have ended, if the store sums it. */
export interface Overview extends CountRange {
  readonly counts: ReadonlyArray<RunCount>
  readonly spending?: ReadonlyArray<RunSpending>
}

/** Returns the overview of a range. Stores without counts are counted from their lists. */
export const overviewOf = (store: RunStoreShape, range: CountRange): Effect.Effect<Overview, StoreError> =>
  Effect.all([
    store.counts?.(range) ?? Effect.map(store.list({ roots: true }), (heads) => counted(heads, range)),
    store.spending?.(range) ?? Effect.undefined
  ]).pipe(Effect.map(([counts, spending]) => ({ ...range, counts, ...(spending === undefined ? {} : { spending }) })))

/** Counts heads like the query of a database. */
export const counted = (heads: ReadonlyArray<RunHead>, { from, slots, to }: CountRange): ReadonlyArray<RunCount> => {
  const counts = new Map<string, RunCount>()
  for (const head of heads) {
    const { agent, createdAt } = head
    if (createdAt < from || createdAt >= to) continue
    const slot = Math.floor(((createdAt - from) * slots) / (to - from))
    const status = statusOf(head)
    const key = JSON.stringify([slot, agent, status])
    counts.set(key, { slot, agent, status, count: (counts.get(key)?.count ?? 0) + 1 })
  }
  return [...counts.values()]
}

const statusOf = ({ status }: RunHead): RunCount["status"] => {
  if (isPoisoned(status)) return "poisoned"
  return status.type === "queued" || status.type === "interrupted" ? "running" : status.type
}

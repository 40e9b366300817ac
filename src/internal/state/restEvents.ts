/**
 * The events at which a run comes to rest.
 */

import type { PhaseEvent } from "../../RunRecord.ts"

/** Tells whether a run is at rest after an event: it waits, or it has ended for the time being. */
export const isRest = ({ type }: { readonly type: string }): boolean => rests.has(type)

const rests: ReadonlySet<string> = new Set<PhaseEvent["type"]>([
  "paused",
  "run_completed",
  "run_failed",
  "run_cancelled"
])

/**
 * The delta of a run's next record: what is decided before the record it belongs to. The next record clears it.
 */

import type { Delta } from "../../RunState.ts"
import type { JsonObject } from "../base/json.ts"
import type { Run } from "./run.ts"

/** A delta without changes. */
export const nothing: Delta = {}

/** Adds to the delta of the next record. Synchronous. */
export const carry = (run: Run, delta: Delta): void => {
  run.next = { ...run.next, ...delta }
}

/** Takes fields back out of the delta of the next record. Synchronous. */
export const drop = (run: Run, field: keyof Delta): void => {
  const { [field]: _, ...rest } = run.next
  run.next = Object.keys(rest).length === 0 ? nothing : rest
}

/** Merges into the context of the run, now and with the next record. Synchronous. */
export const mergeContext = (run: Run, context: JsonObject): void => {
  carry(run, { context: { ...run.next.context, ...context } })
  run.state.context = { ...run.state.context, ...context }
}

/**
 * The pause of a run whose calls wait for a person.
 */

import type { RunPaused } from "../../KernelError.ts"
import type { Stop } from "../../RunState.ts"
import { type Json, isJsonObject } from "../../kit/json.ts"

/** Calls that wait for a person, themselves or in their child run, by id. */
export type Waits = ReadonlyMap<string, RunPaused>

/** Returns the pause of a run whose children wait, with their questions in the order of the calls. */
export const questionsOf = (order: ReadonlyArray<string>, waits: Waits): Stop | undefined =>
  order.reduce<Stop | undefined>((stop, callId) => {
    const waiting = waits.get(callId)
    return waiting === undefined ? stop : alsoAsking(stop, waiting)
  }, undefined)

/** Adds the questions of a child to a pause with the same reason. */
const alsoAsking = (before: Stop | undefined, { metadata, reason }: RunPaused): Stop =>
  before === undefined
    ? { type: "pause", reason, metadata }
    : before.type === "pause" && before.reason === reason
      ? { ...before, metadata: joined(before.metadata ?? null, metadata) }
      : before

const joined = (a: Json, b: Json): Json => {
  if (!isJsonObject(a) || !isJsonObject(b)) return a
  const lists = Object.entries(b).flatMap(([key, value]) => {
    const known = a[key]
    return Array.isArray(known) && Array.isArray(value) ? [[key, [...known, ...value]] as const] : []
  })
  return { ...a, ...Object.fromEntries(lists) }
}

/**
 * Publishes the events of a run in the order in which they happen: none before the records that it follows are stored.
 */

import type { RunEvent } from "../../RunEvent.ts"
import { stepOf } from "../state/state.ts"
import type { LiveEvent } from "./drafts.ts"
import { now, type Run } from "./run.ts"

/** Publishes an event that is not part of the journal, after all events that wait for the store. Synchronous. */
export const emit = (run: Run, event: LiveEvent): void => {
  if (run.live.publish === undefined) return
  const { depth, rootRunId, runId, taskId } = run.state
  const published: RunEvent = { runId, rootRunId, step: stepOf(run.state), depth, taskId, at: timeOf(run), ...event }
  if (run.records.length + run.events.length > 0) run.events.push(published)
  else run.live.publish(published, run.agent.name)
}

/** Publishes the events of stored records, and those after them that wait for no other record. */
export const publish = (run: Run, stored: number): void => {
  const count = run.records.length === 0 ? run.events.length : stored
  const events = run.events.splice(0, count)
  if (run.live.publish !== undefined) for (const event of events) run.live.publish(event, run.agent.name)
}

/** Everything that is stored together has one time. */
export const timeOf = (run: Run): number => run.records.at(-1)?.createdAt ?? now(run)

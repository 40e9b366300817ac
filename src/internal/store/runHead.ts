/**
 * The head of a run: what a list tells of it, which ones a filter asks for, and in which order.
 */

import type { Lease, RunFilter, RunHead } from "./runStoreTypes.ts"
import type { RunState } from "../../RunState.ts"
import { turnCount } from "../../RunState.ts"

/** The head of a state. */
export const headOf = (state: RunState, lease?: Lease | undefined): RunHead => ({
  runId: state.runId,
  rootRunId: state.rootRunId,
  parentRunId: state.parentRunId,
  agent: state.agent,
  revision: state.revision,
  status: state.status,
  turns: turnCount(state),
  createdAt: state.createdAt,
  updatedAt: state.updatedAt,
  lease
})

/** Tells whether a head passes a filter, apart from its `search`. */
export const matches = (head: RunHead, filter: RunFilter): boolean =>
  (filter.status === undefined || filter.status.includes(head.status.type)) &&
  (filter.agent === undefined || filter.agent === head.agent) &&
  (filter.rootRunId === undefined || filter.rootRunId === head.rootRunId) &&
  (filter.roots !== true || head.parentRunId === undefined) &&
  (filter.updatedBefore === undefined || head.updatedAt < filter.updatedBefore) &&
  (filter.after === undefined || inOrder(filter)(filter.after, head) < 0) &&
  (filter.unleased !== true || head.lease?.isLive !== true)

/** How many heads a filter takes: all without a limit, none for less than one. */
export const atMost = ({ limit = Infinity }: RunFilter): number =>
  limit >= 1 ? Math.min(Math.floor(limit), Number.MAX_SAFE_INTEGER) : 0

/** The order a filter asks for, as a comparison. */
export const inOrder =
  ({ order }: RunFilter) =>
  (a: Pick<RunHead, "createdAt" | "runId">, b: Pick<RunHead, "createdAt" | "runId">): number =>
    (order === "oldest" ? a.createdAt - b.createdAt : b.createdAt - a.createdAt) ||
    (a.runId < b.runId ? -1 : a.runId > b.runId ? 1 : 0)

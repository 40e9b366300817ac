/**
 * The head of a run: how it stands without its journal, which heads a filter selects, and in which order. A search reads
 * the question and the answer of a run, and nothing in between.
 */

import { type RunState, type Status, answer, turnCount } from "../../RunState.ts"
import type { Lease, RunFilter, RunHead, RunStatus } from "./runStoreTypes.ts"

/** The part of a head that follows from the journal alone. */
export interface JournalHead extends Omit<RunHead, "status" | "lease"> {
  readonly status: Status
}

/** The head of a state, as far as it follows from the journal. */
export const journalHeadOf = (state: RunState): JournalHead => ({
  runId: state.runId,
  rootRunId: state.rootRunId,
  parentRunId: state.parentRunId,
  agent: state.agent,
  revision: state.revision,
  status: state.status,
  turns: turnCount(state),
  createdAt: state.createdAt,
  updatedAt: state.updatedAt
})

/** The head of a state under a lease. */
export const headOf = (state: RunState, lease?: Lease | undefined): RunHead => underLease(journalHeadOf(state), lease)

/** Completes the head of a journal with the lease of its run. */
export const underLease = (head: JournalHead, lease: Lease | undefined): RunHead => ({
  ...head,
  status: statusOf(head.status, lease),
  lease
})

/** Returns the journal status of a run that stands like this. */
export const journalStatus = (word: RunStatus["type"]): Status["type"] => {
  if (word === "queued" || word === "interrupted") return "running"
  return word === "waiting" ? "paused" : word
}

/** Whether a head passes a filter, apart from its `search`. */
export const matches = (head: RunHead, filter: RunFilter): boolean =>
  (filter.status === undefined || filter.status.includes(head.status.type)) &&
  (filter.agent === undefined || filter.agent === head.agent) &&
  (filter.prefix === undefined || head.runId.startsWith(filter.prefix)) &&
  (filter.rootRunId === undefined || filter.rootRunId === head.rootRunId) &&
  (filter.roots !== true || head.parentRunId === undefined) &&
  (filter.updatedBefore === undefined || head.updatedAt < filter.updatedBefore) &&
  (filter.after === undefined || inOrder(filter)(filter.after, head) < 0) &&
  (filter.unleased !== true || head.lease?.isLive !== true)

/** The position of a head in a list. */
export type Place = Pick<RunHead, "createdAt" | "runId">

/** The position after a page, as a text for clients. */
export const placeText = ({ createdAt, runId }: Place): string => `${createdAt}.${runId}`

/** Reads the position after a page. Undefined if the text is invalid. */
export const placeIn = (text: string): Place | undefined => {
  const [, createdAt, runId] = /^(\d{1,15})\.(.+)$/.exec(text) ?? []
  return createdAt === undefined || runId === undefined ? undefined : { createdAt: Number(createdAt), runId }
}

/** How many heads a filter selects: all without a limit, none for less than one. */
export const atMost = ({ limit = Infinity }: RunFilter): number =>
  limit >= 1 ? Math.min(Math.floor(limit), Number.MAX_SAFE_INTEGER) : 0

/** The order of a filter, as a comparison. */
export const inOrder =
  ({ order }: RunFilter) =>
  (a: Pick<RunHead, "createdAt" | "runId">, b: Pick<RunHead, "createdAt" | "runId">): number =>
    (order === "oldest" ? a.createdAt - b.createdAt : b.createdAt - a.createdAt) ||
    (a.runId < b.runId ? -1 : a.runId > b.runId ? 1 : 0)

/**
 * The text that is searched: the answer, then the question, at most 65,536 characters, in lower case and without
 * characters that databases reject.
 */
export const searchText = (state: RunState): string => {
  const asked = state.input.slice(state.history).flatMap((message) => message.content)
  const texts = asked.map((content) => (content.type === "text" ? content.text : ""))
  return clean([answer(state) ?? "", ...texts].join("\n").slice(0, 65_536))
}

/** The separate words of a search. */
export const searchWords = (search: string | undefined): ReadonlyArray<string> =>
  search === undefined
    ? []
    : clean(search)
        .split(/\s+/)
        .filter((word) => word !== "")

/** Whether all words occur in the question and the answer. */
export const mentions = (state: RunState, wanted: ReadonlyArray<string>): boolean => {
  if (wanted.length === 0) return true
  const text = searchText(state)
  return wanted.every((word) => text.includes(word))
}

/** Returns how a run stands. This follows from its journal and, while the run can continue, also from its lease. */
const statusOf = (status: Status, lease: Lease | undefined): RunStatus => {
  if (status.type === "paused") return { ...status, type: "waiting" }
  if (status.type !== "running" || lease === undefined) return status
  const { phase } = status
  const { expiresAt, isLive, since, workerId: by } = lease
  if (expiresAt === 0) return { type: "queued", phase }
  if (!isLive) return { type: "interrupted", phase, by }
  return { type: "running", phase, by, ...(since === undefined ? {} : { since }) }
}

const clean = (text: string): string => text.toLowerCase().replaceAll("\u0000", " ").toWellFormed()

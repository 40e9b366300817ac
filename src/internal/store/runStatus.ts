/**
 * The status of a run as stores list it: from its journal and, while the run can continue, from its lease.
 */

import type { Status } from "../../RunState.ts"
import { type Json, jsonObject } from "../../kit/json.ts"
import type { Lease, RunFilter, RunStatus, StatusWord } from "./runStoreTypes.ts"

/**
 * A status in the rows of a store, which does not change with a lease.
 *
 * @category models
 * @since 0.1.0
 */
export type StoredStatus = Status["type"] | "no_answer" | "poisoned"

/** Returns the status of a run from its journal and, while the run can continue, from its lease. */
export const statusOf = (status: Status, lease?: Lease | undefined): RunStatus => {
  if (status.type === "paused") return { ...status, type: "waiting" }
  if (status.type === "completed" && status.source === "max_turns") return outOfSteps(status)
  if (status.type === "failed" && gaveNoAnswer(status)) {
    const { corrective } = status.error.fields ?? {}
    return { ...status, type: "no_answer", reason: typeof corrective === "string" ? corrective : status.error.message }
  }
  if (status.type !== "running" || lease === undefined) return status
  const { phase } = status
  const { expiresAt, isLive, since, workerId: by } = lease
  if (expiresAt === 0) return { type: "queued", phase, ...(isUnplaced(lease) ? { reason: by } : {}) }
  if (!isLive) return { type: "interrupted", phase, by }
  return { type: "running", phase, by, ...(since === undefined ? {} : { since }) }
}

/**
 * Returns the name in the offer of a run that no runner of a cluster can execute. It is shown as the reason for which the
 * run stays queued.
 */
export const unplaced = (agent: string): string => `${noRunner}${agent}`

const noRunner = "no runner has agent "

const isUnplaced = ({ workerId }: Lease): boolean => workerId.startsWith(noRunner)

const outOfSteps = ({ createdAt, phase, reason }: Extract<Status, { readonly type: "completed" }>): RunStatus => {
  const message = "The run took as many turns as it may, without an answer."
  const fields = reason === undefined ? {} : { fields: { corrective: reason } }
  const error = { tag: stepLimit, message, ...fields }
  return { type: "no_answer", phase, reason: reason ?? message, error, createdAt }
}

const stepLimit = "MaxStepsReached"

/** Returns whether a failed run got replies, but no answer. */
const gaveNoAnswer = ({ error }: Extract<Status, { readonly type: "failed" }>): boolean =>
  unanswered.has(error.tag) || (error.tag === "ProviderError" && refused.has(error.fields?.["reason"]))

const unanswered: ReadonlySet<string> = new Set(["EmptyReplies", "CutReplies", "LoopDetected"])

const refused: ReadonlySet<unknown> = new Set(["content_filter", "refusal"])

/** Returns whether a run has ended for good, so that no worker continues it and no follower waits for it. */
export const isEnded = (status: {
  readonly type: RunStatus["type"]
  readonly error?: { readonly tag: string }
}): boolean =>
  status.type === "completed" ||
  status.type === "cancelled" ||
  (status.type === "no_answer" && status.error?.tag === stepLimit)

/** Returns whether a run has failed, or got no answer, and would continue if it is resumed. */
export const hasFailed = (status: RunStatus): status is Extract<RunStatus, { readonly error: unknown }> =>
  status.type === "failed" || (status.type === "no_answer" && !isEnded(status))

/** Returns whether workers gave up a run because their processes died of it. */
export const isPoisoned = (status: RunStatus): boolean => status.type === "failed" && status.error.tag === "RunPoisoned"

/**
 * Returns the earliest deadline of a waiting run's questions, in milliseconds since the epoch. Undefined if none has a
 * deadline.
 *
 * @category getters
 * @since 0.1.0
 */
export const answerBy = ({ status }: { readonly status: RunStatus | Status }): number | undefined =>
  status.type === "waiting" || status.type === "paused" ? deadlineIn(status.metadata) : undefined

const deadlineIn = (metadata: Json): number | undefined => {
  const { questions } = jsonObject(metadata)
  if (!Array.isArray(questions)) return undefined
  const times = questions.map((question) => jsonObject(question)["answerBy"]).filter((time) => typeof time === "number")
  return times.length === 0 ? undefined : Math.min(...times)
}

/** Returns whether a filter selects a status. */
export const selects = ({ status: words }: Pick<RunFilter, "status">, status: RunStatus): boolean =>
  words === undefined || words.includes(status.type) || (words.includes("poisoned") && isPoisoned(status))

/** Returns the status of a run for the rows of a store. */
export const storedStatus = (status: Status): StoredStatus => {
  const standing = statusOf(status)
  return isPoisoned(standing) ? "poisoned" : stored[standing.type][0]
}

/** Returns the statuses that the row of a run with this status may have. */
export const storedStatuses = (word: StatusWord): ReadonlyArray<StoredStatus> => stored[word]

const stored: { readonly [Word in StatusWord]: readonly [StoredStatus, ...ReadonlyArray<StoredStatus>] } = {
  queued: ["running"],
  running: ["running"],
  interrupted: ["running"],
  waiting: ["paused"],
  cancelled: ["cancelled"],
  completed: ["completed"],
  no_answer: ["no_answer"],
  failed: ["failed", "poisoned"],
  poisoned: ["poisoned"]
}

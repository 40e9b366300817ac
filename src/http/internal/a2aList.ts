/** Lists the tasks of a caller for A2A clients, most recently changed first. */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../../kit/json.ts"
import { type Place, inOrder, placeIn, placeText } from "../../store-kit/StoreRules.ts"
import type { RunStatus } from "../../RunStore.ts"
import { type HttpProblem, Invalid } from "../HttpProblem.ts"
import type { Head } from "../RunBodies.ts"
import type { CallerRuns } from "../ServedRuns.ts"
import * as Tasks from "./a2aTask.ts"
import * as Conversations from "./conversations.ts"

const Length = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** The parameters of a list. */
export const ListOf = Schema.Struct({
  contextId: Schema.optionalKey(Schema.String),
  status: Schema.optionalKey(Schema.String),
  pageSize: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
  pageToken: Schema.optionalKey(Schema.String),
  historyLength: Schema.optionalKey(Length),
  statusTimestampAfter: Schema.optionalKey(Schema.DateFromString),
  includeArtifacts: Schema.optionalKey(Schema.Boolean)
})

/** Returns a page of the caller's tasks, among the newest 1,000 that fit. */
export const listOf = Effect.fnUntraced(function* (
  runs: CallerRuns,
  agent: string,
  urlOf: Tasks.UrlOf,
  asked: typeof ListOf.Type
): Effect.fn.Return<JsonObject, HttpProblem> {
  const { contextId = "", historyLength = 0, includeArtifacts, pageSize = 50, pageToken = "" } = asked
  const after = pageToken === "" ? undefined : placeIn(pageToken)
  if (pageToken !== "" && after === undefined) return yield* new Invalid({ detail: "'pageToken' is not a page token" })
  const since = asked.statusTimestampAfter?.getTime() ?? -Infinity
  const found = yield* runs.list({
    agent,
    limit: most,
    status: yield* wordsOf(asked.status),
    ...(contextId === "" ? {} : { prefix: Conversations.nameOf(contextId) })
  })
  const heads = found.runs.filter((head) => head.updatedAt >= since).sort((a, b) => newest(placeOf(a), placeOf(b)))
  const rest = after === undefined ? heads : heads.filter((head) => newest(after, placeOf(head)) < 0)
  const page = rest.slice(0, pageSize)
  const last = page.at(-1)
  return {
    tasks: yield* Effect.forEach(page, (head) => Tasks.ofHead(runs, head, urlOf, { historyLength, includeArtifacts })),
    nextPageToken: rest.length > pageSize && last !== undefined ? placeText(placeOf(last)) : "",
    pageSize,
    totalSize: heads.length
  }
})

const most = 1_000

const newest = inOrder({})

/** The place of a task in the list: tasks are ordered by their last change. */
const placeOf = ({ runId, updatedAt }: Head): Place => ({ createdAt: updatedAt, runId })

/** Returns the statuses of the runs in a task state, or undefined for any state. */
const wordsOf = (
  state: string | undefined
): Effect.Effect<ReadonlyArray<RunStatus["type"]> | undefined, HttpProblem> => {
  if (state === undefined || state === "TASK_STATE_UNSPECIFIED") return Effect.undefined
  const words = states.get(state)
  return words === undefined
    ? Effect.fail(new Invalid({ detail: "'status' is not a task state" }))
    : Effect.succeed(words)
}

const states: ReadonlyMap<string, ReadonlyArray<RunStatus["type"]>> = new Map([
  ["TASK_STATE_SUBMITTED", ["queued"]],
  ["TASK_STATE_WORKING", ["running", "interrupted"]],
  ["TASK_STATE_INPUT_REQUIRED", ["waiting"]],
  ["TASK_STATE_COMPLETED", ["completed"]],
  ["TASK_STATE_FAILED", ["failed", "no_answer"]],
  ["TASK_STATE_CANCELED", ["cancelled"]],
  ["TASK_STATE_REJECTED", []],
  ["TASK_STATE_AUTH_REQUIRED", []]
])

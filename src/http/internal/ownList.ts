/**
 * Pages of the runs of a caller.
 */

import * as Effect from "effect/Effect"
import { placeIn, placeText } from "../../internal/store/runHead.ts"
import type { RunFilter, RunHead } from "../../RunStore.ts"
import type { Caller } from "../Access.ts"
import { type HttpProblem, Invalid } from "../HttpProblem.ts"
import type * as Bodies from "../RunBodies.ts"
import type { Desk } from "./desk.ts"
import { asProblem } from "./problems.ts"
import { isOwn, runIdOf } from "./runNames.ts"
import { outward } from "./shownEvents.ts"

/** Returns a page of the runs of a caller. */
export const listOf = Effect.fnUntraced(function* (
  { store }: Desk,
  caller: Caller,
  { after, agent, limit = 20, rootRunId, status }: Bodies.ListQuery
): Effect.fn.Return<Bodies.RunList, HttpProblem> {
  const filter: RunFilter = {
    agent,
    ...(rootRunId === undefined ? { roots: true } : { rootRunId: runIdOf(caller, rootRunId) }),
    ...(status === undefined ? {} : { status: [status] })
  }
  let place = after === undefined ? undefined : placeIn(after)
  if (after !== undefined && place === undefined) return yield* new Invalid({ detail: "'after' is no page" })
  const found: Array<RunHead> = []
  for (;;) {
    const page = yield* asProblem("list")(store.list({ ...filter, after: place, limit: pageSize }))
    found.push(...page.filter((head) => isOwn(caller, head.rootRunId)))
    place = page.at(-1)
    if (found.length > limit || page.length < pageSize) break
  }
  const runs = found.slice(0, limit)
  const last = runs.at(-1)
  return {
    runs: runs.map((head) => bodyOf(caller, head)),
    ...(found.length > limit && last !== undefined ? { next: placeText(last) } : {})
  }
})

const pageSize = 100

/** A head for a caller, without the workers of the server. */
export const bodyOf = (
  { isOperator = false }: Caller,
  { agent, createdAt, parentRunId, revision, rootRunId, runId, status, turns, updatedAt }: RunHead
): Bodies.Head => ({
  runId,
  rootRunId,
  ...(parentRunId === undefined ? {} : { parentRunId }),
  agent,
  revision,
  status: {
    type: status.type,
    ...("reason" in status && status.reason !== undefined ? { reason: status.reason } : {}),
    ...(status.type === "failed" ? { error: isOperator ? status.error : outward(status.error) } : {})
  },
  turns,
  createdAt,
  updatedAt
})

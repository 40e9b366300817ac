/** Pages of the runs of a caller. Run ids begin with the caller's id, so the store reads no other runs. */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import { labelsIn } from "../../Caller.ts"
import { placeIn, placeText } from "../../store-kit/StoreRules.ts"
import type { RunHead } from "../../RunStore.ts"
import type { Caller } from "../Access.ts"
import { type HttpProblem, Invalid } from "../HttpProblem.ts"
import type * as Bodies from "../RunBodies.ts"
import type { Selection } from "../ServedRuns.ts"
import type { ServerResources } from "./serverResources.ts"
import { asProblem } from "../HttpProblem.ts"
import { isOwn, runIdOf } from "./runNames.ts"
import { outward } from "./shownEvents.ts"

/** Returns a page of the runs of a caller. */
export const listOf = Effect.fnUntraced(function* (
  { store }: ServerResources,
  caller: Caller,
  { after, agent, label = [], limit = 20, prefix = "", rootRunId, status, tenant }: Selection
): Effect.fn.Return<Bodies.RunList, HttpProblem> {
  const place = after === undefined ? undefined : placeIn(after)
  if (after !== undefined && place === undefined) return yield* new Invalid({ detail: "'after' is not a page" })
  const labels = labelsIn(Arr.ensure(label))
  if (labels === undefined) return yield* new Invalid({ detail: "'label' must be <name>=<text>, each name once" })
  const page = yield* asProblem("list")(
    store.list({
      agent,
      tenant,
      labels,
      after: place,
      // One more run shows whether there is a next page.
      limit: limit + 1,
      ...(rootRunId === undefined
        ? { roots: true, prefix: runIdOf(caller, prefix) }
        : { rootRunId: runIdOf(caller, rootRunId) }),
      ...(status === undefined ? {} : { status: Arr.ensure(status) })
    })
  )
  const runs = page.slice(0, limit).filter((head) => isOwn(caller, head.rootRunId))
  const last = page[limit - 1]
  return {
    runs: runs.map((head) => bodyOf(caller, head)),
    ...(page.length > limit && last !== undefined ? { next: placeText(last) } : {})
  }
})

/** Returns a head for a caller, without the workers of the server. */
export const bodyOf = (
  { isOperator = false }: Caller,
  { agent, caller, createdAt, parentRunId, revision, rootRunId, runId, status, turns, updatedAt, version }: RunHead
): Bodies.Head => ({
  runId,
  rootRunId,
  ...(parentRunId === undefined ? {} : { parentRunId }),
  agent,
  ...(version === undefined ? {} : { version }),
  ...(caller?.tenant === undefined ? {} : { tenant: caller.tenant }),
  ...(caller?.labels === undefined ? {} : { labels: caller.labels }),
  revision,
  status: statusFor(isOperator, status),
  turns,
  createdAt,
  updatedAt
})

/** Returns a status for a caller. Only operators read the text of an error and the last correction of the model. */
const statusFor = (isOperator: boolean, status: RunHead["status"]): Bodies.Head["status"] => {
  const { type } = status
  if ("error" in status) {
    const error = isOperator ? status.error : outward(status.error)
    return { type, error, ...(type === "no_answer" ? { reason: isOperator ? status.reason : error.message } : {}) }
  }
  return { type, ...("reason" in status && status.reason !== undefined ? { reason: status.reason } : {}) }
}

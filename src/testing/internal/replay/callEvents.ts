/**
 * The events of the skills of a replayed run, which are not stored: made of the calls and their recorded results.
 */

import * as Calls from "../../../Call.ts"
import type { CallResult } from "../../../Call.ts"
import type { Content } from "../../../Content.ts"
import type { ToolRun } from "../../../Middleware.ts"
import type { RunEvent } from "../../../RunEvent.ts"
import type { RunScope } from "../../../RunRecord.ts"

/** A call, and where and when it happens. */
interface Replayed {
  readonly call: ToolRun["call"]
  readonly scope: RunScope
}

/** Returns the event of a skill that starts. None for another call, and for one that was refused without running. */
export const startOf = ({ call, scope }: Replayed, result: CallResult | undefined): ReadonlyArray<RunEvent> => {
  const { callId, input, kind, name } = call
  const isRefused = result?.error !== undefined && result.durationMs === undefined
  return kind !== "skill" || isRefused ? none : [{ ...scope, type: "skill_execute", skill: name ?? "", callId, input }]
}

/** Returns the event of a skill that ended, as its result was recorded. */
export const endOf = ({ call, scope }: Replayed, result: CallResult): ReadonlyArray<RunEvent> => {
  const { callId, kind, name } = call
  if (kind !== "skill") return none
  const { durationMs = 0, error, metadata, output = none } = result
  return error === undefined
    ? [
        {
          ...scope,
          type: "skill_result",
          skill: name ?? "",
          callId,
          output: valueOf(output),
          durationMs,
          ...(metadata === undefined ? {} : { metadata })
        }
      ]
    : [{ ...scope, type: "skill_error", skill: name, callId, error: error.message }]
}

/** Returns what a skill returned, as far as its contents say it: an object, or else their text. */
const valueOf = (output: ReadonlyArray<Content>): unknown => {
  const [first, ...others] = output
  return first?.type === "data" && others.length === 0 ? first.data : Calls.textOf({ output })
}

const none: ReadonlyArray<never> = []

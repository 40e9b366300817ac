/**
 * The scope of a skill that is called outside of a run.
 */

import type { CallScope } from "../../Skill.ts"

/** Returns a scope with the id of the call. Its other ids are empty. */
export const scopeOf = (callId: string): CallScope => ({
  runId: "",
  rootRunId: "",
  callId,
  idempotencyKey: callId,
  step: 0,
  depth: 0,
  taskId: undefined,
  runContext: {},
  dialect: "tools"
})

/**
 * Calls as a policy is asked about them.
 */
import type { Policy } from "kernai"

export const call = (
  name: string,
  input: Policy.PolicyCall["input"] = {},
  effects: Policy.PolicyCall["effects"] = "write"
): Policy.PolicyCall => ({
  runId: "r",
  rootRunId: "r",
  agent: "a",
  depth: 0,
  context: {},
  callId: "c",
  name,
  kind: "skill",
  input: input,
  effects
})

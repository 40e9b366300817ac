/** The status of a run without an answer, as callers over HTTP read it. */
import { assert, describe, it } from "@effect/vitest"
import { RunStore } from "kernai"
import { bodyOf } from "../../src/http/internal/ownList.ts"

const error = { tag: "MaxStepsReached", message: "too many turns", fields: {} }

const head: RunStore.RunHead = {
  runId: "ada~1",
  rootRunId: "ada~1",
  parentRunId: undefined,
  version: undefined,
  caller: undefined,
  agent: "clerk",
  revision: 9,
  status: { type: "no_answer", phase: "turn_completed", reason: "The schema needs 'city'.", error, createdAt: 1 },
  turns: 2,
  createdAt: 0,
  updatedAt: 1,
  lease: undefined
}

describe("the head of a run without an answer", () => {
  it("tells an operator the last correction, and a caller only that there is none", () => {
    const { status } = bodyOf({ id: "root", isOperator: true }, head)
    assert.deepStrictEqual(status, { type: "no_answer", reason: "The schema needs 'city'.", error })
    const message = "The run reached its maximum number of turns."
    assert.deepStrictEqual(bodyOf({ id: "ada" }, head).status, {
      type: "no_answer",
      reason: message,
      error: { tag: "MaxStepsReached", message }
    })
  })
})

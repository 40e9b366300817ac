/** Why a run failed, in the words of the studio and of `kernai runs show`. */
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { Call, KernelError, RunState } from "kernai"
import { causeOf, type FailureName, ofCall, ofDamage, ofError } from "../../src/studio/FailureCause.ts"

const infoOf = (error: KernelError.KernelError): RunState.ErrorInfo => ({
  tag: error._tag,
  message: error.message,
  fields: JSON.parse(JSON.stringify(error))
})

const provider = (reason: KernelError.ProviderReason, attempts?: number) =>
  new KernelError.ProviderError({
    provider: "openai",
    reason,
    detail: reason,
    ...(attempts === undefined ? {} : { attempts })
  })

const errors: ReadonlyArray<readonly [FailureName, KernelError.KernelError]> = [
  ["key missing", new KernelError.ProviderUnavailable({ provider: "openai", variable: "OPENAI_API_KEY" })],
  ["key missing", provider("authentication")],
  ["rate limit", provider("rate_limited", 4)],
  ["model unknown", provider("not_found")],
  ["model unknown", new KernelError.UnsupportedProvider({ provider: "opnai", supported: ["openai"] })],
  ["context too long", new KernelError.ContextWindowExceeded({ estimated: 9_000, limit: 8_000 })],
  ["context too long", provider("context_length")],
  ["content filter", provider("content_filter")],
  ["cut reply", provider("incomplete")],
  ["MCP server down", new KernelError.McpError({ server: "files", reason: "disconnected", detail: "files is gone" })],
  ["budget exhausted", new KernelError.BudgetExhaustedError({ dimension: "cost", used: 2, limit: 1 })],
  ["budget exhausted", new KernelError.DeadlineExceeded({ runId: "r", deadline: Duration.seconds(1) })],
  ["budget exhausted", new KernelError.MaxStepsReached({ runId: "r", limit: 3 })],
  ["lease lost", new KernelError.AgentCrashError({ runId: "r", agentId: "clerk" })],
  ["poisoned", new KernelError.RunPoisoned({ runId: "r", attempts: 7, turn: 1, phase: "turn_prepared", calls: [] })],
  ["damaged journal", new KernelError.StoreError({ operation: "read", reason: "corrupt", detail: "line 3" })],
  ["other failure", new KernelError.LoopDetected({ runId: "r", repeats: 3 })]
]

const turn: RunState.Turn = {
  turnId: "t1",
  turn: 1,
  attempt: 2,
  startedAt: 0,
  dialect: "blocks",
  tools: [],
  usage: null,
  pending: [],
  inFlight: [],
  completed: [],
  order: []
}

const running = { status: { type: "running", phase: "turn_started" }, turns: [] } as const

describe("the cause of a failure", () => {
  for (const [name, error] of errors) {
    it(`is '${name}' for ${error._tag} ${"reason" in error ? error.reason : ""}`, () => {
      const info = infoOf(error)
      const failed = { type: "failed", phase: "turn_started", error: info, createdAt: 0 } as const
      const cause = causeOf({ ...running, status: failed, currentTurn: undefined })
      assert.strictEqual(cause?.name, name)
      assert.strictEqual(cause?.cause, error.message)
      assert.isAbove(cause?.fix.length ?? 0, 10)
      assert.isAbove(cause?.part.length ?? 0, 2)
    })
  }

  const calls: ReadonlyArray<readonly [FailureName, string]> = [
    ["skill failed", "NoResult"],
    ["skill failed", "Defect"],
    ["skill timed out", "Timeout"],
    ["MCP server down", "McpError"],
    ["malformed call", "InvalidArguments"],
    ["malformed call", "ToolNotFound"]
  ]
  for (const [name, error] of calls) {
    it(`is '${name}' for a call with the error ${error}`, () => {
      const cause = ofCall("book", Call.error(error, "seat taken"))
      assert.deepInclude(cause, { name, cause: "seat taken", part: "call book" })
    })
  }

  it("names the variable that is not set, and how often the model was asked", () => {
    const [[, missing] = [], , [, limited] = []] = errors
    assert.ok(missing !== undefined && limited !== undefined)
    assert.include(ofError(infoOf(missing)).fix, "OPENAI_API_KEY")
    assert.strictEqual(ofError(infoOf(limited)).attempts, 4)
  })

  it("is found for a reply that was cut or cannot be read", () => {
    const outcome = (reason: "cut" | "plan") => ({ type: "corrective", reason, corrective: "Say it again." }) as const
    assert.deepInclude(causeOf({ ...running, currentTurn: { ...turn, outcome: outcome("cut") } }), {
      name: "cut reply",
      part: "reply of turn 1",
      attempts: 2
    })
    const malformed = causeOf({ ...running, currentTurn: { ...turn, outcome: outcome("plan") } })
    assert.strictEqual(malformed?.name, "malformed call")
  })

  it("is found for a failed call of a run that has not completed, and for a damaged journal", () => {
    const call = {
      callId: "c",
      name: "book",
      kind: "skill",
      input: {},
      error: Call.error("Timeout", "took long")
    } as const
    const cause = causeOf({ ...running, currentTurn: { ...turn, completed: [call] } })
    assert.deepInclude(cause, { name: "skill timed out", part: "call book" })
    assert.strictEqual(ofDamage("line 3 is no JSON").name, "damaged journal")
  })

  it("is absent for a run that completed or has no failure", () => {
    assert.isUndefined(causeOf({ ...running, currentTurn: turn }))
    const status = { type: "completed", phase: "turn_completed", source: "model_done", createdAt: 0 } as const
    assert.isUndefined(causeOf({ status, turns: [], currentTurn: undefined }))
  })
})

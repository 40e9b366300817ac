/** Why a run failed, in the words of the studio and of `kernai runs show`. */
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import { Call, KernelError, RunState } from "kernai"
import {
  causeOf,
  type FailureAction,
  type FailureName,
  ofCall,
  ofDamage,
  ofError,
  waitReason
} from "../../src/studio/FailureCause.ts"

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

const said = (reason: KernelError.ProviderReason, message: string) =>
  new KernelError.ProviderError({ provider: "openai", reason, detail: reason, vendor: { message } })

type Case = readonly [FailureName, FailureAction, KernelError.KernelError]

const errors: ReadonlyArray<Case> = [
  ["key missing", "retry", new KernelError.ProviderUnavailable({ provider: "openai", variable: "OPENAI_API_KEY" })],
  ["key missing", "retry", provider("not_configured")],
  ["key refused", "retry", provider("authentication")],
  ["no permission", "retry", provider("permission")],
  ["rate limit", "retry", provider("rate_limited", 4)],
  ["quota used up", "retry", provider("quota_exhausted")],
  ["vendor unavailable", "retry", provider("overloaded")],
  ["vendor unavailable", "retry", provider("disconnected")],
  ["model unknown", "retry", provider("not_found")],
  ["model unknown", "retry", new KernelError.UnsupportedProvider({ provider: "opnai", supported: ["openai"] })],
  ["context too long", "retry", new KernelError.ContextWindowExceeded({ estimated: 9_000, limit: 8_000 })],
  ["context too long", "retry", provider("context_length")],
  ["content filter", "fork", provider("content_filter")],
  ["media refused", "fork", said("invalid_request", "Invalid image: the file is not a valid PNG.")],
  ["request refused", "fork", said("invalid_request", "Unsupported value: temperature")],
  ["cut reply", "retry", provider("incomplete")],
  ["cut reply", "retry", new KernelError.CutReplies({ runId: "r", count: 3, finishReason: "length", text: "" })],
  ["empty replies", "retry", new KernelError.EmptyReplies({ runId: "r", count: 3 })],
  ["loop", "fork", new KernelError.LoopDetected({ runId: "r", repeats: 3 })],
  ["unusable answers", "retry", new KernelError.OutputInvalid({ runId: "r", detail: "expected a number" })],
  ["step limit", "rerun", new KernelError.MaxStepsReached({ runId: "r", limit: 3 })],
  [
    "MCP server down",
    "retry",
    new KernelError.McpError({ server: "files", reason: "disconnected", detail: "files is gone" })
  ],
  ["budget exhausted", "retry", new KernelError.BudgetExhaustedError({ dimension: "cost", used: 2, limit: 1 })],
  ["deadline passed", "retry", new KernelError.DeadlineExceeded({ runId: "r", deadline: Duration.seconds(1) })],
  ["lease lost", "retry", new KernelError.AgentCrashError({ runId: "r", agentId: "clerk" })],
  [
    "poisoned",
    "retry",
    new KernelError.RunPoisoned({ runId: "r", attempts: 7, turn: 1, phase: "turn_prepared", calls: [] })
  ],
  ["damaged journal", "fork", new KernelError.StoreError({ operation: "read", reason: "corrupt", detail: "line 3" })],
  ["other failure", "retry", new KernelError.SpawnDenied({ parentRun: "r", limit: 3 })]
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
  for (const [name, action, error] of errors) {
    it(`is '${name}' for ${error._tag} ${"reason" in error ? error.reason : ""}`, () => {
      const info = infoOf(error)
      const failed = { type: "failed", phase: "turn_started", error: info, createdAt: 0 } as const
      const cause = causeOf({ ...running, status: failed, currentTurn: undefined })
      assert.strictEqual(cause?.name, name)
      assert.strictEqual(cause?.cause, error.message)
      assert.strictEqual(cause?.action, action)
      assert.isAbove(cause?.fix.length ?? 0, 10)
      assert.isAbove(cause?.part.length ?? 0, 2)
    })
  }

  const calls: ReadonlyArray<readonly [FailureName, string]> = [
    ["skill failed", "NoResult"],
    ["skill failed", "Defect"],
    ["skill timed out", "Timeout"],
    ["MCP server down", "McpError"],
    ["wrong arguments", "InvalidArguments"],
    ["malformed call", "ToolNotFound"]
  ]
  for (const [name, error] of calls) {
    it(`is '${name}' for a call with the error ${error}`, () => {
      const cause = ofCall("book", Call.error(error, "seat taken"))
      assert.deepInclude(cause, { name, cause: "seat taken", part: "call book" })
    })
  }

  it("names the variable that is not set, and how often the model was asked", () => {
    const missing = new KernelError.ProviderUnavailable({ provider: "openai", variable: "OPENAI_API_KEY" })
    assert.include(ofError(infoOf(missing)).fix, "OPENAI_API_KEY")
    assert.strictEqual(ofError(infoOf(provider("rate_limited", 4))).attempts, 4)
  })

  it("has the vendor's own words", () => {
    const { vendor } = ofError(infoOf(said("authentication", "Incorrect API key provided: sk-…")))
    assert.deepStrictEqual(vendor, { name: "openai", message: "Incorrect API key provided: sk-…" })
    assert.isUndefined(ofError(infoOf(provider("authentication"))).vendor)
  })

  it("is that answers do not fit the schema, when they used up the turns", () => {
    const outcome = { type: "corrective", reason: "output", corrective: "expected a number" } as const
    const cause = ofError(infoOf(new KernelError.MaxStepsReached({ runId: "r", limit: 3 })), { ...turn, outcome })
    assert.deepInclude(cause, { name: "unusable answers", action: "rerun" })
  })

  it("is found for a reply that was cut or cannot be read", () => {
    const outcome = (reason: "cut" | "plan" | "empty" | "loop" | "output") =>
      ({ type: "corrective", reason, corrective: "Say it again." }) as const
    assert.deepInclude(causeOf({ ...running, currentTurn: { ...turn, outcome: outcome("cut") } }), {
      name: "cut reply",
      part: "reply of turn 1",
      attempts: 2
    })
    const malformed = causeOf({ ...running, currentTurn: { ...turn, outcome: outcome("plan") } })
    assert.strictEqual(malformed?.name, "malformed call")
    for (const [reason, name] of [
      ["empty", "empty replies"],
      ["loop", "loop"],
      ["output", "unusable answers"]
    ] as const) {
      assert.strictEqual(causeOf({ ...running, currentTurn: { ...turn, outcome: outcome(reason) } })?.name, name)
    }
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

  it("names the calls that a run waits for, and keeps the reason of a hook", () => {
    const metadata = { questions: [{ name: "send" }, { name: "send" }, { name: "pay" }, null] }
    assert.strictEqual(waitReason({ reason: "approval_required", metadata }), "approval of send, pay")
    assert.strictEqual(waitReason({ reason: "approval_required" }), "an approval")
    assert.include(waitReason({ reason: "approval_not_run", metadata }), "approval of send, pay, since")
    assert.strictEqual(waitReason({ reason: "closed on Sundays", metadata }), "closed on Sundays")
  })

  it("is absent for a run that completed or has no failure", () => {
    assert.isUndefined(causeOf({ ...running, currentTurn: turn }))
    const status = { type: "completed", phase: "turn_completed", source: "model_done", createdAt: 0 } as const
    assert.isUndefined(causeOf({ status, turns: [], currentTurn: undefined }))
  })
})

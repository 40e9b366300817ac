import { assert, describe, it } from "@effect/vitest"
import { Console, Effect, Layer } from "effect"
import { TestConsole } from "effect/testing"
import * as Call from "../src/Call.ts"
import * as Content from "../src/Content.ts"
import { jsonObject } from "../src/kit/json.ts"
import type { Message } from "../src/Message.ts"
import * as Recorder from "../src/Recorder.ts"
import type { RunEvent } from "../src/RunEvent.ts"
import * as Skill from "../src/Skill.ts"
import { chunk, event, message, phase } from "./support/runEvents.ts"

/** The rows of BP-99: an event, and the entry recorded for it. */
const rows: ReadonlyArray<readonly [RunEvent, unknown]> = [
  [
    event({ type: "messages_sent", messages: [message("user", "hi")] }),
    { base: 0, append: [{ role: "user", content: [{ type: "text", text: "hi" }] }] }
  ],
  [
    event({
      type: "llm_response",
      finishReason: "stop",
      content: "<b",
      latencyMs: 12,
      usage: { inputTokens: 2, cachedTokens: 1, outputTokens: 3, reasoningTokens: 0 }
    }),
    { content: "<b", latency_ms: 12, prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 }
  ],
  [
    event({
      type: "blocks_parsed",
      blocks: [
        { type: "command", name: "add", content: "{}" },
        { type: "final", name: null, content: "" }
      ]
    }),
    [
      { type: "command", content: "{}", name: "add" },
      { type: "final", content: "" }
    ]
  ],
  [event({ type: "plan_rejected", reason: "cyclic", raw: "{}" }), { reason: "cyclic", raw: "{}" }],
  [event({ type: "plan", content: "first this" }), "first this"],
  [event({ type: "json", content: "{}" }), "{}"],
  [event({ type: "builtin_result", command: "/tasks", result: "[]" }), { command: "/tasks", result: "[]" }],
  [event({ type: "builtin_error", command: "/x", error: "Unknown command '/x'" }), { command: "/x", error: "unknown" }],
  [event({ type: "skill_execute", skill: "add", callId: "t.0", input: { b: 2 } }), { skill: "add", params: { b: 2 } }],
  [
    event({ type: "skill_result", skill: "add", callId: "t.0", output: [1, null], durationMs: 4, metadata: {} }),
    { skill: "add", result: [1, null], duration_ms: 4 }
  ],
  [
    event({ type: "skill_error", skill: null, callId: "t.0", error: "Command block missing skill name" }),
    { skill: null, error: "no skill name in command block" }
  ],
  [
    event({ type: "skill_error", skill: "nope", callId: "t.0", error: "Skill 'nope' not found" }),
    { skill: "nope", error: "not found" }
  ],
  [
    event({ type: "skill_error", skill: "rm", callId: "t.0", error: "Skill 'rm' is not allowed" }),
    { skill: "rm", error: "not allowed" }
  ],
  [event({ type: "skill_error", skill: "boom", callId: "t.0", error: "kaboom" }), { skill: "boom", error: "kaboom" }],
  [
    event({ type: "protocol_execute", protocol: "mcp", callId: "t.0", request: " {} " }),
    { protocol: "mcp", request: " {} " }
  ],
  [
    event({ type: "protocol_result", protocol: "mcp", callId: "t.0", result: "[]", durationMs: 3 }),
    { protocol: "mcp", result: "[]", duration_ms: 3 }
  ],
  [
    event({ type: "protocol_error", protocol: "mcp", callId: "t.0", error: "Protocol 'mcp' is not allowed" }),
    { protocol: "mcp", error: "not allowed" }
  ],
  [
    event({ type: "protocol_error", protocol: "mcp", callId: "t.0", error: "gone", durationMs: 1 }),
    { protocol: "mcp", error: "gone", duration_ms: 1 }
  ],
  [
    event({
      type: "workflow_start",
      goal: "g",
      strategy: "mixed",
      tasks: [{ id: "a", input: "x", parallel: true, dependsOn: ["b"], status: "pending" }]
    }),
    {
      goal: "g",
      strategy: "mixed",
      tasks: [{ id: "a", input: "x", parallel: true, depends_on: ["b"], status: "pending" }]
    }
  ],
  [
    event({ type: "task_start", id: "a", callId: "t.0", childRunId: "t/0", input: "x", dependsOn: ["b"] }),
    { task_id: "a", input: "x", depends_on: ["b"] }
  ],
  [
    event({ type: "task_complete", id: "a", callId: "t.0", childRunId: "t/0", result: "done", durationMs: 9 }),
    { task_id: "a", result: "done", duration_ms: 9 }
  ],
  [
    event({ type: "task_error", id: "a", callId: "t.0", childRunId: "t/0", error: "error: x", durationMs: 9 }),
    { task_id: "a", error: "error: x", duration_ms: 9 }
  ],
  [
    event({
      type: "workflow_complete",
      results: [
        ["10", "x"],
        ["2", "y"],
        ["__proto__", "z"]
      ],
      durationMs: 9
    }),
    {
      results: [
        ["10", "x"],
        ["2", "y"],
        ["__proto__", "z"]
      ],
      duration_ms: 9
    }
  ],
  [event({ type: "workflow_error", error: "stuck", durationMs: 9 }), { error: "stuck", duration_ms: 9 }],
  [event({ type: "informational_only", kinds: ["plan"] }), { kinds: ["plan"] }],
  [event({ type: "no_blocks_stall", prosePreview: "hello", kinds: [] }), { prose_preview: "hello" }],
  [event({ type: "result", text: "" }), ""]
]

const call = {
  callId: "t.0",
  kind: "skill",
  name: "add",
  input: {},
  provenance: "block",
  review: "unreviewed"
} as const

const answered = { message: message("assistant", "a"), usage: null, latencyMs: 1, finishReason: "stop" } as const

const done = { type: "final", name: null, content: "done" }

/** The events kernai adds, and their entries, without fields that other entries hold already. */
const added: ReadonlyArray<readonly [RunEvent, unknown]> = [
  [
    event({ type: "blocks_parsed", blocks: [done], ignored: { blocks: [done], reason: "why" } }),
    [{ type: "final", content: "done", ignored: "why" }]
  ],
  [
    event({ type: "block_unclosed", blockType: "command", name: "add", content: "{", finishReason: "length" }),
    { type: "command", name: "add", content: "{", finish_reason: "length" }
  ],
  [
    event({ type: "llm_response", content: "{", latencyMs: 3, finishReason: "length", usage: null }),
    {
      content: "{",
      latency_ms: 3,
      finish_reason: "length",
      prompt_tokens: null,
      completion_tokens: null,
      total_tokens: null
    }
  ],
  [event({ type: "call_leaked", name: "add", callId: "t.0" }), { name: "add", call_id: "t.0" }],
  [
    event({
      type: "skill_result",
      skill: "add",
      callId: "t.0",
      output: Skill.result("3", { metadata: { unit: "m" } }),
      durationMs: 4,
      metadata: { unit: "m" },
      truncated: true
    }),
    { skill: "add", result: "3", duration_ms: 4, metadata: { unit: "m" }, truncated: true }
  ]
]

/** The same of the phases, which are written where they are asked for. */
const phases: ReadonlyArray<readonly [RunEvent, unknown]> = [
  [
    event({
      type: "run_started",
      revision: 1,
      agent: "a",
      parentRunId: undefined,
      messages: [],
      history: 0,
      context: {}
    }),
    { revision: 1, agent: "a", parent_run_id: null }
  ],
  [
    event({ type: "run_started", revision: 1, agent: "a", parentRunId: "p", messages: [], history: 0, context: {} }),
    { revision: 1, agent: "a", parent_run_id: "p" }
  ],
  [event({ type: "turn_started", revision: 2, turnId: "t" }), { revision: 2, turn_id: "t" }],
  [
    event({
      type: "turn_prepared",
      revision: 3,
      model: "m",
      dialect: "blocks",
      prompt: { base: 0, append: [] },
      tools: ["add"]
    }),
    { revision: 3, model: "m", dialect: "blocks", tools: ["add"] }
  ],
  [event({ type: "model_started", revision: 4, attempt: 1 }), { revision: 4, attempt: 1 }],
  [
    event({ type: "model_call_failed", model: "p/m", call: 2, reason: "server_error", error: "gone" }),
    { model: "p/m", call: 2, reason: "server_error", error: "gone" }
  ],
  [event({ type: "block_start", blockType: "final", name: null }), { type: "final", name: null }],
  [
    event({ type: "block_complete", block: { type: "command", name: "add", content: "{}" } }),
    { type: "command", name: "add" }
  ],
  [event({ type: "final", text: "a" }), { text: "a" }],
  [event({ type: "model_restarted", revision: 5, attempt: 2 }), { revision: 5, attempt: 2 }],
  [
    event({
      type: "model_completed",
      revision: 6,
      model: "p/m",
      ...answered,
      outcome: { type: "final", text: "a" },
      calls: []
    }),
    { revision: 6, model: "p/m", finish_reason: "stop", outcome: "final", calls: 0 }
  ],
  [
    event({
      type: "model_completed",
      revision: 6,
      model: "p/m",
      ...answered,
      costUsd: 0.5,
      outcome: { type: "tools" },
      calls: [call]
    }),
    { revision: 6, model: "p/m", finish_reason: "stop", outcome: "tools", calls: 1, cost_usd: 0.5 }
  ],
  [
    event({
      type: "model_completed",
      revision: 6,
      model: "p/m",
      ...answered,
      outcome: { type: "corrective", reason: "output", corrective: "no number" },
      calls: []
    }),
    { revision: 6, model: "p/m", finish_reason: "stop", outcome: "corrective", reason: "output", calls: 0 }
  ],
  [event({ type: "tool_calls_started", revision: 7 }), { revision: 7, questions: 0 }],
  [
    event({
      type: "tool_calls_started",
      revision: 7,
      questions: [{ callId: "t.0", name: "add", input: {}, reason: "why" }]
    }),
    { revision: 7, questions: 1 }
  ],
  [event({ type: "tool_call_started", revision: 8, callId: "t.0" }), { revision: 8, call_id: "t.0", change: null }],
  [
    event({ type: "tool_call_started", revision: 8, callId: "t.0", change: { type: "rewrite", call } }),
    { revision: 8, call_id: "t.0", change: "rewrite" }
  ],
  [
    event({ type: "tool_call_completed", revision: 9, callId: "t.0", result: Call.succeeded(call, []) }),
    { revision: 9, call_id: "t.0", error: null, skipped: false }
  ],
  [
    event({
      type: "tool_call_completed",
      revision: 9,
      callId: "t.0",
      result: Call.failed(call, Call.error("Denied", "no", false), { skipped: true })
    }),
    { revision: 9, call_id: "t.0", error: "Denied", skipped: true }
  ],
  [event({ type: "tool_calls_completed", revision: 10 }), { revision: 10 }],
  [event({ type: "turn_completed", revision: 11, turnId: "t" }), { revision: 11, turn_id: "t" }],
  [
    event({ type: "paused", revision: 12, reason: "why", metadata: { by: "x" } }),
    { revision: 12, reason: "why", metadata: { by: "x" } }
  ],
  [
    event({ type: "run_completed", revision: 13, source: "model_done" }),
    { revision: 13, source: "model_done", reason: null }
  ],
  [
    event({ type: "run_completed", revision: 13, source: "caller", reason: "over" }),
    { revision: 13, source: "caller", reason: "over" }
  ],
  [
    event({ type: "run_failed", revision: 14, error: { tag: "StoreError", message: "gone" } }),
    { revision: 14, error: "StoreError", message: "gone" }
  ]
]

const recorded = (events: ReadonlyArray<RunEvent>, options?: Recorder.Options) => {
  const memory = Recorder.memory(options)
  for (const event of events) memory.record(event)
  return memory
}

const response = (step: number, tokens: number | undefined, taskId?: string) =>
  event(
    {
      type: "llm_response",
      finishReason: "stop",
      content: "",
      latencyMs: 1,
      usage: tokens === undefined ? null : { inputTokens: tokens, cachedTokens: 0, outputTokens: 1, reasoningTokens: 0 }
    },
    { step, taskId, depth: taskId === undefined ? 0 : 1 }
  )

const sent = (step: number, messages: ReadonlyArray<Message>, runId = "run") =>
  event({ type: "messages_sent", messages }, { step, runId })

const appended = (memory: Recorder.Memory) => memory.forEvent("messages_sent").map(({ data }) => jsonObject(data))

describe("Recorder.project", () => {
  for (const [index, [event, data]] of rows.entries()) {
    it(`writes ${event.type} as the specification's table says (BP-99, row ${index + 1})`, () => {
      const entry = Recorder.project(event)
      assert.strictEqual(entry?.event, event.type)
      assert.deepStrictEqual(entry?.data, data)
    })
  }

  for (const [index, [event, data]] of [...added, ...phases].entries()) {
    it(`writes the additional event ${event.type} with data that no other entry has (${index + 1})`, () => {
      const entry = Recorder.project(event, { phases: true })
      assert.strictEqual(entry?.event, event.type)
      assert.deepStrictEqual(entry?.data, data)
    })
  }

  it("records step, depth, task, and an ISO time with milliseconds and offset (BP-98)", () => {
    const at = Date.UTC(2026, 10, 21, 9, 8, 7, 6)
    const entry = Recorder.project(event({ type: "plan", content: "x" }, { step: 3, depth: 1, taskId: "t1", at }))
    assert.deepStrictEqual(entry, {
      runId: "run",
      step: 3,
      depth: 1,
      taskId: "t1",
      event: "plan",
      data: "x",
      timestamp: "2026-11-21T09:08:07.006+00:00"
    })
  })

  it("omits stream parts always, and phases by default", () => {
    const part: RunEvent = event({
      type: "stream_part",
      turnId: "t",
      turn: 1,
      attempt: 1,
      part: { type: "text-end", id: "0" }
    })
    for (const piece of [chunk("a"), event({ type: "block_content", text: "a" }), part]) {
      assert.isUndefined(Recorder.project(piece, { phases: true }))
    }
    assert.isUndefined(Recorder.project(phase(3)))
    assert.deepStrictEqual(Recorder.project(phase(3), { phases: true })?.data, { revision: 3, turn_id: "turn-3" })
  })
})

describe("Recorder.memory", () => {
  it("filters by event, step and task, and returns copies (BP-100)", () => {
    const memory = recorded([
      event({ type: "plan", content: "b" }, { step: 2 }),
      event({ type: "json", content: "a" }, { step: 0 }),
      event({ type: "plan", content: "c" }, { step: 2, depth: 1, taskId: "t1" })
    ])
    assert.deepStrictEqual(
      memory.forEvent("plan").map((entry) => entry.data),
      ["b", "c"]
    )
    assert.deepStrictEqual(
      memory.forStep(2).map((entry) => entry.data),
      ["b", "c"]
    )
    assert.deepStrictEqual(
      memory.forStep(2, null).map((entry) => entry.data),
      ["b"]
    )
    assert.deepStrictEqual(memory.steps(), [0, 2])
    assert.deepStrictEqual(JSON.parse(memory.toJson()), memory.entries())
    assert.include(memory.toJson(), "\n  {")
    const before = memory.entries()
    memory.clear()
    assert.lengthOf(before, 3)
    assert.deepStrictEqual(memory.entries(), [])
  })

  it("returns only the classic entries in order, whatever is between them", () => {
    const events = rows.flatMap(([event], index) => [chunk("x"), event, phase(index)])
    events.push(event({ type: "call_leaked", name: "add", callId: "t.0" }))
    const memory = recorded(events, { phases: true })
    assert.deepStrictEqual(
      memory.classic().map((entry) => entry.event),
      rows.map(([event]) => event.type)
    )
    assert.lengthOf(memory.entries(), rows.length * 2 + 1)
  })

  it("sums the reported tokens, and returns null, not zero, when none were reported (BP-102)", () => {
    const memory = recorded([response(0, 10), response(1, undefined), response(0, 5, "t1"), response(0, 7, "root")])
    assert.deepStrictEqual(memory.tokens(), { prompt_tokens: 22, completion_tokens: 3, total_tokens: 25 })
    const none = { prompt_tokens: null, completion_tokens: null, total_tokens: null }
    assert.deepStrictEqual(memory.tokensPerStep().get(1), none)
    assert.strictEqual(memory.tokensPerStep().get(0)?.prompt_tokens, 22)
    assert.deepStrictEqual(
      Array.from(memory.tokensPerTask(), ([task, { prompt_tokens }]) => [task, prompt_tokens]),
      [
        ["root", 10],
        ["t1", 5],
        ["task root", 7]
      ]
    )
    assert.deepStrictEqual(recorded([]).tokens(), none)
  })

  it("writes only the new messages of a conversation, for each run separately (W-29)", () => {
    const [question, answer, result] = [message("user", "q"), message("assistant", "a"), message("user", "r")]
    const memory = recorded([
      sent(0, [message("system", "rules"), question]),
      sent(0, [message("system", "rules"), question], "other"),
      sent(1, [message("system", "rules"), question, answer, result]),
      sent(2, [message("system", "new rules"), question, answer, result])
    ])
    assert.deepStrictEqual(
      appended(memory).map((data) => [data["base"], Array.isArray(data["append"]) ? data["append"].length : 0]),
      [
        [0, 2],
        [0, 2],
        [2, 2],
        [0, 4]
      ]
    )
  })

  it("treats messages as equal only with the same role and content (W-29)", () => {
    const text = { type: "text", text: "x" } as const
    const image = { type: "image", fileId: "media_1" } as const
    const others: ReadonlyArray<Message> = [
      message("user", "x"),
      message("assistant", "x"),
      { role: "assistant", name: "ada", content: [text] },
      { role: "assistant", name: "ada", content: [text, image] },
      { role: "assistant", name: "ada", content: [text, text] },
      { role: "assistant", name: "ada", content: [text] },
      { role: "assistant", name: "ada", content: [] },
      { role: "assistant", name: "ada", content: [image] },
      { role: "assistant", name: "ada", content: [{ ...image, fileId: "media_2" }] }
    ]
    const memory = recorded(others.map((other, step) => sent(step, [other])))
    assert.deepStrictEqual(
      appended(memory).map((data) => data["base"]),
      others.map(() => 0)
    )
  })

  it("evicts the conversation that was idle for longest when a thousand others continue", () => {
    const memory = Recorder.memory()
    const say = (runId: string) => memory.record(sent(0, [message("user", "hi")], runId))
    for (let run = 0; run < 1_024; run++) say(`run ${run}`)
    for (const runId of ["run 0", "run 1024", "run 0", "run 1"]) say(runId)
    assert.deepStrictEqual(
      appended(memory)
        .slice(1_024)
        .map((data) => data["base"]),
      [1, 0, 1, 0]
    )
  })

  it("takes linear time in the turns of a run", () => {
    const messages: Array<Message> = [message("user", "q")]
    const memory = Recorder.memory()
    for (let step = 0; step < 200; step++) {
      memory.record(sent(step, [message("system", "rules"), ...messages]))
      messages.push(message("assistant", "a"), message("user", "r"))
    }
    const written = appended(memory).reduce((sum, data) => sum + JSON.stringify(data["append"]).length, 0)
    assert.isBelow(written, 200 * 150)
  })

  it("records media by reference, and omits redacted thinking (W-29, CP-9)", () => {
    const bytes = new Uint8Array(5_000)
    const content: ReadonlyArray<Content.Content> = [
      { type: "image", data: bytes, mediaType: "image/png" },
      { type: "audio", fileId: "media_1" },
      { type: "thinking", content: "secret thought", redacted: true },
      { type: "tool_result", callId: "c", isError: false, content: [{ type: "image", data: bytes }] }
    ]
    const [data] = appended(recorded([sent(0, [{ role: "user", content }])]))
    assert.isBelow(JSON.stringify(data).length, 500)
    assert.notInclude(JSON.stringify(data), "secret thought")
    assert.deepStrictEqual(data?.["append"], [
      {
        role: "user",
        content: [
          { type: "image", media_type: "image/png", bytes: 5_000 },
          { type: "audio", file_id: "media_1" },
          Content.encode(Content.uiForm(content[2] ?? Content.text(""))),
          { type: "tool_result", call_id: "c", is_error: false, content: [{ type: "image", bytes: 5_000 }] }
        ]
      }
    ])
  })

  it("redacts secrets in every text of every entry (W-31)", () => {
    const redact = (text: string) => text.replaceAll("sk-SECRET", "[key]")
    const secret = `line one\n"sk-SECRET"`
    const memory = recorded(
      [
        event({ type: "plan", content: secret }),
        event({ type: "skill_execute", skill: "login", callId: "t.0", input: { deep: [{ [secret]: secret }] } }),
        sent(0, [message("user", secret)]),
        event({ type: "run_failed", revision: 1, error: { tag: "ProviderError", message: secret } })
      ],
      { redact, phases: true }
    )
    assert.lengthOf(memory.entries(), 4)
    assert.notInclude(memory.toJson(), "SECRET")
    assert.include(memory.toJson(), "[key]")
  })

  it("keeps its own field names despite redaction, and redacts those of user data (W-31)", () => {
    const usage = { inputTokens: 1, outputTokens: 2, cachedTokens: 0, reasoningTokens: 0 }
    const memory = recorded(
      [
        event({ type: "llm_response", content: "hi", latencyMs: 3, finishReason: "stop", usage }),
        event({ type: "skill_result", skill: "login", callId: "t.0", output: { sk: { SECRET: 1 } }, durationMs: 4 })
      ],
      { redact: () => "…" }
    )
    assert.deepStrictEqual(
      memory.entries().map(({ data }) => data),
      [
        { content: "…", latency_ms: 3, prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
        { skill: "…", result: { "…": { "…": 1 } }, duration_ms: 4 }
      ]
    )
  })

  it("survives values that are not JSON, and a redaction that throws (R-22, R-23)", () => {
    const cycle: { self?: unknown; when: Date; big: bigint } = { when: new Date(0), big: 10n }
    cycle.self = cycle
    const hostile = {
      get broken() {
        throw new Error("no")
      }
    }
    const memory = recorded(
      [cycle, hostile, undefined, Number.NaN, () => 1].map((output) =>
        event({ type: "skill_result", skill: "odd", callId: "t.0", output, durationMs: 1 })
      )
    )
    assert.deepStrictEqual(
      memory.entries().map(({ data }) => jsonObject(data)["result"]),
      [
        { when: "1970-01-01T00:00:00.000Z", big: "10", self: "[cycle]" },
        "[unreadable]",
        "[undefined]",
        "NaN",
        "[function]"
      ]
    )
    const broken = recorded([event({ type: "plan", content: "x" })], {
      redact: () => {
        throw new Error("no")
      }
    })
    assert.deepStrictEqual(broken.entries(), [])
  })
})

describe("Recorder.composite", () => {
  it("records to all in order and answers from the first; a failing one does not affect the others (BP-101, R-23)", () => {
    const told: Array<string> = []
    const broken: Recorder.Sink = {
      record: () => {
        told.push("broken")
        throw new Error("disk full")
      }
    }
    const last: Recorder.Sink = { record: () => told.push("last") }
    const sink = Recorder.composite(Recorder.memory(), broken, last)
    sink.record(event({ type: "plan", content: "x" }))
    assert.deepStrictEqual(told, ["broken", "last"])
    assert.lengthOf(sink.entries(), 1)
  })

  it("is a plain object when the first recorder is one", () => {
    const first = { record: () => {}, name: "first" }
    const both = Recorder.composite(first, Recorder.memory())
    assert.strictEqual(typeof { ...both }.record, "function")
    assert.deepStrictEqual(Object.keys(both), ["record", "name"])
    assert.strictEqual(Object.getPrototypeOf(both), Object.prototype)
  })

  it("returns the current answers of a first recorder that is a plain object with state", () => {
    const first: Recorder.Sink & { count: number; readonly isEmpty: boolean } = {
      count: 0,
      record() {
        this.count++
      },
      get isEmpty() {
        return this.count === 0
      }
    }
    const both = Recorder.composite(first, Recorder.memory())
    both.record(event({ type: "plan", content: "x" }))
    assert.deepStrictEqual([both.count, both.isEmpty], [1, false])
  })

  it("returns the answers of a first recorder that is a class instance (BP-101)", () => {
    class Counter implements Recorder.Sink {
      #count = 0
      readonly record: Recorder.Sink["record"] = () => {
        this.#count++
      }
      get count() {
        return this.#count
      }
      reset() {
        this.#count = 0
      }
    }
    const counter = Object.freeze(new Counter())
    const sink = Recorder.composite(counter, Recorder.memory())
    sink.record(event({ type: "plan", content: "x" }))
    assert.strictEqual(sink.count, 1)
    sink.reset()
    assert.strictEqual(counter.count, 0)
  })
})

describe("Recorder.lines", () => {
  const logged = (events: ReadonlyArray<RunEvent>, debug = false) => {
    const out: Array<string> = []
    const sink = Recorder.lines((line) => out.push(line), { debug })
    for (const event of events) sink.record(event)
    return out
  }

  it("writes a level and key=value pairs, debug lines only on request (BP-156)", () => {
    const events = [
      sent(0, [message("user", "q")]),
      response(0, 3),
      event({ type: "block_start", blockType: "final", name: null }),
      event({ type: "skill_execute", skill: "add", callId: "t.0", input: { a: "private" } }),
      event({ type: "skill_result", skill: "add", callId: "t.0", output: "private", durationMs: 7 }),
      event({ type: "skill_error", skill: "add", callId: "t.1", error: "no such city" }),
      event({ type: "final", text: "private" }, { step: 2 })
    ]
    assert.deepStrictEqual(logged(events), [
      "[Kernai] INFO event=skill.execute run=run step=0 skill=add call=t.0",
      "[Kernai] INFO event=skill.result run=run step=0 skill=add call=t.0 duration_ms=7",
      `[Kernai] ERROR event=skill.error run=run step=0 skill=add call=t.1 error="no such city"`,
      "[Kernai] INFO event=agent.complete run=run step=2 steps=3"
    ])
    assert.deepStrictEqual(logged(events, true).slice(0, 3), [
      "[Kernai] DEBUG event=llm.request run=run step=0 messages=1",
      "[Kernai] DEBUG event=llm.response run=run step=0 latency_ms=1 prompt_tokens=3 completion_tokens=1",
      "[Kernai] DEBUG event=block.detected run=run step=0 type=final"
    ])
  })

  it("quotes values, so none can forge a field or a line (W-30, S-19)", () => {
    const hostile = `x" level=ok\n[Kernai] INFO event=forged \\ \u001b]52;c;\u0007 \u202e \u2028 \u{e0041} \ud800 é`
    const [line, ...more] = logged([event({ type: "skill_error", skill: "null", callId: "12", error: hostile })])
    assert.deepStrictEqual(more, [])
    assert.strictEqual(
      line,
      `[Kernai] ERROR event=skill.error run=run step=0 skill="null" call="12" error="x\\" level=ok\\n[Kernai] INFO event=forged ` +
        `\\\\ \\u{1b}]52;c;\\u{7} \\u{202e} \\u{2028} \\u{e0041} \\u{d800} é"`
    )
    assert.notMatch(line ?? "", /\p{Cc}/u)
  })

  it("truncates long values", () => {
    const [line] = logged([event({ type: "skill_error", skill: "x", callId: "t", error: "y".repeat(1_000_000) })])
    assert.isBelow(line?.length ?? 0, 1_200)
  })
})

describe("Recorder layers", () => {
  const tell = (events: ReadonlyArray<RunEvent>) =>
    Effect.map(Recorder.Recorder, (sink) => events.forEach((event) => sink?.record(event)))
  const plan = event({ type: "plan", content: "x" })

  it.effect("record nothing by default", () => Effect.map(Recorder.Recorder, (sink) => assert.isUndefined(sink)))

  it.effect("provide the recorder together with its queries", () =>
    Effect.gen(function* () {
      yield* tell([plan])
      const recording = yield* Recorder.Recording
      assert.lengthOf(recording.entries(), 1)
    }).pipe(Effect.provide(Recorder.layerMemory()))
  )

  it.effect("add to an existing recorder, and write through the Console", () =>
    Effect.gen(function* () {
      const out = yield* TestConsole.logLines
      assert.deepStrictEqual(out, [])
      yield* tell([event({ type: "skill_execute", skill: "add", callId: "t.0", input: {} })])
      const recording = yield* Recorder.Recording
      assert.lengthOf(recording.entries(), 1)
      assert.deepStrictEqual(yield* TestConsole.logLines, [
        "[Kernai] INFO event=skill.execute run=run step=0 skill=add call=t.0"
      ])
    }).pipe(Effect.provide(Recorder.layerLogger().pipe(Layer.provideMerge(Recorder.layerMemory()))))
  )

  it.effect("isolate the run from a failing sink, and may be provided to a single fiber (R-23)", () =>
    Effect.gen(function* () {
      yield* tell([plan])
      const memory = Recorder.memory()
      yield* Effect.provideService(tell([plan]), Recorder.Recorder, memory)
      assert.lengthOf(memory.entries(), 1)
      yield* Console.log("done")
    }).pipe(
      Effect.provide(
        Recorder.layer({
          record: () => {
            throw new Error("disk full")
          }
        })
      )
    )
  )
})

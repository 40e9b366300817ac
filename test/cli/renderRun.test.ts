import { assert, describe, it } from "@effect/vitest"
import type { RunEvent } from "kernai"
import { initial } from "../../src/cli/pen.ts"
import * as Render from "../../src/cli/renderRun.ts"
import * as Text from "../../src/cli/terminalText.ts"

type Event = RunEvent.RunEvent

const scope: RunEvent.RunScope = { runId: "run", rootRunId: "run", step: 0, depth: 0, taskId: undefined, at: 0 }

const plain = { columns: 60, colors: false }

const show = (events: ReadonlyArray<Event>, options = plain): string => {
  let state = initial
  let text = ""
  for (const event of events) {
    const [next, shown] = Render.step(state, event, options)
    state = next
    text += shown
  }
  return text + Render.end(state)
}

const block = (type: string, name: string | null, ...pieces: ReadonlyArray<string>): ReadonlyArray<Event> => [
  { ...scope, type: "block_start", blockType: type, name },
  ...pieces.map((text): Event => ({ ...scope, type: "block_content", text })),
  { ...scope, type: "block_complete", block: { type, name, content: pieces.join("") } }
]

const started = (skill: string, callId: string): Event => ({
  ...scope,
  type: "skill_execute",
  skill,
  callId,
  input: {}
})
const finished = (skill: string, callId: string, output: unknown): Event => ({
  ...scope,
  type: "skill_result",
  skill,
  callId,
  output,
  durationMs: 1_250
})

describe("Render", () => {
  it("shows turns, blocks with their names, calls with their times, and tokens", () => {
    const text = show([
      { ...scope, type: "turn_started", turnId: "t1", revision: 2 },
      ...block("plan", null, "\nFirst the ", "users.\n"),
      ...block("command", "search", '{"query":"users"}'),
      {
        ...scope,
        type: "model_completed",
        revision: 5,
        message: { role: "assistant", content: [] },
        model: "mock/tiny",
        usage: { inputTokens: 12, cachedTokens: 0, outputTokens: 3, reasoningTokens: 0 },
        finishReason: "stop",
        latencyMs: 40,
        outcome: { type: "tools" },
        calls: []
      },
      started("search", "c1"),
      finished("search", "c1", ["Alice", "Bob"])
    ])
    assert.strictEqual(
      text,
      [
        "turn 1",
        "  plan      First the users.",
        '  command   search  {"query":"users"}',
        "  model     mock/tiny  12 tokens in, 3 out, 40 ms",
        '  skill     search  1.3 s  ["Alice","Bob"]',
        ""
      ].join("\n")
    )
  })

  it("tells calls that wait for a person from those that a policy refused", () => {
    const [callId, input] = ["c1", {}]
    const text = show([
      {
        ...scope,
        type: "tool_calls_started",
        revision: 6,
        questions: [
          { callId, name: "send", input, reason: "it cannot be taken back" },
          {
            callId: "c2",
            name: "shell",
            input,
            reason: "Skill 'shell' not found",
            answer: { callId: "c2", approved: false, reason: "Skill 'shell' not found", by: "policy" }
          }
        ]
      }
    ])
    assert.strictEqual(
      text,
      "  ! send waits for a person: it cannot be taken back\n  ! shell does not run: Skill 'shell' not found\n"
    )
  })

  it("tells what a call cost, and how it ended where that says something", () => {
    const completed = (finishReason: "tool-calls" | "length", costUsd?: number): Event => ({
      ...scope,
      type: "model_completed",
      revision: 5,
      message: { role: "assistant", content: [] },
      model: "m",
      usage: null,
      finishReason,
      latencyMs: 40,
      ...(costUsd === undefined ? {} : { costUsd }),
      outcome: { type: "tools" },
      calls: []
    })
    assert.strictEqual(show([completed("tool-calls", 0.01234)]), "  model     m  tokens not reported, $0.0123, 40 ms\n")
    assert.include(show([completed("length")]), "40 ms, ended by length")
  })

  it("shows a block as it is written", () => {
    const [state, first] = Render.step(initial, { ...scope, type: "block_start", blockType: "plan", name: null }, plain)
    const [, second] = Render.step(state, { ...scope, type: "block_content", text: "Look" }, plain)
    assert.deepStrictEqual([first, second], ["  plan      ", "Look"])
  })

  it("makes the same text of a block however it is cut", () => {
    const content = "  a\n\n b \u{1f600}\u{202e}c\u001b[2J d\u{1f600}  "
    const whole = show(block("plan", null, content))
    for (let cut = 0; cut <= content.length; cut++) {
      assert.strictEqual(show(block("plan", null, content.slice(0, cut), content.slice(cut))), whole)
    }
    assert.include(whole, "a b \u{1f600}\\u{202e}c\\u{1b}[2J d")
  })

  it("keeps a line within the terminal", () => {
    const text = show([
      ...block("plan", null, ...Array.from({ length: 50 }, () => "word ")),
      started("search", "c"),
      finished("search", "c", "x".repeat(500)),
      { ...scope, type: "skill_error", skill: "search", callId: "d", error: "y".repeat(500) },
      { ...scope, type: "plan_rejected", reason: "z".repeat(500), raw: "" }
    ])
    for (const line of text.split("\n")) assert.isAtMost(line.length, plain.columns)
    assert.strictEqual(text.split("…").length, 5)
    const room = plain.columns - "  plan      ".length - 1
    assert.strictEqual(show(block("plan", null, "x".repeat(room))), `  plan      ${"x".repeat(room)}\n`)
    assert.strictEqual(show(block("plan", null, "x".repeat(room + 1))), `  plan      ${"x".repeat(room - 1)}…\n`)
  })

  it("counts what is wide as the terminal does, in however many pieces it comes", () => {
    const text = show([
      ...block("plan", null, ...Array.from({ length: 50 }, () => "漢字 ")),
      ...block("plan", null, "漢字 ".repeat(50)),
      started("調べる", "c"),
      finished("調べる", "c", "結果".repeat(100))
    ])
    const lines = text.trimEnd().split("\n")
    assert.lengthOf(lines, 3)
    for (const line of lines) assert.include([plain.columns - 2, plain.columns - 1], Text.width(line))
    for (const line of lines) assert.isTrue(line.endsWith("…"))
    assert.strictEqual(lines[0], lines[1])
  })

  it("writes a result anew when another call wrote in between", () => {
    assert.strictEqual(
      show([started("a", "1"), started("b", "2"), finished("b", "2", "B"), finished("a", "1", "A")]),
      "  skill     a  …\n  skill     b  1.3 s  B\n  skill     a  1.3 s  A\n"
    )
  })

  it("never mixes two runs on a line", () => {
    const child = { ...scope, runId: "child", depth: 1, taskId: "look" }
    assert.strictEqual(
      show([
        { ...scope, type: "block_start", blockType: "plan", name: null },
        { ...scope, type: "block_content", text: "parent" },
        { ...child, type: "turn_started", turnId: "t", revision: 2 },
        { ...child, type: "block_start", blockType: "final", name: null },
        { ...scope, type: "block_content", text: " again" },
        { ...child, type: "block_content", text: "child" },
        { ...child, type: "block_complete", block: { type: "final", name: null, content: "child" } },
        { ...scope, type: "block_complete", block: { type: "plan", name: null, content: "parent again" } }
      ]),
      "  plan      parent…\n  turn 1 of task look\n    final     child\n  plan      parent again\n"
    )
  })

  it("tells what went another way than the model meant", () => {
    assert.strictEqual(
      show([
        { ...scope, type: "blocks_ignored", kinds: ["final"], reason: "calls came first" },
        { ...scope, type: "block_unclosed", blockType: "command", name: "a", content: "", finishReason: "length" },
        { ...scope, type: "no_blocks_stall", prosePreview: "", kinds: [] },
        { ...scope, type: "skill_leaked", skill: "slow", callId: "c" }
      ]),
      [
        "  ! final ignored: calls came first",
        "  ! the block command was never closed (length)",
        "  ! no block that does anything: asking again",
        "  ! slow was told to stop and did not",
        ""
      ].join("\n")
    )
  })

  it("shows native calls and thinking as they are written", () => {
    const part = (part: Extract<Event, { type: "stream_part" }>["part"]): Event => ({
      ...scope,
      type: "stream_part",
      turnId: "t",
      turn: 1,
      attempt: 1,
      part
    })
    assert.strictEqual(
      show([
        part({ type: "reasoning-start", id: "r" }),
        part({ type: "reasoning-delta", id: "r", delta: "Hm. " }),
        part({ type: "reasoning-delta", id: "r", delta: "Weather." }),
        part({ type: "reasoning-end", id: "r" }),
        part({ type: "tool-params-start", id: "1", name: "weather" }),
        part({ type: "tool-params-delta", id: "1", delta: '{"city":' }),
        part({ type: "tool-params-delta", id: "1", delta: '"Oslo"}' }),
        part({ type: "tool-params-end", id: "1" }),
        part({ type: "tool-params-start", id: "2", name: "clock" }),
        part({ type: "tool-params-delta", id: "2", delta: "{}" }),
        part({ type: "tool-params-end", id: "2" })
      ]),
      '  thinking  Hm. Weather.\n  call      weather  {"city":"Oslo"}\n  call      clock  {}\n'
    )
  })

  it("leaves blank text between blocks out", () => {
    assert.strictEqual(
      show([{ ...scope, type: "text_chunk", text: "\n\n" }, ...block("final", null, "done")]),
      "  final     done\n"
    )
  })

  it("colours labels and nothing a model wrote", () => {
    const text = show(block("plan", null, "\u001b[31mred\u001b[0m"), { columns: 80, colors: true })
    assert.strictEqual(text, "  \u001b[36mplan      \u001b[0m\\u{1b}[31mred\\u{1b}[0m\n")
  })

  // S-19: every place where foreign text gets onto the screen.
  const evil = "\u001b]52;c;QUJD\u0007\u001b[2J\u001b]8;;http://e\u001b\\x\r\u202etxet\u009b31m\nstep 9"
  const foreign: ReadonlyArray<Event> = [
    ...block(evil, evil, evil),
    { ...scope, type: "text_chunk", text: evil },
    { ...scope, type: "block_unclosed", blockType: evil, name: evil, content: evil, finishReason: "stop" },
    { ...scope, type: "blocks_ignored", kinds: [evil], reason: evil },
    { ...scope, type: "plan_rejected", reason: evil, raw: evil },
    { ...scope, type: "output_rejected", detail: evil },
    started(evil, "c"),
    finished(evil, "c", evil),
    finished(evil, "d", { [evil]: evil }),
    { ...scope, type: "skill_error", skill: evil, callId: "e", error: evil },
    { ...scope, type: "skill_leaked", skill: evil, callId: "e" },
    { ...scope, type: "builtin_result", command: evil, result: evil },
    { ...scope, type: "builtin_error", command: evil, error: evil },
    { ...scope, type: "protocol_leaked", protocol: evil, callId: "p" },
    { ...scope, type: "protocol_execute", protocol: evil, callId: "p", request: evil },
    { ...scope, type: "protocol_result", protocol: evil, callId: "p", result: evil, durationMs: 1 },
    { ...scope, type: "protocol_error", protocol: evil, callId: "q", error: evil },
    { ...scope, type: "workflow_start", goal: evil, strategy: evil, tasks: [] },
    { ...scope, type: "task_start", id: evil, input: evil, dependsOn: [] },
    { ...scope, type: "task_complete", id: evil, result: evil, durationMs: 1 },
    { ...scope, type: "task_error", id: evil, error: evil, durationMs: 1 },
    { ...scope, type: "workflow_error", error: evil, durationMs: 1 },
    { ...scope, taskId: evil, type: "turn_started", turnId: "t", revision: 2 },
    { ...scope, type: "paused", revision: 3, reason: evil, metadata: null }
  ]

  it.each(foreign.map((event) => [event.type, event] as const))(
    "shows what a terminal would obey in %s as escapes (S-19)",
    (_, event) => {
      const text = show([event], { columns: 400, colors: false })
      assert.notMatch(text.replaceAll("\n", ""), /[\p{Cc}\p{Cf}]/u)
      assert.isAtMost(text.split("\n").length, 2)
    }
  )
})

import { assert, describe, it } from "@effect/vitest"
import { Media, type RunEvent } from "kernai"
import { RunLines } from "../../src/cli/runLines.ts"
import * as Text from "../../src/cli/terminalText.ts"

type Event = RunEvent.RunEvent

const scope: RunEvent.RunScope = { runId: "run", rootRunId: "run", step: 0, depth: 0, taskId: undefined, at: 0 }

const plain = { columns: 60, colors: false }

const show = (events: ReadonlyArray<Event>, look = plain): string => {
  let text = ""
  const lines = new RunLines((line) => {
    text += line
  }, look)
  for (const event of events) lines.show(event)
  lines.end()
  return text
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

const done = { type: "final", name: null, content: "" }

describe("the lines of a run", () => {
  it("show turns, blocks with their names, calls with their times, and tokens", () => {
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
        '  skill     search  1.3 s: ["Alice","Bob"]',
        ""
      ].join("\n")
    )
  })

  it("name the media of a result instead of printing their bytes", () => {
    const picture = Media.fromBytes(Uint8Array.of(1, 2), "image/png")
    assert.strictEqual(
      show([finished("draw", "c1", ["A cat", picture]), finished("draw", "c2", picture)]),
      "  skill     draw  1.3 s: A cat [image image/png]\n  skill     draw  1.3 s: [image image/png]\n"
    )
  })

  it("say which calls wait for a person and which a policy denied", () => {
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

  it("show what a model call cost, and how it ended if it was cut off", () => {
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

  it("show the media that a request left out, beside the model call", () => {
    const text = show([
      {
        ...scope,
        type: "model_completed",
        revision: 5,
        message: { role: "assistant", content: [] },
        model: "m",
        usage: null,
        finishReason: "stop",
        latencyMs: 40,
        leftOut: [{ type: "image", mediaType: "image/png", reason: "the model takes no image" }],
        outcome: { type: "final", text: "done" },
        calls: []
      }
    ])
    assert.strictEqual(
      text,
      "  model     m  tokens not reported, 40 ms\n  ! image (image/png) left out: the model takes no image\n"
    )
  })

  it("show text and thinking in one line, however many pieces they come in", () => {
    const chunk = (text: string): Event => ({ ...scope, type: "text_chunk", text })
    const content = "  a\n\n b \u{1f600}\u{202e}c\u001b[2J d\u{1f600}  "
    const whole = show([chunk(content)])
    assert.strictEqual(whole, "  text      a b \u{1f600}\\u{202e}c\\u{1b}[2J d\u{1f600}\n")
    for (let cut = 0; cut <= content.length; cut++) {
      assert.strictEqual(show([chunk(content.slice(0, cut)), chunk(content.slice(cut))]), whole)
    }
  })

  it("are no wider than the terminal", () => {
    const text = show([
      ...block("plan", null, ...Array.from({ length: 50 }, () => "word ")),
      finished("search", "c", "x".repeat(500)),
      finished("調べる", "c", "結果".repeat(100)),
      { ...scope, type: "skill_error", skill: "search", callId: "d", error: "y".repeat(500) },
      { ...scope, type: "plan_rejected", reason: "z".repeat(500), raw: "" }
    ])
    const lines = text.trimEnd().split("\n")
    assert.lengthOf(lines, 5)
    for (const line of lines) {
      assert.isTrue(line.endsWith("…"), line)
      assert.isAtMost(Text.width(line), plain.columns)
      assert.isAtLeast(Text.width(line), plain.columns - 3)
    }
  })

  it("are no wider than a terminal of 40 columns, and begin with the name of a long skill", () => {
    const text = show(
      [
        started("look_up_the_refund_policy_of_a_shop", "c"),
        finished("look_up_the_refund_policy_of_a_shop", "c", "words ".repeat(20))
      ],
      { columns: 40, colors: false }
    )
    for (const line of text.split("\n")) assert.isAtMost(Text.width(line), 40, line)
    assert.match(text, /look_up_the\S*… {2}1\.3 s/)
  })

  it("keep the text of parallel tasks apart", () => {
    const task = (id: string) => ({ ...scope, runId: id, depth: 1, taskId: id })
    const text = (id: string, text: string): Event => ({ ...task(id), type: "text_chunk", text })
    assert.strictEqual(
      show([
        text("a", "one "),
        text("b", "three "),
        text("a", "two"),
        text("b", "four"),
        { ...task("b"), type: "turn_started", turnId: "t", revision: 2 }
      ]),
      "    text      three four\n  turn 1 of task b\n    text      one two\n"
    )
  })

  it("mark replies and calls that failed", () => {
    assert.strictEqual(
      show([
        { ...scope, type: "blocks_parsed", blocks: [], ignored: { blocks: [done], reason: "calls came first" } },
        { ...scope, type: "block_unclosed", blockType: "command", name: "a", content: "", finishReason: "length" },
        { ...scope, type: "no_blocks_stall", prosePreview: "", kinds: [] },
        { ...scope, type: "call_leaked", name: "slow", callId: "c" }
      ]),
      [
        "  ! final ignored: calls came first",
        "  ! the block command was never closed (length)",
        "  ! no block that does anything: asking again",
        "  ! slow did not stop when it was interrupted",
        ""
      ].join("\n")
    )
  })

  it("show native calls, and what a model thinks", () => {
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
        part({ type: "tool-params-delta", id: "1", delta: '{"city":"Oslo"}' }),
        part({ type: "tool-params-end", id: "1" }),
        part({ type: "tool-call", id: "1", name: "weather", params: { city: "Oslo" } }),
        part({ type: "tool-call", id: "2", name: "clock", params: {} })
      ]),
      '  thinking  Hm. Weather.\n  call      weather  {"city":"Oslo"}\n  call      clock  {}\n'
    )
  })

  it("leave out blank text between blocks", () => {
    assert.strictEqual(
      show([{ ...scope, type: "text_chunk", text: "\n\n" }, ...block("final", null, "done")]),
      "  final     done\n"
    )
  })

  it("colour labels, and nothing that a model wrote", () => {
    const text = show(block("plan", null, "\u001b[31mred\u001b[0m"), { columns: 80, colors: true })
    assert.strictEqual(text, "  \u001b[36mplan      \u001b[39m\\u{1b}[31mred\\u{1b}[0m\n")
  })

  // Every place where foreign text gets onto the screen.
  const evil = "\u001b]52;c;QUJD\u0007\u001b[2J\u001b]8;;http://e\u001b\\x\r\u202etxet\u009b31m\nstep 9"
  const foreign: ReadonlyArray<Event> = [
    ...block(evil, evil, evil),
    { ...scope, type: "text_chunk", text: evil },
    { ...scope, type: "block_unclosed", blockType: evil, name: evil, content: evil, finishReason: "stop" },
    {
      ...scope,
      type: "blocks_parsed",
      blocks: [],
      ignored: { blocks: [{ type: evil, name: null, content: "" }], reason: evil }
    },
    { ...scope, type: "plan_rejected", reason: evil, raw: evil },
    {
      ...scope,
      type: "model_completed",
      revision: 5,
      message: { role: "assistant", content: [] },
      model: evil,
      usage: null,
      finishReason: "stop",
      latencyMs: 40,
      outcome: { type: "corrective", reason: "output", corrective: evil },
      calls: []
    },
    started(evil, "c"),
    finished(evil, "c", evil),
    finished(evil, "d", { [evil]: evil }),
    { ...scope, type: "skill_error", skill: evil, callId: "e", error: evil },
    { ...scope, type: "builtin_result", command: evil, result: evil },
    { ...scope, type: "builtin_error", command: evil, error: evil },
    { ...scope, type: "call_leaked", name: evil, callId: "p" },
    { ...scope, type: "protocol_execute", protocol: evil, callId: "p", request: evil },
    { ...scope, type: "protocol_result", protocol: evil, callId: "p", result: evil, durationMs: 1 },
    { ...scope, type: "protocol_error", protocol: evil, callId: "q", error: evil },
    { ...scope, type: "workflow_start", goal: evil, strategy: evil, tasks: [] },
    { ...scope, type: "task_start", id: evil, callId: "t.0", childRunId: "t/0", input: evil, dependsOn: [] },
    { ...scope, type: "task_complete", id: evil, callId: "t.0", childRunId: "t/0", result: evil, durationMs: 1 },
    { ...scope, type: "task_error", id: evil, callId: "t.0", childRunId: "t/0", error: evil, durationMs: 1 },
    { ...scope, type: "workflow_error", error: evil, durationMs: 1 },
    { ...scope, taskId: evil, type: "turn_started", turnId: "t", revision: 2 },
    { ...scope, type: "paused", revision: 3, reason: evil, metadata: null }
  ]

  it.each(foreign.map((event) => [event.type, event] as const))(
    "escape control characters in %s (S-19)",
    (_, event) => {
      const text = show([event], { columns: 400, colors: false })
      assert.notMatch(text.replaceAll("\n", ""), /[\p{Cc}\p{Cf}]/u)
      // A rejected reply has a second line, the correction.
      assert.isAtMost(text.split("\n").length, event.type === "model_completed" ? 3 : 2)
    }
  )
})

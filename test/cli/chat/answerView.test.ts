import { assert, describe, it } from "@effect/vitest"
import type { RunEvent } from "kernai"
import { AnswerView } from "../../../src/cli/chat/answerView.ts"
import { MarkdownDrawing } from "../../../src/cli/markdownDrawing.ts"
import { type Drawing, plain } from "../../../src/cli/plainDrawing.ts"

type Event = RunEvent.RunEvent

const scope: RunEvent.RunScope = { runId: "run", rootRunId: "run", step: 0, depth: 0, taskId: undefined, at: 0 }

const started: Event = { ...scope, type: "turn_started", turnId: "t", revision: 2 }
const text = (text: string): Event => ({ ...scope, type: "text_chunk", text })
const thinks = (delta: string): Event => ({
  ...scope,
  type: "stream_part",
  turnId: "t",
  turn: 1,
  attempt: 1,
  part: { type: "reasoning-delta", id: "r", delta }
})
const called: Event = { ...scope, type: "skill_result", skill: "look", callId: "c", output: "seen", durationMs: 5 }

/** Returns everything that is shown, in order. */
const show = (...events: ReadonlyArray<Event>): string => showBy(plain(), events)

const showBy = (drawing: Drawing, events: ReadonlyArray<Event>): string => {
  let seen = ""
  const write = (text: string) => {
    seen += text
  }
  const look = { columns: 60, colors: false }
  const answers = { ...look, isTerminal: false }
  const view = new AnswerView({ out: write, progress: write, error: write, answers, ...look }, look, drawing)
  for (const event of events) view.show(event)
  view.end()
  return seen
}

const block = (at: typeof scope, type: string, name: string | null, content: string): ReadonlyArray<Event> => [
  { ...at, type: "block_start", blockType: type, name },
  { ...at, type: "block_content", text: content },
  { ...at, type: "block_complete", block: { type, name, content } }
]

describe("the answer of a chat", () => {
  it("begins on a new line in every turn, without leading blanks", () => {
    assert.strictEqual(
      show(started, thinks("Hm."), text("\n He"), text("llo."), called, started, text("\n\nBye."), thinks("So.")),
      "  thinking  Hm.\nHello.\n  skill     look  5 ms: seen\nBye.\n  thinking  So.\n"
    )
    assert.strictEqual(show(started, thinks("Hm."), text("Hello.\n")), "  thinking  Hm.\nHello.\n")
  })

  it("appears as it streams, with control characters escaped (S-19)", () => {
    const pieces: Array<string> = []
    const write = (text: string) => void pieces.push(text)
    const look = { columns: 60, colors: false }
    const answers = { ...look, isTerminal: false }
    const view = new AnswerView({ out: write, progress: write, error: write, answers, ...look }, look)
    for (const piece of ["One\u001b[2J ", "two.\n\u202e", "\tThree"]) view.show(text(piece))
    assert.deepStrictEqual(pieces, ["One\\u{1b}[2J ", "two.\n\\u{202e}", "\tThree"])
  })

  it("is drawn by a drawing, which ends where another line follows", () => {
    const drawing = new MarkdownDrawing({ columns: 60, colors: false })
    assert.strictEqual(
      showBy(drawing, [started, text("- On"), text("e\n-"), text(" two"), called, started, text("- Bye.")]),
      "• One\n• two\n  skill     look  5 ms: seen\n• Bye.\n"
    )
  })

  it("is shown from the beginning when the model is asked again", () => {
    const again: Event = { ...scope, type: "model_restarted", attempt: 2, revision: 3 }
    assert.strictEqual(show(started, text("Hel"), again, text("Hello.")), "Hel\n  ! asking again, attempt 2\nHello.\n")
  })

  it("shows the work of tasks, without their turns", () => {
    const task = { ...scope, runId: "run/a", depth: 1, taskId: "a" }
    assert.strictEqual(
      show(
        { ...task, type: "turn_started", turnId: "t", revision: 2 },
        { ...task, type: "text_chunk", text: "Well." },
        ...block(task, "plan", null, "First this."),
        ...block(task, "command", "look", "{}"),
        { ...scope, type: "task_complete", id: "a", callId: "t.0", childRunId: "t/0", durationMs: 5, result: "Done." }
      ),
      "    text      Well.\n    plan      First this.\n    command   look  {}\n  task      a  5 ms: Done.\n"
    )
  })

  it("is completed when stream parts were dropped, and shown again when it differs from them", () => {
    const final = (content: string): ReadonlyArray<Event> => [
      { ...scope, type: "block_start", blockType: "final", name: null },
      { ...scope, type: "block_content", text: "\nOne " },
      { ...scope, type: "block_complete", block: { type: "final", name: null, content } }
    ]
    assert.strictEqual(show(...final("\nOne two.")), "One two.\n")
    assert.strictEqual(show(...final("\nOne two."), text("More.")), "One two.\nMore.\n")
    assert.strictEqual(show(...final("Other.")), "One \nOther.\n")
  })
})

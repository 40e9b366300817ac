import { assert, describe, it } from "@effect/vitest"
import type { RunEvent } from "kernai"
import * as Teller from "../../../src/cli/chat/teller.ts"

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
const called: Event = { ...scope, type: "skill_execute", skill: "look", callId: "c", input: {} }

/** All that is seen, in its order. */
const show = (...events: ReadonlyArray<Event>): string => {
  let seen = ""
  const write = (text: string) => {
    seen += text
  }
  const screen = { out: write, progress: write, error: write, columns: 60, rows: 24, colors: false }
  const teller = Teller.make(screen, screen)
  for (const event of events) teller.tell([event])
  teller.end()
  return seen
}

describe("Teller", () => {
  it("begins an answer on a line of its own, without the blanks before it, in every turn", () => {
    assert.strictEqual(
      show(started, thinks("Hm."), text("\n He"), text("llo."), called, started, text("\n\nBye."), thinks("So.")),
      "  thinking  Hm.\nHello.\n╭ look  {}\nBye.\n  thinking  So.\n"
    )
    assert.strictEqual(show(started, thinks("Hm."), text("Hello.\n")), "  thinking  Hm.\nHello.\n")
  })

  it("says that the model is asked again, and shows its answer from the beginning", () => {
    const again: Event = { ...scope, type: "model_restarted", attempt: 2, revision: 3 }
    assert.strictEqual(show(started, text("Hel"), again, text("Hello.")), "Hel\n  ! asking again, attempt 2\nHello.\n")
  })

  it("shows the blocks of a task when they are whole, but none of which its calls or its result tell", () => {
    const task = { ...scope, runId: "run/a", depth: 1, taskId: "a" }
    const block = (type: string, name: string | null, content: string): ReadonlyArray<Event> => [
      { ...task, type: "block_start", blockType: type, name },
      { ...task, type: "block_content", text: content },
      { ...task, type: "block_complete", block: { type, name, content } }
    ]
    assert.strictEqual(
      show(
        { ...task, type: "turn_started", turnId: "t", revision: 2 },
        { ...task, type: "text_chunk", text: "Well." },
        ...block("plan", null, "First this."),
        ...block("command", "look", "{}"),
        { ...task, type: "skill_execute", skill: "look", callId: "c", input: {} },
        ...block("final", null, "Done."),
        { ...scope, type: "task_complete", id: "a", durationMs: 5, result: "Done." }
      ),
      "    plan      First this.\n  ╭ look  {}\n  task      a  5 ms  Done.\n"
    )
  })

  it("shows what it missed of a text when that is whole, and a text that is another one anew", () => {
    const block = (content: string): ReadonlyArray<Event> => [
      { ...scope, type: "block_start", blockType: "final", name: null },
      { ...scope, type: "block_content", text: "\nOne " },
      { ...scope, type: "block_complete", block: { type: "final", name: null, content } }
    ]
    assert.strictEqual(show(...block("\nOne two.")), "One two.\n")
    assert.strictEqual(show(...block("\nOne two."), text("More.")), "One two.\nMore.\n")
    assert.strictEqual(show(...block("Other.")), "One \nOther.\n")
  })
})

/**
 * A run as lines for a terminal: turns, blocks, calls, tokens.
 *
 * A pure fold from events to text. A block is shown as it is written, on one
 * line and no wider than the terminal; nothing moves the cursor, so the same
 * text reads well in a log. Everything foreign is made visible (S-19).
 */

import type { RunEvent } from "../RunEvent.ts"
import { type Options, paint, Pen, type State } from "./pen.ts"
import * as Text from "./terminalText.ts"

/** Moves on by one event: the new state, and the text to write. */
export const step = (state: State, event: RunEvent, options: Options): readonly [State, string] => {
  const pen = new Pen(state, options, event)
  draw(pen, event)
  return pen.done()
}

/** Ends a line that is still open. */
export const end = (state: State): string => (state.open === undefined ? "" : "\n")

// ---------------------------------------------------------------- events

const draw = (pen: Pen, event: RunEvent): void => {
  switch (event.type) {
    case "turn_started":
      return pen.line(paint(titleOf(event), "title", pen.options))
    case "model_restarted":
      return pen.note(`asking again, attempt ${event.attempt}`)
    case "model_completed":
      return pen.fact(
        "model",
        event.model,
        [
          Text.tokens(event.usage),
          event.costUsd === undefined ? "" : `$${event.costUsd.toFixed(4)}`,
          Text.duration(event.latencyMs),
          event.finishReason === "stop" || event.finishReason === "tool-calls" ? "" : `ended by ${event.finishReason}`
        ]
          .filter((part) => part !== "")
          .join(", ")
      )
    case "tool_calls_started":
      // What a policy denied stands among the questions, with its answer.
      return (event.questions ?? []).forEach(({ answer, reason, name }) =>
        pen.note(`${name} ${answer === undefined ? "waits for a person" : "does not run"}: ${reason}`)
      )
    case "paused":
      return pen.note(`paused: ${event.reason}`)
    default:
      return drawReply(pen, event)
  }
}

const titleOf = ({ step, taskId }: RunEvent): string =>
  `turn ${step + 1}${taskId === undefined ? "" : ` of task ${Text.excerpt(taskId, 40)}`}`

const drawReply = (pen: Pen, event: RunEvent): void => {
  switch (event.type) {
    case "text_chunk":
      return pen.write("text", "text", "", event.text)
    case "stream_part":
      return drawPart(pen, event.part)
    case "block_start":
      return pen.open("block", event.blockType, event.name ?? "")
    case "block_content":
      return pen.more("block", event.text)
    case "block_complete":
      return pen.close("block", event.block.type, event.block.name ?? "", event.block.content)
    case "block_unclosed":
      return pen.note(`the block ${event.blockType} was never closed (${event.finishReason})`)
    case "blocks_ignored":
      return pen.note(`${event.kinds.join(", ")} ignored: ${event.reason}`)
    case "informational_only":
      return pen.note(`only ${event.kinds.join(", ")}: asking to go on`)
    case "no_blocks_stall":
      return pen.note("no block that does anything: asking again")
    case "plan_rejected":
      return pen.note(`the plan was rejected: ${event.reason}`)
    case "output_rejected":
      return pen.note(`the answer was rejected: ${event.detail}`)
    case "reply_cut":
      return pen.note(`the reply was cut (${event.finishReason})`)
    default:
      return drawCall(pen, event)
  }
}

const drawPart = (pen: Pen, part: Extract<RunEvent, { type: "stream_part" }>["part"]): void => {
  switch (part.type) {
    case "reasoning-delta":
      return pen.write("thinking", "thinking", "", part.delta)
    case "tool-params-start":
      return pen.open(`params ${part.id}`, "call", part.name)
    case "tool-params-delta":
      return pen.more(`params ${part.id}`, part.delta)
    case "tool-params-end":
      return pen.stop(`params ${part.id}`)
    default:
      return
  }
}

const drawCall = (pen: Pen, event: RunEvent): void => {
  switch (event.type) {
    case "skill_execute":
      return pen.open(event.callId, "skill", event.skill)
    case "skill_result":
      return pen.result(event.callId, "skill", event.skill, event.durationMs, event.output)
    case "skill_error":
      return pen.failure(event.callId, "skill", event.skill ?? "", event.error)
    case "skill_leaked":
      return pen.note(`${event.skill} was told to stop and did not`)
    case "builtin_result":
      return pen.fact("builtin", event.command, Text.excerpt(event.result, pen.options.columns))
    case "builtin_error":
      return pen.failure("", "builtin", event.command, event.error)
    case "protocol_leaked":
      return pen.note(`${event.protocol} was told to stop and did not`)
    case "protocol_execute":
      return pen.open(event.callId, "protocol", event.protocol)
    case "protocol_result":
      return pen.result(event.callId, "protocol", event.protocol, event.durationMs, event.result)
    case "protocol_error":
      return pen.failure(event.callId, "protocol", event.protocol, event.error)
    default:
      return drawTask(pen, event)
  }
}

const drawTask = (pen: Pen, event: RunEvent): void => {
  switch (event.type) {
    case "workflow_start":
      return pen.fact("workflow", event.goal, `${event.tasks.length} tasks, ${event.strategy}`)
    case "task_start":
      return pen.fact("task", event.id, event.input)
    case "task_complete":
      return pen.result("", "task", event.id, event.durationMs, event.result)
    case "task_error":
      return pen.failure("", "task", event.id, event.error)
    case "workflow_complete":
      return pen.fact("workflow", "done", Text.duration(event.durationMs))
    case "workflow_error":
      return pen.failure("", "workflow", "", event.error)
    default:
      return
  }
}

/** Changes of a person to a fork: another question, other results of calls, or another last turn. */

import * as Schema from "effect/Schema"
import * as Contents from "../../Content.ts"
import type { Message } from "../../Message.ts"
import type { PhaseEvent, RunRecord } from "../../RunRecord.ts"

const words = Schema.String.check(Schema.isMaxLength(1_000_000))

/** The body of a request to fork. Results are keyed by the ids of their calls in the original run. */
export const Fork = Schema.Struct({
  revision: Schema.Int.check(Schema.isGreaterThan(0)),
  question: Schema.optionalKey(words),
  results: Schema.optionalKey(Schema.Record(Schema.String, words)),
  /** The instructions of the turn that was prepared at the revision. Later turns have those of their agent. */
  instructions: Schema.optionalKey(words),
  /** The temperature of that turn. */
  temperature: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })))
})
export type Fork = typeof Fork.Type

/**
 * Returns a function that changes each record as it is copied into the fork, whose call ids begin with another run id.
 */
export const editOf = (
  runId: string,
  forkId: string,
  { instructions, question, results = {}, revision, temperature }: Fork
): ((record: RunRecord) => RunRecord) => {
  const changed = new Map(
    Object.entries(results).map(([callId, text]) => [
      callId.startsWith(`${runId}:`) ? forkId + callId.slice(runId.length) : callId,
      text
    ])
  )
  const edit = (event: PhaseEvent): PhaseEvent => {
    if (event.type === "run_started" && question !== undefined) {
      return { ...event, messages: asked(event.messages, question) }
    }
    const text = event.type === "tool_call_completed" ? changed.get(event.callId) : undefined
    if (event.type !== "tool_call_completed" || text === undefined) return event
    const { error: _, message: __, ...result } = event.result
    return { ...event, result: { ...result, output: [Contents.text(text)] } }
  }
  const prepare = prepared(instructions, temperature)
  return (record) => ({
    ...record,
    events: record.events.map((event) => (record.revision === revision ? prepare(edit(event)) : edit(event)))
  })
}

/** Changes how a turn was prepared. */
const prepared =
  (system: string | undefined, temperature: number | undefined) =>
  (event: PhaseEvent): PhaseEvent => {
    if (event.type !== "turn_prepared") return event
    const { args, prompt } = event
    return {
      ...event,
      prompt: system === undefined ? prompt : { ...prompt, system },
      ...(temperature === undefined ? {} : { args: { ...args, generation: { ...args?.generation, temperature } } })
    }
  }

/** Replaces the text of the last user message, and keeps its media. */
const asked = (messages: ReadonlyArray<Message>, question: string): ReadonlyArray<Message> => {
  const at = messages.findLastIndex(({ role }) => role === "user")
  return messages.map((message, index) =>
    index === at
      ? {
          ...message,
          content: [Contents.text(question), ...message.content.filter(({ type }) => type !== "text")]
        }
      : message
  )
}

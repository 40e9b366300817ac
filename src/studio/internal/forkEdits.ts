/** Changes of a person to a fork: another question, other results of calls, or another last turn. */

import * as Schema from "effect/Schema"
import type { CallResult } from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { Message } from "../../Message.ts"
import type { Model } from "../../Model.ts"
import type { PromptDelta } from "../../RunModel.ts"
import type { Delta, PhaseEvent, RunRecord, TurnPrepared } from "../../RunRecord.ts"
import * as RunState from "../../RunState.ts"

const words = Schema.String.check(Schema.isMaxLength(1_000_000))

const EditedMessage = Schema.Struct({ at: Schema.Natural, text: words })

/** The body of a request to fork. Results are keyed by the ids of their calls in the original run. */
export const Fork = Schema.Struct({
  revision: Schema.Int.check(Schema.isGreaterThan(0)),
  question: Schema.optionalKey(words),
  results: Schema.optionalKey(Schema.Record(Schema.String, words)),
  /** The instructions of the turn that was prepared at the revision. Later turns have those of their agent. */
  instructions: Schema.optionalKey(words),
  /** Other texts of messages of that turn, by their places in its prompt. Later turns keep them. */
  messages: Schema.optionalKey(Schema.Array(EditedMessage)),
  /** The model of that turn, by one of the names that the server lists. */
  model: Schema.optionalKey(Schema.String),
  /** The temperature of that turn. */
  temperature: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })))
})
export type Fork = typeof Fork.Type

/** Models by the names under which they are offered. */
export type Models = ReadonlyMap<string, Model>

// ---------------------------------------------------------------- what a fork may change

/** Returns why a fork cannot have these changes, or undefined if it can. The state is that of the run at the revision. */
export const problemOf = (state: RunState.RunState, fork: Fork, models: Models): string | undefined => {
  const { instructions, messages = [], model, question, results = {}, revision, temperature } = fork
  if (question !== undefined && !state.input.some(({ role }) => role === "user")) return "the run has no question"
  const changesTurn = (instructions ?? model ?? temperature) !== undefined || messages.length > 0
  if (changesTurn && (state.status.phase !== "turn_prepared" || state.phaseRevision !== revision))
    return `no turn was prepared at revision ${revision}`
  if (model !== undefined && !models.has(model)) return `the model '${model}' is not one of those that are offered`
  const place = messages.find(({ at }) => !hasText(state.prompt[at]))
  if (place !== undefined) return `message ${place.at} of the turn has no text`
  const { currentTurn, turns } = state
  const known = new Set(
    [...turns, ...(currentTurn ? [currentTurn] : [])].flatMap(({ completed }) => completed.map(idOf))
  )
  const unknown = Object.keys(results).find((callId) => !known.has(callId))
  return unknown === undefined ? undefined : `the call '${unknown}' has no result at revision ${revision}`
}

const idOf = ({ callId }: CallResult): string => callId

const hasText = (message: Message | undefined): boolean => message?.content.some(({ type }) => type === "text") === true

// ---------------------------------------------------------------- the changes

/**
 * Returns a function that changes the records in their order as they are copied into the fork, whose call ids begin with
 * another run id.
 */
export const editOf = (
  runId: string,
  forkId: string,
  fork: Fork,
  models: Models
): ((record: RunRecord) => RunRecord) => {
  const results = new Map(
    Object.entries(fork.results ?? {}).map(([callId, text]) => [
      callId.startsWith(`${runId}:`) ? forkId + callId.slice(runId.length) : callId,
      text
    ])
  )
  const earlier: Array<RunRecord> = []
  return (record) => {
    const events = record.events.map((event) => withResults(withQuestion(event, fork.question), results))
    const copied = { ...record, delta: withResolved(record.delta, results), events }
    earlier.push(copied)
    if (record.revision !== fork.revision) return copied
    const promptBefore = (index: number) =>
      RunState.fold(earlier.with(-1, { ...copied, events: events.slice(0, index) }))?.prompt ?? []
    return {
      ...copied,
      events: events.map((event, index) =>
        event.type === "turn_prepared" ? prepared(event, () => promptBefore(index), fork, models) : event
      )
    }
  }
}

const withQuestion = (event: PhaseEvent, question: string | undefined): PhaseEvent => {
  if (event.type !== "run_started" || question === undefined) return event
  const at = event.messages.findLastIndex(({ role }) => role === "user")
  return {
    ...event,
    messages: event.messages.map((message, index) => (index === at ? said(message, question) : message))
  }
}

type Results = ReadonlyMap<string, string>

const withResults = (event: PhaseEvent, results: Results): PhaseEvent => {
  if (event.type === "tool_call_completed") {
    return { ...event, result: returned(event.result, results.get(event.callId)) }
  }
  if (event.type !== "tool_call_started" || event.change?.type !== "skip") return event
  const { result } = event.change
  return { ...event, change: { ...event.change, result: returned(result, results.get(result.callId)) } }
}

const withResolved = (delta: Delta, results: Results): Delta =>
  delta.resolved === undefined
    ? delta
    : { ...delta, resolved: delta.resolved.map((result) => returned(result, results.get(result.callId))) }

/** Returns a result with a text in place of what the call returned or failed with. */
const returned = <Result extends Pick<CallResult, "error" | "message" | "output" | "value">>(
  result: Result,
  text: string | undefined
): Omit<Result, "error" | "message" | "value"> => {
  if (text === undefined) return result
  const { error: _, message: __, value: ___, ...rest } = result
  return { ...rest, output: [Contents.text(text)] }
}

/** Changes how a turn was prepared, given the conversation before. */
const prepared = (
  event: TurnPrepared,
  before: () => ReadonlyArray<Message>,
  { instructions, messages = [], model, temperature }: Fork,
  models: Models
): TurnPrepared => {
  const chosen = model === undefined ? undefined : models.get(model)
  const prompt = messages.length === 0 ? event.prompt : rewritten(event.prompt, before(), messages)
  const generation = temperature === undefined ? undefined : { ...event.args?.generation, temperature }
  const args = { ...event.args, ...(chosen && { model: chosen }), ...(generation && { generation }) }
  return {
    ...event,
    ...(chosen && { model: chosen.id }),
    prompt: instructions === undefined ? prompt : { ...prompt, system: instructions },
    ...(chosen || generation ? { args } : {})
  }
}

const rewritten = (
  prompt: PromptDelta,
  before: ReadonlyArray<Message>,
  edits: ReadonlyArray<typeof EditedMessage.Type>
): PromptDelta => {
  const texts = new Map(edits.map(({ at, text }) => [at, text]))
  const base = Math.min(prompt.base, ...texts.keys())
  const messages = [...before.slice(0, prompt.base), ...prompt.append].map((message, at) => {
    const text = texts.get(at)
    return text === undefined ? message : said(message, text)
  })
  return { ...prompt, base, append: messages.slice(base) }
}

/** Returns a message that says another text. Its other contents stay where they are. */
const said = (message: Message, text: string): Message => {
  const first = message.content.findIndex(({ type }) => type === "text")
  const content = message.content.flatMap((part, index): ReadonlyArray<Content> =>
    part.type !== "text" ? [part] : index === first ? [Contents.text(text)] : []
  )
  return { ...message, content: first === -1 ? [Contents.text(text), ...content] : content }
}

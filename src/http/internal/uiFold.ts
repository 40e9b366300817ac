/**
 * Folds the events of a run into the chunks of an AI SDK UI message stream.
 *
 * Stored events alone give a whole message; live events let it grow piece by piece. Streamed parts of a reply are not
 * repeated when the reply is stored. Pure except for its own state: the same events give the same chunks.
 */

import type { Call, CallOutcome, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import type { DialectName } from "../../Dialect.ts"
import type { Json, JsonObject } from "../../kit/json.ts"
import { isJsonObject, plain } from "../../kit/json.ts"
import type { ModelCompleted, RunEvent, ToolCallStarted } from "../../RunEvent.ts"
import type { Question } from "../../RunModel.ts"
import * as Plan from "../../Plan.ts"
import * as Usage from "../../Usage.ts"
import { type Chunk, chunk, data, filesOf, finishReason, ofOutcome, sourcesOf } from "./uiChunk.ts"
import { outward } from "./shownEvents.ts"
import { UiReply } from "./uiReply.ts"

/** Options of the fold. */
export interface Options {
  /** Returns the address of a stored medium of the run. */
  readonly urlOf: (fileId: string) => string
}

/** The message of one run. */
export class UiFold {
  readonly #urlOf: (fileId: string) => string
  readonly #reply = new UiReply()
  /** Calls that a person was asked about. */
  readonly #asked = new Set<string>()
  /** Calls that the page knows as tool parts. */
  readonly #known = new Map<string, Pick<Call, "name" | "input">>()
  /** Data parts of tasks and called agents by their calls, which each new state replaces. */
  readonly #tasks = new Map<string, TaskPart>()
  /** The calls that work in the background, by their runs. */
  readonly #inBackground = new Map<string, string>()
  /** The tasks of the plan in progress that are not completed, by their calls. */
  readonly #planned = new Map<string, Planned>()
  #strategy: Plan.Strategy = "parallel"
  #dialect: DialectName = "blocks"
  #usage = Usage.zero
  /** Undefined until the price of a reply is known. */
  #costUsd: number | undefined
  #turns = 0
  #turnId = ""
  #reason: string | undefined

  constructor({ urlOf }: Options) {
    this.#urlOf = urlOf
  }

  /** Returns the chunks of an event. */
  push(event: RunEvent): ReadonlyArray<Chunk> {
    switch (event.type) {
      case "run_started":
        return [chunk("start", { messageId: event.runId, messageMetadata: { runId: event.runId, agent: event.agent } })]
      case "turn_started":
        this.#turnId = event.turnId
        return [chunk("start-step"), ...(event.ended ?? []).flatMap((result) => this.#arrived(result))]
      case "turn_prepared":
        this.#dialect = event.dialect
        return []
      case "model_restarted":
        this.#reply.reset()
        return [chunk("reset-step")]
      case "model_completed":
        return this.#completed(event)
      case "tool_calls_started":
        return [...(event.calls ?? []).flatMap((call) => this.#called(call)), ...this.#questions(event.questions ?? [])]
      case "tool_call_started":
        return this.#reviewed(event)
      case "tool_call_completed":
        return this.#ended(event.callId, event.result)
      case "turn_completed":
        return [chunk("finish-step")]
      case "agent_changed":
        return [
          data("agent", event.callId, { from: event.from, to: event.to, status: "handed over" }),
          metadata({ agent: event.to })
        ]
      case "paused":
        return [...this.#waiting(), ...this.#questions(questionsIn(event.metadata)), this.#finish("tool-calls")]
      case "run_completed":
        return [this.#finish(finishReason(this.#reason))]
      case "run_failed":
        return [...this.#reply.close(), chunk("error", { errorText: outward(event.error).message })]
      case "run_cancelled":
        return [...this.#reply.close(), chunk("abort", { reason: event.reason }), this.#finish("interrupted")]
      default:
        return this.#live(event)
    }
  }

  /** Returns the chunks of an event that is emitted live only. */
  #live(event: RunEvent): ReadonlyArray<Chunk> {
    switch (event.type) {
      case "text_chunk":
      case "block_start":
      case "block_content":
      case "block_complete":
      case "stream_part":
        return this.#reply.push(event)
      case "skill_progress":
        return this.#progress(event)
      case "task_start":
        return this.#tasks.get(event.callId)?.name === "task" ? this.#taskIs(event.callId, "running") : []
      default:
        return []
    }
  }

  #progress({ callId, output, progress }: SkillProgress): ReadonlyArray<Chunk> {
    if (output === undefined) return [chunk("data-progress", { id: callId, data: plain(progress), transient: true })]
    return this.#known.has(callId)
      ? [chunk("tool-output-available", { toolCallId: callId, output: plain(output), preliminary: true })]
      : []
  }

  #completed(event: ModelCompleted): ReadonlyArray<Chunk> {
    const { calls, finishReason: reason, message, outcome, usage } = event
    this.#turns++
    this.#reason = reason
    this.#plan(event)
    this.#usage = usage === null ? this.#usage : Usage.add(this.#usage, usage)
    if (event.costUsd !== undefined) this.#costUsd = (this.#costUsd ?? 0) + event.costUsd
    // The model is asked again, and the rejected reply is not part of the conversation.
    if (outcome.type === "corrective") {
      this.#reply.reset()
      return [chunk("reset-step")]
    }
    // A call may have another id than the one under which it was streamed.
    const isRefused = this.#reply.started.some((id) => !calls.some(({ callId }) => callId === id))
    const before = isRefused ? [chunk("reset-step")] : []
    if (isRefused) this.#reply.reset()
    return [
      ...before,
      // A native call stands where the model wrote it, as it does while the reply is streamed.
      ...this.#reply.complete(message.content, this.#dialect, (callId) =>
        calls.filter((call) => call.callId === callId).flatMap((call) => this.#input(call))
      ),
      ...filesOf(message.content, this.#urlOf),
      ...sourcesOf(message.content),
      ...(outcome.type === "workflow"
        ? [data("plan", event.runId, { goal: outcome.plan.goal, tasks: calls.map(({ name }) => name ?? "") })]
        : []),
      ...calls.flatMap((call) => (this.#known.has(call.callId) ? this.#task(call) : this.#called(call))),
      metadata(this.#spent())
    ]
  }

  #called(call: Call): ReadonlyArray<Chunk> {
    return call.kind === "task" ? this.#task(call) : [...this.#input(call), ...this.#task(call)]
  }

  #input({ callId, input, name }: Call): ReadonlyArray<Chunk> {
    this.#known.set(callId, { name, input })
    return [available(callId, name, input)]
  }

  /** Shows a task or a called agent. Other calls are tool parts alone. */
  #task(call: Call): ReadonlyArray<Chunk> {
    const part = taskPart(this.#turnId, call)
    if (part === undefined) return []
    this.#tasks.set(call.callId, part)
    if (call.background) this.#inBackground.set(Calls.childRunId(this.#turnId, call) ?? "", call.callId)
    return this.#taskIs(call.callId, "pending")
  }

  /** Remembers the tasks of a plan, which start when those they depend on are completed. */
  #plan({ calls, outcome }: ModelCompleted): void {
    this.#planned.clear()
    if (outcome.type !== "workflow") return
    const { strategy, tasks } = outcome.plan
    this.#strategy = strategy
    for (const { callId, name } of calls) {
      const task = tasks.find(({ id }) => id === name)
      if (task !== undefined) this.#planned.set(callId, { ...task, hasFailed: false })
    }
  }

  /** Shows the tasks that wait for a person as running. Their start is a live event, which a page that reloads lacks. */
  #waiting(): ReadonlyArray<Chunk> {
    const missing = new Set([...this.#planned.values()].map(({ id }) => id))
    const left = [...this.#planned].filter(([, { hasFailed }]) => !hasFailed)
    const inTurn = left.find(([, task]) => !Plan.isParallel(this.#strategy, task))
    return left
      .filter(([, { dependsOn }]) => !dependsOn.some((id) => missing.has(id)))
      .filter((one) => one === inTurn || Plan.isParallel(this.#strategy, one[1]))
      .flatMap(([callId]) => this.#taskIs(callId, "running"))
  }

  #questions(questions: ReadonlyArray<Question>): ReadonlyArray<Chunk> {
    return questions.flatMap((question) => {
      const { answer, asking, callId, name, reason } = question
      if (answer !== undefined || this.#asked.has(callId)) return []
      this.#asked.add(callId)
      const isKnown = this.#known.has(callId)
      this.#known.set(callId, { name, input: question.input })
      // The page runs the call itself and sends its result.
      if (asking?.output !== undefined) return isKnown ? [] : [available(callId, name, question.input)]
      const request = chunk("tool-approval-request", { approvalId: callId, toolCallId: callId, reason })
      const form = asking === undefined ? [] : [data("form", callId, { ...asking })]
      return [...(isKnown ? [] : [available(callId, name, question.input)]), ...form, request]
    })
  }

  #reviewed({ callId, change }: ToolCallStarted): ReadonlyArray<Chunk> {
    if (change !== undefined && change.type !== "rewrite") return this.#ended(callId, change.result)
    const rewritten = change === undefined ? [] : this.#called(change.call)
    // A task of a plan may still wait for others.
    return this.#tasks.get(callId)?.name === "agent" ? [...rewritten, ...this.#taskIs(callId, "running")] : rewritten
  }

  /** Shows the result of a background call, whose call has had a preliminary one since it started. */
  #arrived(result: CallResult): ReadonlyArray<Chunk> {
    const callId = this.#inBackground.get(result.callId) ?? result.callId
    this.#inBackground.delete(result.callId)
    return this.#ended(callId, result)
  }

  #ended(callId: string, result: CallOutcome): ReadonlyArray<Chunk> {
    const { error, output } = result
    if (error === undefined && Array.from(this.#inBackground.values()).includes(callId)) {
      return [{ ...ofOutcome(callId, result, false), preliminary: true }]
    }
    const planned = this.#planned.get(callId)
    if (planned !== undefined && error === undefined) this.#planned.delete(callId)
    else if (planned !== undefined) this.#planned.set(callId, { ...planned, hasFailed: true })
    const task =
      error === undefined ? this.#taskIs(callId, "completed") : this.#taskIs(callId, "failed", { error: error.message })
    const call = this.#known.get(callId)
    if (call === undefined) return task
    const outcome =
      error !== undefined && inputErrors.has(error.name)
        ? refused(callId, call, error.message)
        : ofOutcome(callId, result, this.#asked.has(callId))
    return [...task, outcome, ...filesOf(contentsOf(output), this.#urlOf)]
  }

  #taskIs(
    callId: string,
    status: "pending" | "running" | "completed" | "failed",
    more: JsonObject = {}
  ): ReadonlyArray<Chunk> {
    const part = this.#tasks.get(callId)
    return part === undefined ? [] : [data(part.name, callId, { ...part.data, status, ...more })]
  }

  #finish(reason: string): Chunk {
    return chunk("finish", { finishReason: reason, messageMetadata: this.#spent() })
  }

  /** Returns what the message has used so far. */
  #spent(): JsonObject {
    const { cachedTokens: cachedInputTokens, inputTokens, outputTokens, reasoningTokens } = this.#usage
    const totalTokens = inputTokens + outputTokens
    const usage = { inputTokens, outputTokens, totalTokens, cachedInputTokens, reasoningTokens }
    // Without a price the cost is unknown, not zero.
    const cost = this.#costUsd === undefined ? {} : { costUsd: this.#costUsd }
    return { usage, ...cost, turns: this.#turns }
  }
}

type SkillProgress = Extract<RunEvent, { readonly type: "skill_progress" }>

const metadata = (messageMetadata: JsonObject): Chunk => chunk("message-metadata", { messageMetadata })

const available = (toolCallId: string, name: string | null, input: Json): Chunk =>
  chunk("tool-input-available", { toolCallId, toolName: name ?? "unknown", input })

/** The errors of calls whose input cannot be used. */
const inputErrors: ReadonlySet<string> = new Set(["InvalidArguments", "MissingName"])

const refused = (toolCallId: string, { input, name }: Pick<Call, "name" | "input">, errorText: string): Chunk =>
  chunk("tool-input-error", { toolCallId, toolName: name ?? "unknown", input, errorText })

/** A task of a plan. One that has failed keeps those that depend on it from starting. */
interface Planned extends Plan.Task {
  readonly hasFailed: boolean
}

/** The data part of a task or a called agent, without its status. */
interface TaskPart {
  readonly name: "task" | "agent"
  readonly data: JsonObject
}

const taskPart = (turnId: string, call: Call): TaskPart | undefined => {
  const runId = Calls.childRunId(turnId, call)
  if (runId === undefined) return undefined
  const { input, kind, name } = call
  return kind === "agent"
    ? { name: "agent", data: { agent: name, runId } }
    : { name: "task", data: { name: name ?? "", input: isJsonObject(input) ? (input["input"] ?? null) : input } }
}

const contentsOf = (output: ReadonlyArray<Content> = []): ReadonlyArray<Content> =>
  output.flatMap((content) => (content.type === "tool_result" ? content.content : [content]))

/** Reads the questions of a pause from the journal. */
export const questionsIn = (metadata: Json): ReadonlyArray<Question> => {
  const questions = isJsonObject(metadata) ? metadata["questions"] : undefined
  // Nobody is asked by a call that waits for a time alone.
  return Array.isArray(questions) ? questions.filter(isQuestion).filter(({ asking }) => asking?.isTimer !== true) : []
}

const isQuestion = (value: unknown): value is Question =>
  isJsonObject(value) &&
  typeof value["callId"] === "string" &&
  typeof value["name"] === "string" &&
  typeof value["reason"] === "string"

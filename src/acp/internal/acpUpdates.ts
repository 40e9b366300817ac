/**
 * Folds the events of a run into updates of a session.
 *
 * Stored events alone give the whole run, for a session that is loaded; live events let it grow piece by piece. Pure
 * except for its own state.
 */

import type { Call, CallOutcome } from "../../Call.ts"
import type { DialectName } from "../../Dialect.ts"
import { isJsonObject, type Json, type JsonObject } from "../../kit/json.ts"
import type { ModelCompleted, RunEvent, ToolCallStarted } from "../../RunEvent.ts"
import * as Shown from "./acpCalls.ts"
import { type Piece, ReplyText } from "./acpText.ts"

/** An update of a session. */
export type Update = JsonObject & { readonly sessionUpdate: string }

type KnownCall = Pick<Call, "callId" | "input" | "kind" | "name">

/** The updates of one run. */
export class UpdateFold {
  readonly #cwd: string
  readonly #reply = new ReplyText()
  /** Calls that the client knows and that have not ended. */
  readonly #open = new Map<string, KnownCall>()
  /** The tasks of the plan in progress, by their calls. */
  readonly #tasks = new Map<string, { readonly content: string; status: PlanStatus }>()
  /** Terminals of the editor, and the calls that show them. */
  readonly #terminals: Array<{ readonly command: string; readonly terminalId: string; callId?: string }> = []
  #dialect: DialectName = "blocks"

  constructor(cwd: string) {
    this.#cwd = cwd
  }

  /** Returns the updates for an event of the run. */
  push(event: RunEvent): ReadonlyArray<Update> {
    // Another agent that is called is shown as its call.
    if (event.depth > 0) return []
    switch (event.type) {
      case "turn_prepared":
        this.#dialect = event.dialect
        return []
      case "text_chunk":
      case "block_start":
      case "block_content":
      case "block_complete":
      case "stream_part":
        return this.#reply.push(event).map(chunkOf)
      case "model_restarted":
        this.#reply.reset()
        return []
      case "model_completed":
        return this.#completed(event)
      case "tool_calls_started":
        return (event.calls ?? []).flatMap((call) => this.#called(call))
      case "tool_call_started":
        return this.#started(event)
      case "tool_call_completed":
        return this.#ended(event.callId, event.result)
      case "run_failed":
      case "run_cancelled":
        return this.stop()
      default:
        return []
    }
  }

  /** Returns the updates for a run that was stopped: no call is in progress any more. */
  stop(): ReadonlyArray<Update> {
    const open = [...this.#open.keys()]
    this.#open.clear()
    return open.map((toolCallId) => ({ sessionUpdate: "tool_call_update", toolCallId, status: "failed" }))
  }

  /** Shows a terminal in the call that runs its command: now, or when the call is known. */
  terminal(command: string, terminalId: string): ReadonlyArray<Update> {
    this.#terminals.push({ command, terminalId })
    return this.#attached()
  }

  /** Returns the updates for terminals whose calls are known now. */
  #attached(): ReadonlyArray<Update> {
    const updates: Array<Update> = []
    for (const terminal of this.#terminals.filter(({ callId }) => callId === undefined)) {
      const { command, terminalId } = terminal
      const call = [...this.#open.values()].find(
        ({ callId, input }) => isJsonObject(input) && input["command"] === command && !this.#hasTerminal(callId)
      )
      if (call === undefined) continue
      terminal.callId = call.callId
      const content = [{ type: "terminal", terminalId }]
      updates.push({ sessionUpdate: "tool_call_update", toolCallId: call.callId, content })
    }
    return updates
  }

  #hasTerminal(callId: string): boolean {
    return this.#terminals.some((terminal) => terminal.callId === callId)
  }

  #completed({ calls, message, outcome }: ModelCompleted): ReadonlyArray<Update> {
    // The model is asked again, and the rejected reply is not part of the conversation.
    if (outcome.type === "corrective") {
      this.#reply.reset()
      return []
    }
    const texts = this.#reply.complete(message.content, this.#dialect).map(chunkOf)
    if (outcome.type !== "workflow") return [...texts, ...calls.flatMap((call) => this.#called(call))]
    this.#tasks.clear()
    for (const { callId, name } of calls) {
      const task = outcome.plan.tasks.find(({ id }) => id === name)
      this.#tasks.set(callId, { content: task?.input ?? name ?? "", status: "pending" })
    }
    return [...texts, this.#plan()]
  }

  #called(call: KnownCall): ReadonlyArray<Update> {
    const isKnown = this.#open.has(call.callId)
    this.#open.set(call.callId, call)
    const sessionUpdate = isKnown ? "tool_call_update" : "tool_call"
    return [{ sessionUpdate, ...Shown.shown(call, this.#cwd), status: "pending" }, ...this.#attached()]
  }

  #started({ callId, change }: ToolCallStarted): ReadonlyArray<Update> {
    if (this.#tasks.has(callId)) return this.#task(callId, "in_progress")
    if (change?.type === "skip") return this.#ended(callId, change.result)
    const rewritten = change === undefined ? [] : this.#called(change.call)
    if (!this.#open.has(callId)) return rewritten
    return [...rewritten, { sessionUpdate: "tool_call_update", toolCallId: callId, status: "in_progress" }]
  }

  #ended(callId: string, outcome: CallOutcome): ReadonlyArray<Update> {
    if (this.#tasks.has(callId)) return this.#task(callId, "completed")
    const call = this.#open.get(callId)
    if (call === undefined) return []
    this.#open.delete(callId)
    const { content, ...end } = Shown.ended(call, outcome)
    // The output stands in the terminal.
    const isShown = content === undefined || (this.#hasTerminal(callId) && outcome.error === undefined)
    const update = { sessionUpdate: "tool_call_update", ...end, ...(isShown ? {} : { content }) }
    const todos = call.name === "todo" && outcome.error === undefined ? todosIn(call.input) : undefined
    return todos === undefined ? [update] : [update, { sessionUpdate: "plan", entries: todos }]
  }

  #task(callId: string, status: PlanStatus): ReadonlyArray<Update> {
    const task = this.#tasks.get(callId)
    if (task === undefined) return []
    this.#tasks.set(callId, { ...task, status })
    return [this.#plan()]
  }

  #plan(): Update {
    const entries = [...this.#tasks.values()].map(({ content, status }) => entryOf(content, status))
    return { sessionUpdate: "plan", entries }
  }
}

type PlanStatus = "pending" | "in_progress" | "completed"

const entryOf = (content: string, status: PlanStatus): JsonObject => ({ content, status, priority: "medium" })

/** Returns the entries of a todo list, if it is one. */
const todosIn = (input: Json): ReadonlyArray<JsonObject> | undefined => {
  const todos = isJsonObject(input) ? input["todos"] : undefined
  if (!Array.isArray(todos)) return undefined
  return todos.filter(isJsonObject).flatMap(({ content, status }) => {
    const known = statuses.find((one) => one === status)
    return typeof content === "string" && known !== undefined ? [entryOf(content, known)] : []
  })
}

const statuses = ["pending", "in_progress", "completed"] as const

const chunkOf = ({ kind, text }: Piece): Update => ({
  sessionUpdate: kind === "text" ? "agent_message_chunk" : "agent_thought_chunk",
  content: { type: "text", text }
})

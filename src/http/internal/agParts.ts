/** Converts the parts of a message to AG-UI: steps, text, reasoning, calls, subagents, activities. */

import type { Content } from "../../Content.ts"
import type { Json, JsonObject } from "../../kit/json.ts"
import { type AgEvent, make, textOf } from "./agEvent.ts"
import { Transcript } from "./agTranscript.ts"
import { type Chunk, objectOf, wordOf } from "./uiChunk.ts"

/** An agent at work, and the call that it is. */
export interface Subagent {
  readonly callId: string
  readonly runId: string
}

/** The parts of one run. Its methods change it in place. */
export class AgParts {
  readonly #of: string
  /** The run to which events are attributed. Empty for the run that answers the page. */
  readonly #subagentRunId: string
  /** Calls that called agents have sent completely, and their runs. */
  readonly #announced: Map<string, string>
  /** Calls whose arguments are incomplete, and whether any were sent. */
  readonly #open = new Map<string, boolean>()
  /** Calls that were sent completely. */
  readonly #called = new Set<string>()
  /** The runs of called agents that were announced and have not ended, with their first events. */
  readonly #subagents = new Map<string, AgEvent>()
  /** Called agents that began to run and were not yet taken. */
  #running: Array<Subagent> = []
  /** The ids of the reasoning of the reply. */
  #reasoning: Array<string> = []
  #transcript = new Transcript([])
  /** The open text or reasoning. */
  #part: { readonly kind: string; readonly id: string } | undefined
  /** The message that carries the calls of the turn. */
  #parent: string | undefined
  #turn = 0
  #isInTurn = false
  #isInStep = false

  constructor(of: string, announced: Map<string, string>, isSubagent: boolean) {
    this.#of = of
    this.#announced = announced
    this.#subagentRunId = isSubagent ? of : ""
  }

  /**
   * Starts for a page that has everything so far, and announces the agents at work again. Messages are added to a
   * transcript.
   */
  begin(transcript: Transcript): ReadonlyArray<AgEvent> {
    this.#transcript = transcript
    for (const [runId, started] of this.#subagents) {
      this.#running.push({ callId: wordOf(started, "parentToolCallId"), runId })
    }
    return this.#added([...(this.#isInTurn ? this.#step() : []), ...this.#subagents.values()])
  }

  /** Returns the called agents that began to run since the last time. */
  started(): ReadonlyArray<Subagent> {
    const running = this.#running.filter(({ runId }) => this.#subagents.has(runId))
    this.#running = []
    return running
  }

  /** Returns the events for a chunk. */
  push(chunk: Chunk): ReadonlyArray<AgEvent> {
    return this.#added(this.#eventsOf(chunk))
  }

  /** Returns the signatures of vendors for the reasoning of a whole reply, which a client keeps with its messages. */
  signed(content: ReadonlyArray<Content>): ReadonlyArray<AgEvent> {
    const thoughts = content.flatMap((part) => (part.type === "thinking" && part.content !== "" ? [part] : []))
    if (thoughts.length !== this.#reasoning.length) return []
    return this.#added(
      thoughts.flatMap(({ signature }, index) =>
        signature === undefined
          ? []
          : [
              make("REASONING_ENCRYPTED_VALUE", {
                subtype: "message",
                entityId: this.#reasoning[index],
                encryptedValue: textOf(signature)
              })
            ]
      )
    )
  }

  /** Ends all open parts at the end of the run. Agents that run are suspended if the run is, and have failed otherwise. */
  end(isPaused: boolean): ReadonlyArray<AgEvent> {
    const ended = [...this.#subagents.keys()].map((subagentRunId) =>
      isPaused
        ? make("SUBAGENT_FINISHED", { subagentRunId, outcome: { type: "suspended" } })
        : make("SUBAGENT_ERROR", { subagentRunId, message: "The run ended before the agent." })
    )
    this.#subagents.clear()
    return this.#added([...this.#close(), ...ended])
  }

  /** Attributes events to a called agent, and adds their messages to the transcript. */
  #added(events: ReadonlyArray<AgEvent>): ReadonlyArray<AgEvent> {
    const attributed = this.#subagentRunId === "" ? events : events.map((event) => this.#attributed(event))
    for (const event of attributed) this.#transcript.add(event)
    return attributed
  }

  #attributed(event: AgEvent): AgEvent {
    if (event.type === "SUBAGENT_STARTED") return { ...event, parentSubagentRunId: this.#subagentRunId }
    return event.type.startsWith("SUBAGENT") || event.type === "MESSAGES_SNAPSHOT"
      ? event
      : { ...event, subagentRunId: this.#subagentRunId }
  }

  #close(): ReadonlyArray<AgEvent> {
    return [...this.#closeParts(), ...this.#unstep()]
  }

  #eventsOf(chunk: Chunk): ReadonlyArray<AgEvent> {
    switch (chunk.type) {
      case "start-step":
        return this.#begun()
      case "finish-step":
        this.#isInTurn = false
        return this.#close()
      case "reset-step":
        return this.#withdrawn()
      case "text-start":
      case "reasoning-start":
        return this.#started(chunk.type === "text-start" ? "TEXT" : "REASONING", this.#idOf(wordOf(chunk, "id")))
      case "text-delta":
      case "reasoning-delta":
        return this.#delta(wordOf(chunk, "delta"))
      case "text-end":
      case "reasoning-end":
        return this.#ended()
      default:
        return chunk.type.startsWith("tool-") ? this.#call(chunk, wordOf(chunk, "toolCallId")) : this.#other(chunk)
    }
  }

  #call(chunk: Chunk, toolCallId: string): ReadonlyArray<AgEvent> {
    switch (chunk.type) {
      case "tool-input-start":
        return this.#callStarted(toolCallId, wordOf(chunk, "toolName"))
      case "tool-input-delta":
        this.#open.set(toolCallId, true)
        return [make("TOOL_CALL_ARGS", { toolCallId, delta: wordOf(chunk, "inputTextDelta") })]
      case "tool-input-available":
        return this.#whole(toolCallId, wordOf(chunk, "toolName"), chunk["input"])
      case "tool-output-available":
        return chunk["preliminary"] === true
          ? [make("CUSTOM", { name: "preliminary", value: { toolCallId, output: chunk["output"] ?? null } })]
          : [this.#result(toolCallId, textOf(chunk["output"]))]
      case "tool-output-denied":
        return [this.#result(toolCallId, "The call was refused.")]
      case "tool-input-error":
        return [
          ...this.#whole(toolCallId, wordOf(chunk, "toolName"), chunk["input"]),
          this.#result(toolCallId, wordOf(chunk, "errorText"))
        ]
      case "tool-output-error":
        return [this.#result(toolCallId, wordOf(chunk, "errorText"))]
      default:
        return []
    }
  }

  /**
   * A called agent is a subagent. Data of a plan, a task or a hand-over is an activity; files, sources and progress are
   * custom events.
   */
  #other(chunk: Chunk): ReadonlyArray<AgEvent> {
    const { type, ...value } = chunk
    if (type === "file" || type.startsWith("source-")) return [make("CUSTOM", { name: type, value })]
    // The form of a question is part of its interrupt.
    if (!type.startsWith("data-") || type === "data-form") return []
    const activityType = type.slice("data-".length)
    const id = wordOf(chunk, "id")
    const content = objectOf(chunk, "data")
    if (activityType === "agent" && wordOf(content, "runId") !== "") return this.#subagent(id, content)
    if (chunk["transient"] === true) {
      return [make("CUSTOM", { name: activityType, value: { toolCallId: id, data: chunk["data"] ?? null } })]
    }
    const messageId = this.#idOf(`${activityType}-${id}`)
    return [make("ACTIVITY_SNAPSHOT", { messageId, activityType, content })]
  }

  /** The data of a called agent has its name, its run and its status. */
  #subagent(parentToolCallId: string, data: JsonObject): ReadonlyArray<AgEvent> {
    const [subagentRunId, status] = [wordOf(data, "runId"), wordOf(data, "status")]
    if (status === "pending") return []
    const started = make("SUBAGENT_STARTED", { subagentRunId, name: wordOf(data, "agent"), parentToolCallId })
    const begun = this.#subagents.has(subagentRunId) ? [] : [started]
    this.#subagents.set(subagentRunId, started)
    if (status === "running") {
      this.#running.push({ callId: parentToolCallId, runId: subagentRunId })
      return begun
    }
    this.#subagents.delete(subagentRunId)
    return status === "failed"
      ? [...begun, make("SUBAGENT_ERROR", { subagentRunId, message: wordOf(data, "error") })]
      : [...begun, make("SUBAGENT_FINISHED", { subagentRunId, outcome: { type: "success" } })]
  }

  #begun(): ReadonlyArray<AgEvent> {
    const ended = this.#close()
    this.#turn++
    this.#reasoning = []
    this.#isInTurn = true
    this.#parent = undefined
    this.#transcript.begin(this.#subagentRunId)
    return [...ended, ...this.#step()]
  }

  #step(): ReadonlyArray<AgEvent> {
    this.#isInStep = true
    return [make("STEP_STARTED", { stepName: `turn ${this.#turn}` })]
  }

  #unstep(): ReadonlyArray<AgEvent> {
    if (!this.#isInStep) return []
    this.#isInStep = false
    return [make("STEP_FINISHED", { stepName: `turn ${this.#turn}` })]
  }

  #withdrawn(): ReadonlyArray<AgEvent> {
    const ended = this.#closeParts()
    this.#called.clear()
    this.#reasoning = []
    this.#parent = undefined
    return [...ended, this.#transcript.withdraw(this.#subagentRunId)]
  }

  #started(kind: "TEXT" | "REASONING", messageId: string): ReadonlyArray<AgEvent> {
    this.#part = { kind, id: messageId }
    if (kind === "REASONING") {
      this.#reasoning.push(messageId)
      return [make("REASONING_START", { messageId }), make("REASONING_MESSAGE_START", { messageId, role: "reasoning" })]
    }
    this.#parent = messageId
    return [make("TEXT_MESSAGE_START", { messageId, role: "assistant" })]
  }

  #delta(delta: string): ReadonlyArray<AgEvent> {
    const part = this.#part
    return part === undefined ? [] : [make(`${part.kind}_MESSAGE_CONTENT`, { messageId: part.id, delta })]
  }

  #ended(): ReadonlyArray<AgEvent> {
    const part = this.#part
    if (part === undefined) return []
    this.#part = undefined
    const messageId = part.id
    const end = make(`${part.kind}_MESSAGE_END`, { messageId })
    return part.kind === "REASONING" ? [end, make("REASONING_END", { messageId })] : [end]
  }

  #callStarted(toolCallId: string, toolCallName: string): ReadonlyArray<AgEvent> {
    this.#open.set(toolCallId, false)
    this.#parent ??= this.#idOf(`calls-${this.#turn}`)
    return [make("TOOL_CALL_START", { toolCallId, toolCallName, parentMessageId: this.#parent })]
  }

  /** Sends the input of a call unless it was streamed. An input that changes later is not sent again. */
  #whole(toolCallId: string, name: string, input: Json | undefined): ReadonlyArray<AgEvent> {
    // The call of a called agent is announced by its own run, and again by the question of the run above.
    if (this.#called.has(toolCallId) || (this.#subagentRunId === "" && this.#announced.has(toolCallId))) return []
    const started = this.#open.has(toolCallId) ? [] : this.#callStarted(toolCallId, name)
    const args = make("TOOL_CALL_ARGS", { toolCallId, delta: JSON.stringify(input ?? {}) })
    const isStreamed = this.#open.get(toolCallId) === true
    return [...started, ...(isStreamed ? [] : [args]), ...this.#callEnded(toolCallId)]
  }

  #callEnded(toolCallId: string): ReadonlyArray<AgEvent> {
    this.#open.delete(toolCallId)
    this.#called.add(toolCallId)
    if (this.#subagentRunId !== "") this.#announced.set(toolCallId, this.#subagentRunId)
    return [make("TOOL_CALL_END", { toolCallId })]
  }

  #result(toolCallId: string, content: string): AgEvent {
    return make("TOOL_CALL_RESULT", {
      messageId: this.#idOf(`result-${toolCallId}`),
      toolCallId,
      content,
      role: "tool"
    })
  }

  #closeParts(): ReadonlyArray<AgEvent> {
    return [...this.#ended(), ...[...this.#open.keys()].flatMap((id) => this.#callEnded(id))]
  }

  /** Returns the id of a message, which includes its run. */
  #idOf(part: string): string {
    return `${this.#of}:${part}`
  }
}

/**
 * Folds the events of a run into AG-UI events.
 *
 * Converts the chunks of the UI fold. A run of the protocol is one request of a page: it ends when the run of the
 * kernel pauses for a person, and the next request continues it. Pure except for its own state: the same events give
 * the same AG-UI events.
 */

import * as JsonPatch from "effect/JsonPatch"
import { type Json, type JsonObject, plain } from "../../kit/json.ts"
import type { ModelCompleted, RunEvent } from "../../RunEvent.ts"
import * as Usage from "../../Usage.ts"
import { type AgEvent, interruptOf, make, pauseOf, usageOf } from "./agEvent.ts"
import { AgLane } from "./agLane.ts"
import { outward } from "./shownEvents.ts"
import { Transcript } from "./agTranscript.ts"
import { questionsIn } from "./uiFold.ts"

/** Options of the fold. */
export interface Options {
  readonly threadId: string
  /** The id that the page gave to this run of the protocol. */
  readonly runId: string
  /** The run of the kernel. */
  readonly of: string
  /** The revision up to which the page has the run. */
  readonly after: number
  /** The messages of the page, or of the thread that it opens again. */
  readonly messages: ReadonlyArray<JsonObject>
  readonly isReopened: boolean
  /** The names of the tools that the page runs itself. */
  readonly tools: ReadonlySet<string>
  /** Returns the address of a stored medium of a run. */
  readonly urlOf: (runId: string, fileId: string) => string
}

/** One run of the protocol. */
export class AgFold {
  readonly #options: Options
  /** The lane of the run that answers the page. */
  readonly lane: AgLane
  /** The lanes of called agents that have not ended. */
  readonly #lanes = new Map<string, AgLane>()
  /** The calls that called agents have announced, and their runs. */
  readonly #announced = new Map<string, string>()
  readonly #transcript: Transcript
  readonly #usage = new Map<string, Usage.Usage>()
  #state: Json | undefined
  /** The last answer of the model as text. */
  #answer: string | undefined
  #isNew = false
  /** The time of the last event that the page has. */
  #before = -Infinity
  /** The agents that were called before the page has everything. */
  readonly #calledBefore = new Set<string>()
  /** The last event, if the run is at rest now, and whether it is paused. */
  #end: { readonly event: AgEvent; readonly isPaused: boolean } | undefined

  constructor(options: Options) {
    this.#options = options
    this.#transcript = new Transcript(options.messages)
    this.lane = this.#newLane(options.of, false, -Infinity)
  }

  #newLane(of: string, isSubagent: boolean, before: number): AgLane {
    const { urlOf } = this.#options
    return new AgLane({ of, isSubagent, before, announced: this.#announced, urlOf: (fileId) => urlOf(of, fileId) })
  }

  /** Returns true if the page does not have an event yet. */
  isNew(event: RunEvent): boolean {
    return this.#isNew || !("revision" in event) || event.revision > this.#options.after
  }

  /** The messages that the run made. */
  get messages(): ReadonlyArray<JsonObject> {
    return this.#transcript.made
  }

  /** Whether the page lacks the events that follow. */
  get isCurrent(): boolean {
    return this.#isNew
  }

  /** Returns the lane of a called agent. One that continues has events that the page has already. */
  laneOf(runId: string): AgLane {
    const known = this.#lanes.get(runId)
    if (known !== undefined) return known
    const lane = this.#newLane(runId, true, this.#calledBefore.has(runId) ? this.#before : -Infinity)
    this.#lanes.set(runId, lane)
    return lane
  }

  /** Returns the events for an event of a called agent. */
  pushCalled(lane: AgLane, event: RunEvent): ReadonlyArray<AgEvent> {
    return lane.pushNew(event, this.#transcript)
  }

  /** Ends the lane of a called agent that has ended. */
  close(lane: AgLane): ReadonlyArray<AgEvent> {
    this.#lanes.delete(lane.of)
    return lane.end(false)
  }

  /** Returns the events that begin the run, with the state of the page if it has one, and the messages it lacks. */
  open(state?: Json): ReadonlyArray<AgEvent> {
    const { isReopened, messages, runId, threadId } = this.#options
    const snapshot = isReopened ? [make("MESSAGES_SNAPSHOT", { messages })] : []
    return [make("RUN_STARTED", { threadId, runId, protocolVersion: "1.0" }), ...snapshot, ...this.state(state)]
  }

  /** Returns the event for a state: first a snapshot, then the changes. */
  state(state: Json | undefined): ReadonlyArray<AgEvent> {
    const before = this.#state
    this.#state = state
    if (state === undefined) return []
    if (before === undefined) return [make("STATE_SNAPSHOT", { snapshot: state })]
    const delta = JsonPatch.get(before, state)
    return delta.length === 0 ? [] : [make("STATE_DELTA", { delta: plain(delta) })]
  }

  /** Returns the events for an event of the run. */
  push(event: RunEvent): ReadonlyArray<AgEvent> {
    const begun = this.isNew(event) ? this.#begin() : []
    if (event.type === "model_completed") this.#replied(event)
    const made = this.lane.push(event)
    const end = this.#endOf(event)
    // The last event is sent when the stream ends: a run that paused may have continued.
    this.#end = end === undefined ? undefined : { event: end, isPaused: event.type === "paused" }
    if (this.#isNew) return [...begun, ...made]
    this.#before = event.at
    for (const { runId } of this.lane.started()) this.#calledBefore.add(runId)
    const isLast = "revision" in event && event.revision >= this.#options.after
    return isLast ? this.#begin() : []
  }

  /** Returns the final events of a stream: the status of the run. */
  finish(): ReadonlyArray<AgEvent> {
    const { event, isPaused } = this.#end ?? { event: broken, isPaused: false }
    if (!this.#isNew) return [event]
    const lanes = [this.lane, ...this.#lanes.values()].toReversed()
    return [...lanes.flatMap((lane) => lane.end(isPaused)), event]
  }

  /** Starts for a page that has everything so far. */
  #begin(): ReadonlyArray<AgEvent> {
    if (this.#isNew) return []
    this.#isNew = true
    this.#usage.clear()
    return this.lane.begin(this.#transcript)
  }

  #replied({ model, outcome, usage }: ModelCompleted): void {
    this.#answer = outcome.type === "final" || outcome.type === "prose" ? outcome.text : undefined
    if (usage !== null) this.#usage.set(model, Usage.add(this.#usage.get(model) ?? Usage.zero, usage))
  }

  #endOf(event: RunEvent): AgEvent | undefined {
    const { tools } = this.#options
    const usage = [...this.#usage].map(([model, usage]) => usageOf(model, usage))
    switch (event.type) {
      case "paused": {
        const asked = questionsIn(event.metadata).filter(({ answer }) => answer === undefined)
        // The page runs its own tools when the run of the protocol has ended, and begins the next one with their results.
        const open = asked.filter(({ asking, name }) => asking?.output === undefined || !tools.has(name))
        if (asked.length > 0 && open.length === 0) return this.#finished({ outcome: { type: "success" }, usage })
        const interrupts = open.map((question) =>
          interruptOf(event.runId, question, this.#announced.get(question.callId))
        )
        const outcome = {
          type: "interrupt",
          interrupts: interrupts.length === 0 ? [pauseOf(event.runId, event.reason)] : interrupts
        }
        return this.#finished({ outcome, usage })
      }
      case "run_completed":
        return this.#finished({ outcome: { type: "success" }, result: this.#answer, usage })
      case "run_cancelled":
        return this.#finished({ outcome: { type: "cancelled" }, usage })
      case "run_failed": {
        const { message, tag } = outward(event.error)
        return make("RUN_ERROR", { message, code: tag, usage })
      }
      default:
        return undefined
    }
  }

  #finished(fields: { readonly [key: string]: Json | undefined }): AgEvent {
    const { runId, threadId } = this.#options
    return make("RUN_FINISHED", { threadId, runId, ...fields })
  }
}

/** The last event of a stream that broke off. */
export const broken = make("RUN_ERROR", { message: "The stream broke off." })

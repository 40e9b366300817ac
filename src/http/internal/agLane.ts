/** The work of one run in AG-UI: that of the run which answers the page, or of an agent that it calls. */

import type { RunEvent } from "../../RunEvent.ts"
import type { AgEvent } from "./agEvent.ts"
import { AgParts, type Subagent } from "./agParts.ts"
import type { Transcript } from "./agTranscript.ts"
import { UiFold } from "./uiFold.ts"

/** Options of a lane. */
interface Options {
  readonly of: string
  /** Whether the run is one of a called agent, to which its events are attributed. */
  readonly isSubagent: boolean
  /** The calls that called agents have announced, and their runs. */
  readonly announced: Map<string, string>
  /** Returns the address of a stored medium of the run. */
  readonly urlOf: (fileId: string) => string
  /** The time up to which the page has the events of the run. */
  readonly before: number
}

/** Converts the events of one run. Its methods change it in place. */
export class AgLane {
  readonly of: string
  /** Whether the end of the run is waited for. */
  isEnding = false
  readonly #ui: UiFold
  readonly #parts: AgParts
  readonly #before: number
  #isNew = false
  #hasPaused = false
  #revision = 0

  constructor({ announced, before, isSubagent, of, urlOf }: Options) {
    this.of = of
    this.#before = before
    this.#ui = new UiFold({ urlOf })
    this.#parts = new AgParts(of, announced, isSubagent)
  }

  /** The last revision that was pushed. */
  get revision(): number {
    return this.#revision
  }

  /** Starts for a page that has everything so far. */
  begin(transcript: Transcript): ReadonlyArray<AgEvent> {
    this.#isNew = true
    return this.#parts.begin(transcript)
  }

  /** Returns the events for an event of the run. */
  push(event: RunEvent): ReadonlyArray<AgEvent> {
    if ("revision" in event) this.#revision = event.revision
    const made = this.#ui.push(event).flatMap((chunk) => this.#parts.push(chunk))
    return event.type === "model_completed" ? [...made, ...this.#parts.signed(event.message.content)] : made
  }

  /** Returns the events for an event of a called agent that the page does not have. */
  pushNew(event: RunEvent, transcript: Transcript): ReadonlyArray<AgEvent> {
    const isOld = event.at < this.#before || (event.at === this.#before && !this.#hasPaused)
    this.#hasPaused ||= event.type === "paused" && event.at === this.#before
    if (isOld && !this.#isNew) {
      this.push(event)
      return []
    }
    const begun = this.#isNew ? [] : this.begin(transcript)
    return [...begun, ...this.push(event)]
  }

  /** Returns the called agents that began to run since the last time. */
  started(): ReadonlyArray<Subagent> {
    return this.#parts.started()
  }

  /** Ends all open parts. Agents that run are suspended if the run is, and have failed otherwise. */
  end(isPaused: boolean): ReadonlyArray<AgEvent> {
    return this.#parts.end(isPaused)
  }
}

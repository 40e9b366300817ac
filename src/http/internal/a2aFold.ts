/**
 * Folds the events of a run into the stream of an A2A task: its status, its answer as one growing artifact, and an
 * artifact for each file. The text of each turn replaces that of the turn before, so the last one is the answer. Pure
 * except for its own state.
 */

import type * as Contents from "../../Content.ts"
import type { JsonObject } from "../../kit/json.ts"
import * as Messages from "../../Message.ts"
import type { RunEvent } from "../../RunEvent.ts"
import { artifactOf, failure, fileOf, statusOf, type TaskIds, waiting } from "./a2aTask.ts"
import { outward } from "./shownEvents.ts"
import { wordOf } from "./uiChunk.ts"
import { questionsIn, UiFold } from "./uiFold.ts"

/** The stream of one task. */
export class A2aFold {
  readonly #ids: TaskIds
  readonly #after: number
  readonly #ui: UiFold
  #files = 0
  #isNew = false
  #answer = ""
  readonly #sources: Array<Contents.Source> = []
  /** Whether the next piece replaces the text sent so far. */
  #replaces = true

  /** Starts for a client that has the task up to a revision. */
  constructor(ids: TaskIds, after: number, urlOf: (mediaId: string) => string) {
    this.#ui = new UiFold({ urlOf })
    this.#ids = ids
    this.#after = after
  }

  /** Returns the updates for an event of the run. */
  push(event: RunEvent): ReadonlyArray<JsonObject> {
    this.#isNew ||= !("revision" in event) || event.revision > this.#after
    const made: Array<JsonObject> = []
    for (const chunk of this.#ui.push(event)) {
      if (chunk.type === "start-step" || chunk.type === "reset-step") this.#replaces = true
      else if (chunk.type === "text-delta" && this.#isNew) made.push(this.#piece(wordOf(chunk, "delta")))
      else if (chunk.type === "file") made.push(this.#file(wordOf(chunk, "url"), wordOf(chunk, "mediaType")))
    }
    if (event.type === "model_completed") {
      const { outcome } = event
      this.#answer = outcome.type === "final" || outcome.type === "prose" ? outcome.text : ""
      this.#sources.push(...Messages.sources([event.message]))
    }
    made.push(...this.#standing(event))
    return this.#isNew ? made : []
  }

  #standing(event: RunEvent): ReadonlyArray<JsonObject> {
    const at = event.at
    switch (event.type) {
      case "run_started":
        return [this.#status(statusOf("WORKING", at))]
      case "paused": {
        const questions = questionsIn(event.metadata).filter(({ answer }) => answer === undefined)
        return [this.#status(waiting(this.#ids, at, questions, event.reason))]
      }
      case "run_completed":
        return [this.#artifact(this.#answer, false, true, this.#sources), this.#status(statusOf("COMPLETED", at))]
      case "run_cancelled":
        return [this.#status(statusOf("CANCELED", at))]
      case "run_failed":
        return [this.#status(failure(this.#ids, at, outward(event.error)))]
      default:
        return []
    }
  }

  #piece(text: string): JsonObject {
    const append = !this.#replaces
    this.#replaces = false
    return this.#artifact(text, append, false)
  }

  #artifact(
    text: string,
    append: boolean,
    lastChunk: boolean,
    sources: ReadonlyArray<Contents.Source> = []
  ): JsonObject {
    return { artifactUpdate: { ...this.#ids, artifact: artifactOf(text, sources), append, lastChunk } }
  }

  #file(url: string, mediaType: string): JsonObject {
    const artifact = fileOf(++this.#files, { url, mediaType })
    return { artifactUpdate: { ...this.#ids, artifact, append: false, lastChunk: true } }
  }

  #status(status: JsonObject): JsonObject {
    return { statusUpdate: { ...this.#ids, status } }
  }
}

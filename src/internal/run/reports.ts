/**
 * The latest reports of the calls in flight. They are not stored, so a follower that joins a run receives them first.
 */

import type { RunEvent } from "../../RunEvent.ts"

/** Returns the latest reports of a call. */
type Latest = () => ReadonlyArray<RunEvent>

/** The reports of a run by their calls. */
export class Reports {
  readonly #calls = new Map<string, Latest>()

  set(callId: string, latest: Latest): void {
    this.#calls.set(callId, latest)
  }

  delete(callId: string): void {
    this.#calls.delete(callId)
  }

  events(): ReadonlyArray<RunEvent> {
    return [...this.#calls.values()].flatMap((latest) => latest())
  }
}

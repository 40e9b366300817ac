/**
 * The types of a replay.
 */

import type { RunEvent } from "../../../RunEvent.ts"
import type { RunRecord, RunState } from "../../../RunState.ts"

/**
 * A recorded tree of runs: the id of its root, and its records when they are not in the store.
 *
 * @category models
 * @since 0.1.0
 */
export type Recording =
  | string
  | {
      readonly runId: string
      readonly records: ReadonlyArray<RunRecord>
      /** Recorded events. With `stream_part` events of whole replies (`parts: true`), replies stream as they did. */
      readonly events?: ReadonlyArray<RunEvent> | undefined
    }

/**
 * A finished replay: its events in order, and the state at the end of the recording.
 *
 * @category models
 * @since 0.1.0
 */
export interface Replayed {
  /** For a fork, the events after what it copied. */
  readonly events: ReadonlyArray<RunEvent>
  readonly state: RunState
  /** Runs in the tree. */
  readonly runs: number
  /** Processes that ran the tree. */
  readonly lives: number
}

/**
 * The claim under which the driver of stored runs resumes a run, given to the kernel with the fiber.
 */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { AgentCrashError, StopError, StoreError } from "../../KernelError.ts"
import type { RunHead } from "../../RunStore.ts"

/** How a run finds out that its process gives it up, or has lost it. */
export interface RunClaim {
  /** Whether the run is the only suspect of a crash that this process attempts. Stored with the resume. */
  readonly isAlone?: boolean | undefined
  /** The head of the run as its driver read it, or `leased` if this claim is a lease of the store. */
  readonly seen?: RunHead | "leased" | undefined
  /**
   * The ids of the calls that were in flight when the host was asked about them. A call that another process has launched
   * since was not decided about: the resume ends with `AgentCrashError` and stores nothing. Absent if nobody was asked.
   */
  readonly inFlight?: ReadonlySet<string> | undefined
  /**
   * Called before each turn, each model call and each call of the run and of its children. A returned error stops the
   * run at its last record.
   */
  readonly stop: () => StopError | undefined
  /**
   * Called with the stored head of the root run right before a `write` skill of the run or of its children is entered.
   * If it fails with `AgentCrashError`, the skill is not entered and the run stops there.
   */
  readonly prove?: ((root: RunHead) => Effect.Effect<void, AgentCrashError | StoreError>) | undefined
}

/** The claim of the run that this fiber resumes. Runs that its skills start have none. */
export const CurrentClaim = Context.Reference<RunClaim | undefined>("kernai/internal/run/CurrentClaim", {
  defaultValue: () => undefined
})

/**
 * The run that the current fiber works for.
 */

import * as Context from "effect/Context"
import type { ProgramError } from "../../KernelError.ts"
import type { RunState } from "../../RunModel.ts"
import type { MediaLookup, ProviderShape } from "../../Provider.ts"

/** A run as its provider and its skills may read it. The state is that of the active run, which advances it in place. */
export interface ReadableRun {
  readonly state: RunState
  readonly provider: ProviderShape<ProgramError>
  readonly media: MediaLookup
}

/** The run whose loop this fiber runs in. Undefined outside a run. */
export const CurrentRun = Context.Reference<ReadableRun | undefined>("kernai/internal/state/CurrentRun", {
  defaultValue: () => undefined
})

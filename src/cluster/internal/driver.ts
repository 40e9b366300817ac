/**
 * A runner, as far as it brings runs to rest.
 */

import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import type { Holder } from "../../internal/worker/lease.ts"
import type { Kernel } from "../../Kernel.ts"
import type { RunHead, RunStore } from "../../RunStore.ts"
import type * as RunWorker from "../../RunWorker.ts"
import type { Drive } from "../RunEntity.ts"
import type { Pulse } from "./pulse.ts"

export interface Driver<R> extends Holder {
  readonly kernel: Kernel["Service"]
  readonly services: Context.Context<RunStore | R>
  readonly agents: ReadonlyMap<string, RunWorker.Runnable<R>>
  readonly resume: RunWorker.Options<R>["resume"]
  readonly onRun: RunWorker.Options<R>["onRun"]
  readonly retries: (head: RunHead) => boolean
  readonly retry: Schedule.Schedule<unknown>
  /** How long a run may take to finish its step when the runner gives it up. */
  readonly drain: Duration.Duration
  /** How long an interrupted run may take to clean up. */
  readonly cleanUp: Duration.Duration
  readonly pulse: Pulse
  /** Sends a message that is delivered later. Repeats it until it is stored. */
  readonly later: (message: Drive) => Effect.Effect<void>
}

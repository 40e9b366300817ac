/** The part of a runner that brings runs to rest. */

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
  /** Time for a run to finish its step when the runner gives it up. */
  readonly drain: Duration.Duration
  /** Time for an interrupted run to clean up. */
  readonly cleanUp: Duration.Duration
  readonly pulse: Pulse
  /** Sends a message for later delivery. Retries until it is stored. */
  readonly later: (message: Drive) => Effect.Effect<void>
}

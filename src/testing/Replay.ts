/**
 * Replays recorded runs.
 *
 * A replay runs the agent as it is now, without asking a model and without running a skill: both return what was
 * recorded. Hooks, policies, instructions and prompts run anew, so a replay finds the first event in which today's
 * agent differs from the recorded one.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Agent } from "../Agent.ts"
import { recordsOf } from "../store-kit/StoredRuns.ts"
import { Kernel } from "../Kernel.ts"
import type { AgentConfigInvalid, ReplayDiverged, RunNotFound, StoreError } from "../KernelError.ts"
import type { RunEvent } from "../RunEvent.ts"
import type { RunRecord } from "../RunState.ts"
import * as RunStore from "../RunStore.ts"
import * as Simulation from "../Simulation.ts"
import type { AnySkill } from "../Skill.ts"
import * as Replays from "./internal/replay/replayRun.ts"

export type { Replayed } from "./internal/replay/replayRun.ts"

/**
 * Fails when a recording cannot be replayed, or differs.
 *
 * - `ReplayDiverged`: the current agent differs from the recorded one.
 * - `RunNotFound`: no run has this id, or the recording does not hold its first record.
 * - `AgentConfigInvalid`: the agent has an invalid value.
 * - `StoreError`: the store failed, or the records cannot be replayed.
 *
 * @category errors
 * @since 0.1.0
 */
export type ReplayError = ReplayDiverged | RunNotFound | AgentConfigInvalid | StoreError

/**
 * A recorded tree of runs: the id of its root, and its records if they are not in the store.
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
 * Replays a recorded run with the agent as it is now. Fails with `ReplayDiverged` at the first phase event that differs
 * from the recording, times and prices aside.
 *
 * Memories and summaries come from the recording. To replay a run of a chat with a memory, provide
 * `PromptPipeline.layer({ sections: [Memory.section()] })`, which the chat used. A call returns its recorded result
 * even if today's schema or allow list would refuse it.
 *
 * @category running
 * @since 0.1.0
 */
export const run = <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R, unknown>,
  recording: Recording
): Effect.Effect<Replays.Replayed, ReplayError, Kernel | R> =>
  Effect.gen(function* () {
    const { parts } = yield* Kernel
    if (parts === undefined) return yield* Effect.die(new Error("this kernel cannot replay"))
    const { events = [], runId } = typeof recording === "string" ? { runId: recording } : recording
    const records =
      typeof recording === "string"
        ? yield* recordsOf(Context.get(parts, RunStore.RunStore), recording)
        : recording.records
    const provider = { name: Replays.providerOf(records), stream: () => Stream.never }
    return yield* Simulation.withAgent(agent, { runId, provider }, (process) =>
      Replays.replay(process, runId, records, events)
    )
  })

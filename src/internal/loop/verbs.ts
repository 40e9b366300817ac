/**
 * The verbs of a kernel, on what it was built with.
 *
 * A run, a resume and a replay are the same: a ground is made of the agent, the
 * parts of the kernel and the running fiber, and something begins on it. Who
 * listens makes a stream of it.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Agent } from "../../Agent.ts"
import type { KernelShape } from "../../Kernel.ts"
import type { KernelError } from "../../KernelError.ts"
import * as MediaStore from "../../MediaStore.ts"
import type { RunResult } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import * as Begin from "./start.ts"
import * as Forks from "./fork.ts"
import { type Built, onGround } from "./environment.ts"
import { events, listOf, silent, type Sink, steeringOf } from "./listeners.ts"
import { remember } from "./kernelParts.ts"
import { inline, roomBefore, shelved } from "../store/medium.ts"
import type { Input, ResumeOptions, RunOptions } from "./runOptions.ts"
import * as Replays from "../replay/replayRun.ts"
import { resume } from "./resume.ts"
import type { Ground } from "./run.ts"
import { storedAt } from "../store/stored.ts"

type Result<Output, R> = Effect.Effect<RunResult<Output>, KernelError, R>

/** Makes a kernel. */
export const make = (built: Built): KernelShape => {
  /** Gives a new run its id and its media, and begins it. */
  const newRun = <Output, S extends AnySkill<unknown>, R, A>(
    agent: Agent<Output, S, R>,
    input: Input,
    options: RunOptions,
    sink: Sink,
    start: (ground: Ground, birth: Begin.Birth) => Effect.Effect<A, KernelError>
  ): Effect.Effect<A, KernelError, R> =>
    onGround(built, agent, options, sink, undefined, (ground, newId) => {
      const runId = options.runId ?? newId()
      const { context = {}, history: before = [] } = options
      const root = { runId, rootRunId: runId, parentRunId: undefined, depth: 0, taskId: undefined }
      return Effect.scoped(
        Effect.flatMap(ground.media.run(runId), (media) =>
          Effect.flatMap(media.admit(listOf(input)), (input) =>
            Effect.flatMap(shelved(before, media, roomBefore(ground.limits), inline), (history) =>
              equipped(ground, media, options, (ground) => start(ground, { ...root, history, input, context }))
            )
          )
        )
      )
    })

  const runWith = <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    input: Input,
    options: RunOptions,
    sink: Sink
  ): Result<Output, R> =>
    // Decoded by the agent's own schema: its type is the agent's Output.
    newRun(agent, input, options, sink, Begin.begin) as Result<Output, R>

  const resumeWith = <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    runId: string,
    options: ResumeOptions,
    sink: Sink
  ): Result<Output, R> =>
    // Decoded by the agent's own schema, as that of a new run is.
    Effect.flatMap(storedAt(Context.get(built, RunStore.RunStore), runId, options.revision), (state) =>
      onGround(built, agent, options, sink, state, (ground) =>
        Effect.scoped(
          Effect.flatMap(Forks.originsOf(ground.store, state), (origins) =>
            Effect.flatMap(ground.media.run(state.rootRunId, origins), (media) =>
              equipped(ground, media, options, (ground) => resume(ground, state, options))
            )
          )
        )
      )
    ) as Result<Output, R>

  const replay: KernelShape["replay"] = (agent, recording) => {
    const store = Context.get(built, RunStore.RunStore)
    const { events = [], runId } = typeof recording === "string" ? { runId: recording } : recording
    const read = typeof recording === "string" ? Replays.recordsOf(store, recording) : Effect.succeed(recording.records)
    return Effect.flatMap(read, (records) => {
      const provider = { name: Replays.providerOf(records), stream: () => Stream.never }
      return onGround(built, agent, { provider }, silent, undefined, (ground) =>
        Effect.scoped(
          Effect.flatMap(ground.media.run(runId), (media) =>
            Replays.replay({ ...ground, media }, runId, records, events)
          )
        )
      )
    })
  }

  return remember<KernelShape>(
    {
      replay,
      run: (agent, input, options = {}) => runWith(agent, input, options, silent),
      submit: (agent, input, options = {}) => newRun(agent, input, options, silent, Begin.submit),
      stream: (agent, input, options = {}) => events(agent, (sink) => runWith(agent, input, options, sink)),
      resume: (agent, runId, options = {}) => resumeWith(agent, runId, options, silent),
      resumeStream: (agent, runId, options = {}) => events(agent, (sink) => resumeWith(agent, runId, options, sink))
    },
    built
  )
}

/** Runs on a ground with the media of the run, its skills too, and what the host says to it meanwhile. */
const equipped = <A, E, R>(
  ground: Ground,
  media: MediaStore.MediaStoreShape,
  { steering }: Pick<RunOptions, "steering">,
  run: (ground: Ground) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<R, MediaStore.MediaStore>> =>
  Effect.provideService(run({ ...ground, media, steering: steeringOf(steering, media) }), MediaStore.MediaStore, media)

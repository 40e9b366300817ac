/**
 * The verbs of a kernel.
 *
 * A new run and a resumed one are the same: an environment is prepared from the agent, the layer of the kernel and the
 * running fiber, and the loop starts in it. With a listener, a run is a stream.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Agent } from "../../Agent.ts"
import type { KernelShape } from "../../Kernel.ts"
import type { KernelError } from "../../KernelError.ts"
import * as MediaStore from "../../MediaStore.ts"
import type { Input, ResumeOptions, RunOptions } from "../../RunOptions.ts"
import type { RunResult } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import { inline, roomBefore, shelved } from "../store/medium.ts"
import { storedAt } from "../store/stored.ts"
import { type Built, withEnvironment } from "./environment.ts"
import { originsOf } from "./fork.ts"
import { remember } from "./kernelParts.ts"
import { events, listOf, silent, type Sink } from "./listeners.ts"
import { resume } from "./resume.ts"
import type { Environment } from "./run.ts"
import { type Beginning, start, submit } from "./start.ts"
import { steeringOf } from "./steering.ts"

type Result<Output, R> = Effect.Effect<RunResult<Output>, KernelError, R>

/** Makes a kernel. */
export const make = (built: Built): KernelShape => {
  const begin = <Output, S extends AnySkill<unknown>, R, A>(
    agent: Agent<Output, S, R>,
    input: Input,
    options: RunOptions,
    sink: Sink,
    from: (environment: Environment, beginning: Beginning) => Effect.Effect<A, KernelError>
  ): Effect.Effect<A, KernelError, R> =>
    withEnvironment(built, agent, options, sink, undefined, (environment, newId) => {
      const runId = options.runId ?? newId()
      const { context = {}, history: before = [] } = options
      const root = { runId, rootRunId: runId, parentRunId: undefined, depth: 0, taskId: undefined }
      return Effect.scoped(
        Effect.flatMap(environment.media.run(runId), (media) =>
          Effect.flatMap(media.admit(listOf(input)), (input) =>
            Effect.flatMap(shelved(before, media, roomBefore(environment.limits), inline), (history) =>
              withMedia(environment, media, options, (environment) =>
                from(environment, { ...root, history, input, context })
              )
            )
          )
        )
      )
    })

  const run = <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    input: Input,
    options: RunOptions,
    sink: Sink
  ): Result<Output, R> =>
    // The agent's own schema decoded the output, so it has the type of the agent.
    begin(agent, input, options, sink, start) as Result<Output, R>

  const resumeWith = <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    runId: string,
    options: ResumeOptions,
    sink: Sink
  ): Result<Output, R> =>
    Effect.flatMap(storedAt(Context.get(built, RunStore.RunStore), runId, options.revision), (state) =>
      withEnvironment(built, agent, options, sink, state, (environment) =>
        Effect.scoped(
          Effect.flatMap(originsOf(environment.store, state), (origins) =>
            Effect.flatMap(environment.media.run(state.rootRunId, origins), (media) =>
              withMedia(environment, media, options, (environment) => resume(environment, state, options))
            )
          )
        )
      )
    ) as Result<Output, R>

  return remember<KernelShape>(
    {
      run: (agent, input, options = {}) => run(agent, input, options, silent),
      submit: (agent, input, options = {}) => begin(agent, input, options, silent, submit),
      stream: (agent, input, options = {}) => events(agent, (sink) => run(agent, input, options, sink)),
      resume: (agent, runId, options = {}) => resumeWith(agent, runId, options, silent),
      resumeStream: (agent, runId, options = {}) => events(agent, (sink) => resumeWith(agent, runId, options, sink))
    },
    built
  )
}

/** Gives a run and its skills the media store of the run, and the messages that its host sends. */
const withMedia = <A, E, R>(
  environment: Environment,
  media: MediaStore.MediaStoreShape,
  { steering }: Pick<RunOptions, "steering">,
  run: (environment: Environment) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, Exclude<R, MediaStore.MediaStore>> =>
  Effect.provideService(
    run({ ...environment, media, steering: steeringOf(steering, media) }),
    MediaStore.MediaStore,
    media
  )

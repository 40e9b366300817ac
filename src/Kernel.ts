/**
 * The loop that lets a model act: one loop, and everything else is a setting of it.
 *
 * `stream` tells a run as it happens, `run` is the same run folded to its
 * result, `resume` takes a stored one up where it stands. Interrupting the fiber
 * that consumes a run interrupts its model call, its skills and its children;
 * what was committed stays.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import type { Agent } from "./Agent.ts"
import * as Forks from "./internal/loop/fork.ts"
import { type Built, newRunId, type Parts, withEnvironment } from "./internal/loop/environment.ts"
import * as Offers from "./internal/loop/queue.ts"
import { remember } from "./internal/loop/kernelParts.ts"
import { events, listOf, silent, type Sink } from "./internal/loop/listeners.ts"
import * as Resumes from "./internal/loop/resume.ts"
import type { Environment } from "./internal/loop/run.ts"
import * as Starts from "./internal/loop/start.ts"
import { steeringOf } from "./internal/loop/steering.ts"
import { inline, roomBefore, shelved } from "./internal/store/medium.ts"
import { originsOf } from "./internal/store/family.ts"
import { storedAt } from "./internal/store/stored.ts"
import * as Streams from "./internal/base/streams.ts"
import type {
  AgentConfigInvalid,
  AnswerError,
  ForkError,
  LimitExceeded,
  MediaConflict,
  ModelError,
  QuestionsError,
  ResumeError,
  ResumeStreamError,
  RunError,
  StoreError,
  StreamError,
  SubmitError
} from "./KernelError.ts"
import * as MediaStore from "./MediaStore.ts"
import type { ModelRegistry } from "./ModelRegistry.ts"
import * as ProtocolRegistry from "./ProtocolRegistry.ts"
import type { Provider } from "./Provider.ts"
import type { RunEvent } from "./RunEvent.ts"
import type { AnswerOptions, ForkOptions, Input, ResumeOptions, RunOptions, SubmitOptions } from "./RunOptions.ts"
import type { Answer, OpenQuestion, RunResult } from "./RunState.ts"
import * as RunStore from "./RunStore.ts"
import type { AnySkill } from "./Skill.ts"
import type { SkillRegistry } from "./SkillRegistry.ts"

// ---------------------------------------------------------------- models

export type * from "./RunOptions.ts"

export type {
  AnswerError,
  ForkError,
  QuestionsError,
  ResumeError,
  ResumeStreamError,
  RunError,
  StreamError,
  SubmitError
} from "./KernelError.ts"

/**
 * The services that a run needs beside its kernel, which has the media store of its skills.
 *
 * @category models
 * @since 0.2.0
 */
export type Needs<R> = Exclude<R, MediaStore.MediaStore>

/**
 * The verbs of the kernel.
 *
 * @category models
 * @since 0.1.0
 */
export interface KernelShape {
  /** A new run, told as it happens. */
  readonly stream: <Output, S extends AnySkill<unknown>, R = never>(
    agent: Agent<Output, S, R>,
    input: Input,
    options?: RunOptions
  ) => Stream.Stream<RunEvent<Output, S>, StreamError, Needs<R>>
  /** A new run, to its result. */
  readonly run: <Output, S extends AnySkill<unknown>, R = never>(
    agent: Agent<Output, S, R>,
    input: Input,
    options?: RunOptions
  ) => Effect.Effect<RunResult<Output>, RunError, Needs<R>>
  /** Stores a run without running it, and gives its id. Its model must be found here too. */
  readonly submit: <Output, S extends AnySkill<unknown>, R = never>(
    agent: Agent<Output, S, R>,
    input: Input,
    options?: SubmitOptions
  ) => Effect.Effect<string, SubmitError, Needs<R>>
  /** A stored run from where it stands, told as it happens. */
  readonly resumeStream: <Output, S extends AnySkill<unknown>, R = never>(
    agent: Agent<Output, S, R>,
    runId: string,
    options?: ResumeOptions
  ) => Stream.Stream<RunEvent<Output, S>, ResumeStreamError, Needs<R>>
  /** A stored run from where it stands, to its result. */
  readonly resume: <Output, S extends AnySkill<unknown>, R = never>(
    agent: Agent<Output, S, R>,
    runId: string,
    options?: ResumeOptions
  ) => Effect.Effect<RunResult<Output>, ResumeError, Needs<R>>
}

/**
 * Runs agents.
 *
 * @category services
 * @since 0.1.0
 */
export class Kernel extends Context.Service<Kernel, KernelShape>()("kernai/Kernel") {}

// ---------------------------------------------------------------- running

/**
 * Tells a run as it happens. The last event of a run with an answer is
 * `run_completed` and carries its result; one that waits, for a person or for its
 * host, ends with `paused`.
 *
 * @category running
 * @since 0.1.0
 */
export const stream = <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R>,
  input: Input,
  options?: RunOptions
): Stream.Stream<RunEvent<Output, S>, StreamError, Kernel | Needs<R>> =>
  Streams.begin(() => Kernel.use((kernel) => Effect.succeed(kernel.stream(agent, input, options))))

/**
 * Runs an agent to its result.
 *
 * @example
 * const result = yield* Kernel.run(agent, "What is a fiber?")
 *
 * @category running
 * @since 0.1.0
 */
export const run = <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R>,
  input: Input,
  options?: RunOptions
): Effect.Effect<RunResult<Output>, RunError, Kernel | Needs<R>> =>
  Kernel.use((kernel) => kernel.run(agent, input, options))

/**
 * Stores a run without running it, and gives its id: a worker takes it up (see `RunWorker`).
 *
 * Its model must be found here too: a provider or a ModelRegistry is needed.
 *
 * @category running
 * @since 0.1.0
 */
export const submit = <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R>,
  input: Input,
  options?: SubmitOptions
): Effect.Effect<string, SubmitError, Kernel | Needs<R>> => Kernel.use((kernel) => kernel.submit(agent, input, options))

/**
 * Returns the calls of a run, and of the tasks and agents below it, that wait for a person, with what is needed to
 * decide: which skill, with which input, why it is asked about, and the path of agents that leads to it. Empty when
 * nothing waits. `answer` and `resume` take the answers.
 *
 * @example
 * const open = yield* Kernel.questions(runId)
 * yield* Kernel.answer(runId, open.map(({ callId }) => ({ callId, approved: true, by: "Ada" })))
 *
 * @category running
 * @since 0.1.0
 */
export const questions = (
  runId: string
): Effect.Effect<ReadonlyArray<OpenQuestion>, QuestionsError, RunStore.RunStore> =>
  RunStore.RunStore.use((store) => Offers.questions(store, runId))

/**
 * Records what a person decided about the waiting calls of a run or of its tasks (DR-22).
 *
 * Nothing runs here: whoever runs the agent takes the run up, a `RunWorker` at
 * once. Without answers a paused run is only offered again. A run that still
 * runs in a process of its own, without a lease, is not disturbed: its tasks
 * have their answers when it pauses, and `resume` goes on with them.
 *
 * Recorded answers are a new revision of the run: whoever names the `revision`
 * that was shown gives all of its answers in one call.
 *
 * @category running
 * @since 0.1.0
 */
export const answer = (
  runId: string,
  answers: ReadonlyArray<Answer>,
  options: AnswerOptions = {}
): Effect.Effect<void, AnswerError, RunStore.RunStore> =>
  RunStore.RunStore.use((store) => Offers.answer(store, runId, answers, options))

/**
 * Takes a stored run up where it stands, and tells what happens from there.
 *
 * @category running
 * @since 0.1.0
 */
export const resumeStream = <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R>,
  runId: string,
  options?: ResumeOptions
): Stream.Stream<RunEvent<Output, S>, ResumeStreamError, Kernel | Needs<R>> =>
  Streams.begin(() => Kernel.use((kernel) => Effect.succeed(kernel.resumeStream(agent, runId, options))))

/**
 * Takes a stored run up where it stands: answers its questions, decides about
 * calls in flight, or just goes on after a crash.
 *
 * A stored answer that does not fit the agent's output schema is refused with `OutputInvalid`.
 *
 * @category running
 * @since 0.1.0
 */
export const resume = <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R>,
  runId: string,
  options?: ResumeOptions
): Effect.Effect<RunResult<Output>, ResumeError, Kernel | Needs<R>> =>
  Kernel.use((kernel) => kernel.resume(agent, runId, options))

/**
 * Makes a new run from a commit of another, and gives its id. The other one
 * stays as it is; `resume` takes the fork up from there.
 *
 * Up to that commit the fork is a copy: `RunState.isCopied` tells which of its
 * commits are copied; the others were run anew. What was copied keeps its
 * times; the fork itself is as old as its making, however old the other one is.
 *
 * @category running
 * @since 0.1.0
 */
export const fork: (runId: string, options?: ForkOptions) => Effect.Effect<string, ForkError, RunStore.RunStore> =
  Effect.fnUntraced(function* (
    runId: string,
    options: ForkOptions = {}
  ): Effect.fn.Return<string, ForkError, RunStore.RunStore> {
    const store = yield* RunStore.RunStore
    const random = yield* Random.Random
    const id = options.runId ?? newRunId(random)
    yield* Forks.fork(store, runId, { revision: options.revision ?? Infinity, runId: id, edit: options.edit })
    return id
  })

// ---------------------------------------------------------------- layers

/**
 * The kernel on the stores and registries in context, with the provider of its models.
 *
 * The provider is used by runs that name none. `layerModels` is for agents whose model names its provider, and
 * `layerNoProvider` for runs that are given their provider one by one.
 *
 * References (Policy, Hooks, Middleware, PromptPipeline, Recorder, …) are taken from here and from the running fiber:
 * the fiber's win, policies combine. What only a skill asks for, such as its credentials, is not: that comes from where
 * the skill is registered, or from the running fiber.
 *
 * Like every layer it is built once where it is provided twice: a second kernel
 * on other registries is `Layer.fresh(Kernel.layer)`. A skill that asks another
 * agent by `Kernel.run` needs a kernel, which needs its registry: register it on
 * top of both, with `SkillRegistry.register`. Such a run is a root of its own,
 * with its own budget and events; the tasks of a workflow are not.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Kernel, never, Parts | Provider> = Layer.effect(
  Kernel,
  Effect.map(Effect.context<Parts | Provider>(), (built) => make(built))
)

/**
 * The kernel for agents whose model is a `<provider>/<model>` string: the `ModelRegistry` finds the provider. It is
 * `layer` in all else. Provide a `Provider`, too, for agents that name only a model.
 *
 * @example
 * const KernelLive = Kernel.layerModels.pipe(Layer.provide([HttpModelRegistry.layer, Stores]))
 *
 * @category layers
 * @since 0.2.0
 */
export const layerModels: Layer.Layer<Kernel, never, Parts | ModelRegistry> = Layer.effect(
  Kernel,
  Effect.map(Effect.context<Parts | ModelRegistry>(), (built) => make(built))
)

/**
 * The kernel without a provider: each run is given its own (`Kernel.run(agent, input, { provider })`), or one is
 * provided to its fiber. Without either a run fails with `ProviderError`, whose reason is `not_configured`. It is `layer`
 * in all else.
 *
 * @category layers
 * @since 0.2.0
 */
export const layerNoProvider: Layer.Layer<Kernel, never, Parts> = Layer.effect(
  Kernel,
  Effect.map(Effect.context<Parts>(), (built) => make(built))
)

/**
 * The kernel with everything in memory: needs only skills and a provider.
 *
 * Its store is its own, and keeps the last 100 runs that ended. Where others ask it too, for `questions`, `answer`, `fork` or a `RunWorker`, put `layer` on
 * `RunStore.layerMemory` with `Layer.provideMerge`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<Kernel, never, SkillRegistry | Provider> = Layer.effect(
  Kernel,
  Effect.map(Effect.context<Parts | Provider>(), (built) => make(built))
).pipe(
  Layer.provide([
    ProtocolRegistry.layer(),
    MediaStore.layerMemory,
    RunStore.layerMemoryWith({ endedRuns: 100, endedBytes: 16 * 1024 * 1024 })
  ]),
  Layer.orDie
)

// ---------------------------------------------------------------- making

/** Preparing a run: its agent, its model, the media of its input. */
type BeginError = AgentConfigInvalid | ModelError | MediaConflict | LimitExceeded | StoreError

/** A new run and a resumed one are the same: an environment is prepared, and the loop starts in it. */
const make = (built: Built): KernelShape => {
  const provided = Effect.provideService(MediaStore.MediaStore, Context.get(built, MediaStore.MediaStore))

  const begin = <Output, S extends AnySkill<unknown>, R, A, E>(
    agent: Agent<Output, S, R>,
    input: Input,
    options: RunOptions,
    sink: Sink,
    from: (environment: Environment, beginning: Starts.Beginning) => Effect.Effect<A, E>
  ): Effect.Effect<A, E | BeginError, R> =>
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
  ): Effect.Effect<RunResult<Output>, RunError, R> => ofAgent(agent, begin(agent, input, options, sink, Starts.start))

  const resumeWith = <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    runId: string,
    options: ResumeOptions,
    sink: Sink
  ): Effect.Effect<RunResult<Output>, ResumeError, R> =>
    ofAgent(
      agent,
      Effect.flatMap(storedAt(Context.get(built, RunStore.RunStore), runId, options.revision), (state) =>
        withEnvironment(built, agent, options, sink, state, (environment) =>
          Effect.scoped(
            Effect.flatMap(originsOf(environment.store, state), (origins) =>
              Effect.flatMap(environment.media.run(state.rootRunId, origins), (media) =>
                withMedia(environment, media, options, (environment) => Resumes.resume(environment, state, options))
              )
            )
          )
        )
      )
    )

  return remember<KernelShape>(
    {
      run: (agent, input, options = {}) => provided(run(agent, input, options, silent)),
      submit: (agent, input, options = {}) => provided(begin(agent, input, options, silent, Starts.submit)),
      stream: (agent, input, options = {}) => events(agent, (sink) => provided(run(agent, input, options, sink))),
      resume: (agent, runId, options = {}) => provided(resumeWith(agent, runId, options, silent)),
      resumeStream: (agent, runId, options = {}) =>
        events(agent, (sink) => provided(resumeWith(agent, runId, options, sink)))
    },
    built
  )
}

/** The agent's own schema decoded the output, so the result has the type of the agent. */
const ofAgent = <Output, S extends AnySkill<unknown>, R, E>(
  _agent: Agent<Output, S, R>,
  result: Effect.Effect<RunResult<unknown>, E, R>
): Effect.Effect<RunResult<Output>, E, R> => result as Effect.Effect<RunResult<Output>, E, R>

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

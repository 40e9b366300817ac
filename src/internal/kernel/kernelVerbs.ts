/**
 * The operations of a kernel, made from the registries and stores it is built with.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import * as Agents from "../../Agent.ts"
import type { Agent, InputOf } from "../../Agent.ts"
import type {
  AgentConfigInvalid,
  LimitExceeded,
  MediaConflict,
  ModelError,
  ResumeError,
  ResumeStreamError,
  RunError,
  StoreError,
  StreamError,
  SubmitError
} from "../../KernelError.ts"
import * as MediaStore from "../../MediaStore.ts"
import type { ProtocolRegistry } from "../../ProtocolRegistry.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Input, OptionsFor, ResumeOptions, RunOptions, SubmitOptions } from "../../RunOptions.ts"
import type { RunResult, RunState } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import { admitMedia, inline, roomBefore } from "../../store-kit/internal/admitMedia.ts"
import { originsOf, storedFor } from "../../store-kit/StoredRuns.ts"
import { checkNames } from "../agent/ownSkills.ts"
import * as Team from "../agent/team.ts"
import { steeringOf } from "../loop/steering.ts"
import { type Sink, events, silent } from "../run/listeners.ts"
import type { Environment } from "../run/run.ts"
import { withEnvironment } from "./environment.ts"
import * as Resumes from "./resume.ts"
import { contentsOf } from "./runInput.ts"
import * as Starts from "./start.ts"
import * as WaitingRuns from "./waitingRuns.ts"

/**
 * The services that a run needs besides its kernel. The kernel itself provides `MediaStore` to skills.
 *
 * @category models
 * @since 0.1.0
 */
export type Needs<R> = Exclude<R, MediaStore.MediaStore>

/**
 * The registries and stores that a kernel is built with.
 *
 * @category models
 * @since 0.1.0
 */
export type Parts = SkillRegistry | ProtocolRegistry | MediaStore.MediaStore | RunStore.RunStore

/**
 * The operations of the kernel.
 *
 * @category models
 * @since 0.1.0
 */
export interface KernelShape {
  /** Starts a run and emits its events. */
  readonly stream: <Output, S extends AnySkill<unknown>, R = never, C = never, I = unknown>(
    agent: Agent<Output, S, R, C, I>,
    input: Input | InputOf<NoInfer<I>>,
    ...options: OptionsFor<RunOptions, NoInfer<C>>
  ) => Stream.Stream<RunEvent<Output, S>, StreamError, Needs<R>>
  /** Starts a run and returns its result. */
  readonly run: <Output, S extends AnySkill<unknown>, R = never, C = never, I = unknown>(
    agent: Agent<Output, S, R, C, I>,
    input: Input | InputOf<NoInfer<I>>,
    ...options: OptionsFor<RunOptions, NoInfer<C>>
  ) => Effect.Effect<RunResult<Output>, RunError, Needs<R>>
  /** Stores a new run without running it, and returns its id. Fails if its model cannot be resolved. */
  readonly submit: <Output, S extends AnySkill<unknown>, R = never, C = never, I = unknown>(
    agent: Agent<Output, S, R, C, I>,
    input: Input | InputOf<NoInfer<I>>,
    ...options: OptionsFor<SubmitOptions, NoInfer<C>>
  ) => Effect.Effect<string, SubmitError, Needs<R>>
  /** Continues a stored run and emits its events. */
  readonly resumeStream: <Output, S extends AnySkill<unknown>, R = never>(
    agent: Agent<Output, S, R, unknown>,
    runId: string,
    options?: ResumeOptions
  ) => Stream.Stream<RunEvent<Output, S>, ResumeStreamError, Needs<R>>
  /** Continues a stored run and returns its result. */
  readonly resume: <Output, S extends AnySkill<unknown>, R = never>(
    agent: Agent<Output, S, R, unknown>,
    runId: string,
    options?: ResumeOptions
  ) => Effect.Effect<RunResult<Output>, ResumeError, Needs<R>>
  /** The context that the kernel was built with. A kernel that wraps another one passes it on. */
  readonly parts?: Context.Context<Parts> | undefined
}

/** Errors of preparing a run: its agent, its model, the media of its input. */
type BeginError = AgentConfigInvalid | ModelError | MediaConflict | LimitExceeded | StoreError

/** Options of a new run, whose context has not been encoded. */
type Starting = Omit<RunOptions, "context"> & { readonly context?: unknown }

/** New and resumed runs share one path: an environment is prepared, and the loop starts in it. */
export const make = (built: Context.Context<Parts>): KernelShape => {
  const provided = Effect.provideService(MediaStore.MediaStore, Context.get(built, MediaStore.MediaStore))
  const admit = WaitingRuns.make(Context.get(built, RunStore.RunStore))

  const hasSkills = (agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>) =>
    checkNames(Context.get(built, SkillRegistry), agent.name, Agents.team(agent).values())

  const run = <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R, unknown>,
    input: unknown,
    options: Starting,
    sink: Sink
  ): Effect.Effect<RunResult<Output>, RunError, R> => {
    const start = (environment: Environment, beginning: Starts.Beginning) =>
      Effect.andThen(hasSkills(agent), Starts.start(environment, beginning))
    return ofAgent(agent, begin(built, agent, input, options, sink, start))
  }

  const resumeWith = <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R, unknown>,
    runId: string,
    options: ResumeOptions,
    sink: Sink
  ): Effect.Effect<RunResult<Output>, ResumeError, R> =>
    ofAgent(
      agent,
      Effect.flatMap(storedFor(Context.get(built, RunStore.RunStore), runId, agent, options), (state) =>
        Effect.scoped(
          withEnvironment(built, agent, options, sink, state, (environment) =>
            Effect.andThen(
              Effect.addFinalizer(() => releaseEnded(environment, state)),
              Effect.flatMap(reopen(environment, state, agent, options), (media) =>
                withMedia(environment, media, options, (environment) => Resumes.resume(environment, state, options))
              )
            )
          )
        )
      )
    )

  return {
    run: (agent, input, ...[options = {}]) => provided(run(agent, input, options, silent)),
    submit: (agent, input, ...[options = {}]) => {
      const submitted = provided(begin(built, agent, input, options, silent, submitKept))
      return options.caller === undefined ? submitted : Effect.andThen(admit(options.caller), submitted)
    },
    stream: (agent, input, ...[options = {}]) => events(agent, (sink) => provided(run(agent, input, options, sink))),
    resume: (agent, runId, options = {}) => provided(resumeWith(agent, runId, options, silent)),
    resumeStream: (agent, runId, options = {}) =>
      events(agent, (sink) => provided(resumeWith(agent, runId, options, sink))),
    parts: built
  }
}

/** Prepares a run in an environment of its own, and does in it what is asked for. */
const begin = <Output, S extends AnySkill<unknown>, R, A, E>(
  built: Context.Context<Parts>,
  agent: Agent<Output, S, R, unknown>,
  input: unknown,
  options: Starting,
  sink: Sink,
  from: (environment: Environment, beginning: Starts.Beginning) => Effect.Effect<A, E>
): Effect.Effect<A, E | BeginError, R> =>
  Effect.scoped(
    withEnvironment(built, agent, options, sink, undefined, (environment, newId) =>
      Effect.flatMap(prepare(environment, options.runId ?? newId(), agent, input, options), ({ beginning, media }) =>
        withMedia(environment, media, options, (environment) => from(environment, beginning))
      )
    )
  )

/** Prepares the beginning of a run: its media, its input, the history before it, its context. */
const prepare = Effect.fnUntraced(function* (
  environment: Environment,
  runId: string,
  agent: Team.Bearer & Pick<Agent, "input">,
  input: unknown,
  { caller, context, history = [] }: Starting
) {
  const media = yield* environment.media.run(runId)
  const beginning: Starts.Beginning = {
    runId,
    rootRunId: runId,
    parentRunId: undefined,
    depth: 0,
    taskId: undefined,
    caller: yield* Starts.checkedCaller(caller),
    input: yield* media.admit(yield* contentsOf(agent, input, media)),
    history: yield* admitMedia(history, media, roomBefore(environment.limits), inline),
    context: yield* Team.encodeContext(agent, context)
  }
  return { beginning, media }
})

/** Stores a new run, and keeps its media until it has ended. */
const submitKept = (environment: Environment, beginning: Starts.Beginning) => {
  const { keep, release, size } = environment.media
  const { runId } = beginning
  if (keep === undefined) return Starts.submit(environment, beginning)
  return Effect.flatMap(size, (count) =>
    count === 0
      ? Starts.submit(environment, beginning)
      : Effect.andThen(
          keep(runId),
          Effect.onError(Starts.submit(environment, beginning), () => Effect.ignore(release([runId])))
        )
  )
}

/** Releases the media that a submitted run kept, once it has ended. A failed run may continue. */
const releaseEnded = ({ media, store }: Environment, { rootRunId, runId }: RunState): Effect.Effect<void> => {
  if (media.keep === undefined) return Effect.void
  const ended = Effect.map(store.head(runId), (head) => Option.exists(head, ({ status }) => RunStore.isEnded(status)))
  return Effect.ignore(Effect.flatMap(ended, (isOver) => (isOver ? media.release([rootRunId]) : Effect.void)))
}

/** Checks the context that a resume passes in, and opens the media of the run and of the runs it was forked from. */
const reopen = Effect.fnUntraced(function* (
  environment: Environment,
  state: RunState,
  agent: Team.Bearer,
  { context }: ResumeOptions
) {
  yield* Team.fitsContext(agent, { ...state.context, ...context })
  return yield* environment.media.run(state.rootRunId, yield* originsOf(environment.store, state))
})

/** Gives a result the agent's type, since its output was decoded by the agent's own schema. */
const ofAgent = <Output, S extends AnySkill<unknown>, R, E>(
  _agent: Agent<Output, S, R, unknown>,
  result: Effect.Effect<RunResult<unknown>, E, R>
): Effect.Effect<RunResult<Output>, E, R> => result as Effect.Effect<RunResult<Output>, E, R>

/** Gives a run and its skills the run's media store and the queue of messages from its host. */
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

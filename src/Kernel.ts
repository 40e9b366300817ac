/**
 * Runs agents: one loop asks a model, runs the calls it makes, and repeats until it has an answer.
 *
 * `stream` emits the events of a run as they happen, `run` returns its result, and `resume` continues a stored run from
 * its last record. A step is stored before the next one starts, and a call of a `write` skill is stored before it runs.
 * Interrupting the fiber that consumes a run interrupts its model call, its skills and its children. Everything stored
 * so far stays, so the run can be resumed.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import type { Agent, InputOf } from "./Agent.ts"
import * as Cancels from "./internal/run/cancel.ts"
import * as Follows from "./store-kit/Follow.ts"
import * as Forks from "./internal/kernel/fork.ts"
import { type KernelParts, modelsOf, storesOf } from "./internal/kernel/kernelParts.ts"
import { newRunId as randomRunId } from "./internal/kernel/environment.ts"
import { type KernelShape, type Needs, type Parts, make } from "./internal/kernel/kernelVerbs.ts"
import * as Queue from "./internal/kernel/queue.ts"
import * as Schedules from "./internal/kernel/cronSchedule.ts"
import type {
  AnswerError,
  CancelError,
  ConfigInvalid,
  FollowError,
  ForkError,
  OfferError,
  QuestionsError,
  ResumeError,
  ResumeStreamError,
  RunError,
  StreamError,
  SubmitError
} from "./KernelError.ts"
import * as MediaStore from "./MediaStore.ts"
import type { ModelRegistry } from "./ModelRegistry.ts"
import * as ProtocolRegistry from "./ProtocolRegistry.ts"
import type { Provider } from "./Provider.ts"
import type { RunEvent } from "./RunEvent.ts"
import type {
  AnswerOptions,
  CancelOptions,
  FollowOptions,
  ForkOptions,
  Input,
  OptionsFor,
  ResumeOptions,
  RunOptions,
  ScheduleOptions,
  SubmitOptions
} from "./RunOptions.ts"
import type { GivenAnswer, OpenQuestion, RunResult } from "./RunState.ts"
import * as RunStore from "./RunStore.ts"
import type { AnySkill } from "./Skill.ts"
import type { SkillRegistry } from "./SkillRegistry.ts"

// ---------------------------------------------------------------- models

export type * from "./RunOptions.ts"

export type { Cancelled } from "./internal/run/cancel.ts"

export type {
  AnswerError,
  CancelError,
  FollowError,
  ForkError,
  OfferError,
  QuestionsError,
  ResumeError,
  ResumeStreamError,
  RunError,
  StreamError,
  SubmitError
} from "./KernelError.ts"

export type { KernelParts, KernelShape, Needs, Parts }

/**
 * Runs agents.
 *
 * @category services
 * @since 0.1.0
 */
export class Kernel extends Context.Service<Kernel, KernelShape>()("kernai/Kernel") {}

// ---------------------------------------------------------------- running

/**
 * Starts a run and emits its events as they happen. The last event of a run with an answer is `run_completed`, which
 * carries the result. The last event of a run that waits for a person or its host is `paused`.
 *
 * @category running
 * @since 0.1.0
 */
export const stream = <Output, S extends AnySkill<unknown>, R = never, C = never, I = unknown>(
  agent: Agent<Output, S, R, C, I>,
  input: Input | InputOf<NoInfer<I>>,
  ...options: OptionsFor<RunOptions, NoInfer<C>>
): Stream.Stream<RunEvent<Output, S>, StreamError, Kernel | Needs<R>> =>
  Stream.unwrap(Kernel.useSync((kernel) => kernel.stream(agent, input, ...options)))

/**
 * Runs an agent and returns its result.
 *
 * A run that pauses fails with `RunPaused`, one that ends without an answer with `RunFinished` or `MaxStepsReached`. A
 * skill that fails does not fail the run: the model is sent an error result and can react to it.
 *
 * The input is a text, media or contents, or a value of the agent's `input` schema, as for a program: its JSON becomes
 * the message. Fails with `AgentConfigInvalid` if a value does not fit.
 *
 * @example
 * const result = yield* Kernel.run(agent, "What is a fiber?")
 *
 * @category running
 * @since 0.1.0
 */
export const run = <Output, S extends AnySkill<unknown>, R = never, C = never, I = unknown>(
  agent: Agent<Output, S, R, C, I>,
  input: Input | InputOf<NoInfer<I>>,
  ...options: OptionsFor<RunOptions, NoInfer<C>>
): Effect.Effect<RunResult<Output>, RunError, Kernel | Needs<R>> =>
  Kernel.use((kernel) => kernel.run(agent, input, ...options))

/**
 * Stores a run without running it, and returns its id. A `RunWorker` picks it up.
 *
 * The model of the agent is resolved here, too, so a provider or a `ModelRegistry` is needed.
 *
 * @category running
 * @since 0.1.0
 */
export const submit = <Output, S extends AnySkill<unknown>, R = never, C = never, I = unknown>(
  agent: Agent<Output, S, R, C, I>,
  input: Input | InputOf<NoInfer<I>>,
  ...options: OptionsFor<SubmitOptions, NoInfer<C>>
): Effect.Effect<string, SubmitError, Kernel | Needs<R>> =>
  Kernel.use((kernel) => kernel.submit(agent, input, ...options))

/**
 * Submits a run of an agent at each time of a cron expression, until it is interrupted. Workers or runners run them.
 *
 * The id of a run is made from the name of the schedule and the time, so any number of processes may have the same
 * schedule on one store: each time starts one run, as long as one of them is running. `Schedules` lists and pauses it.
 * Fails with `ConfigInvalid` for a cron expression that cannot be read, or that no date matches.
 *
 * @example
 * const Reports = Layer.effectDiscard(
 *   Effect.forkScoped(Kernel.schedule(reporter, "Report.", { name: "report", cron: "0 9 * * 1-5", timeZone: "Europe/Berlin" }))
 * )
 *
 * @category running
 * @since 0.1.0
 */
export const schedule = <Output, S extends AnySkill<unknown>, R = never, I = unknown>(
  agent: Agent<Output, S, R, unknown, I>,
  input: Input | InputOf<NoInfer<I>>,
  options: ScheduleOptions
): Effect.Effect<never, SubmitError | ConfigInvalid, Kernel | Needs<R>> =>
  Kernel.use((kernel) =>
    Schedules.schedule(
      Schedules.timesOf(agent.name, options),
      kernel.parts && Context.get(kernel.parts, RunStore.RunStore).notes,
      (runId) => kernel.submit<Output, S, R, unknown, I>(agent, input, { ...options, runId })
    )
  )

/**
 * Returns the calls of a run, its tasks and its agents that wait for a person, with the skill, the input, the reason for
 * asking, and the path of agents that leads to it. Empty when no call waits. Pass the decisions to `answer` or `resume`.
 *
 * @example
 * const open = yield* Kernel.questions(runId)
 * yield* Kernel.answer(runId, open.map(({ callId }) => ({ callId, approved: true, by: "Ada" })))
 *
 * @category running
 * @since 0.1.0
 */
export const questions = Effect.fn("Kernel.questions")(function* (
  runId: string
): Effect.fn.Return<ReadonlyArray<OpenQuestion>, QuestionsError, RunStore.RunStore> {
  return yield* Queue.questions(yield* RunStore.RunStore, runId)
})

/**
 * Records a person's decisions about the waiting calls of a run or its tasks, and the results of external calls:
 * `{ callId, output }` or `{ callId, error }`.
 *
 * Nothing runs here: a `RunWorker` that has the agent picks the run up at once, or `resume` continues it. Without
 * answers, a paused run is only offered to workers again. A run that a process still runs without a worker is not
 * disturbed: its tasks get their answers when it pauses, and `resume` continues with them.
 *
 * Recording answers changes the revision of the run. A caller that passes the `revision` it saw must therefore give all
 * answers in one call.
 *
 * @category running
 * @since 0.1.0
 */
export const answer = Effect.fn("Kernel.answer")(function* (
  runId: string,
  answers: ReadonlyArray<GivenAnswer>,
  options: AnswerOptions = {}
): Effect.fn.Return<void, AnswerError, RunStore.RunStore> {
  yield* Queue.answer(yield* RunStore.RunStore, runId, answers, options)
})

/**
 * Offers a run at rest to workers again: one that failed, got no answer, was given up (`RunPoisoned`), or was paused by
 * a hook. Its earlier attempts no longer count. Returns false, and changes nothing, for any other run: one that is in
 * progress, has ended, or asks a person.
 *
 * @category running
 * @since 0.1.0
 */
export const retry = Effect.fn("Kernel.retry")(function* (
  runId: string,
  options: AnswerOptions = {}
): Effect.fn.Return<boolean, AnswerError, RunStore.RunStore> {
  return yield* Queue.retry(yield* RunStore.RunStore, runId, options)
})

/**
 * Cancels a run and the runs below it, from any process.
 *
 * The cancellation is stored first; from then on the process that runs the run stores nothing more. It sees the
 * cancellation within about 100 milliseconds and interrupts its model calls, skills, child processes and child runs. A
 * run that no process runs is cancelled at once. Calls that were in flight are listed in the event `run_cancelled`; those
 * of `write` skills may have had their effect.
 *
 * Returns what was ended: the runs, the processes that had one of them, the models that were being asked, and the calls.
 *
 * A cancelled run has the status `cancelled`, no worker takes it up, and `resume` continues it. Cancelling it again
 * changes nothing. A failed or waiting run can be cancelled, too.
 *
 * @example
 * yield* Kernel.cancel(runId, { reason: "wrong customer", by: "Ada" })
 *
 * @category running
 * @since 0.1.0
 */
export const cancel = Effect.fn("Kernel.cancel")(function* (
  runId: string,
  options: CancelOptions = {}
): Effect.fn.Return<Cancels.Cancelled, CancelError, RunStore.RunStore> {
  return yield* Cancels.cancel(yield* RunStore.RunStore, runId, options)
})

/**
 * Follows a run by its id, from any process: its stored events after a revision, then new ones as they happen, without a
 * gap and without repeating any.
 *
 * If this process runs the run, its live events are emitted, too: the text of the current reply from its beginning, or
 * the latest reports of its calls, then each piece as it arrives. If another process runs it, events are emitted as they
 * are stored, and the text of a reply arrives whole, in `model_completed`. Child runs are followed by their own ids.
 *
 * A slow follower does not slow the run: one that falls behind continues from the store. Leaving the stream does not
 * stop the run.
 *
 * @example
 * const text = Kernel.follow(runId, { after: lastRevision }).pipe(
 *   Stream.filter((event) => event.type === "text_chunk")
 * )
 *
 * @category running
 * @since 0.1.0
 */
export const follow = (
  runId: string,
  options: FollowOptions = {}
): Stream.Stream<RunEvent, FollowError, RunStore.RunStore> =>
  Stream.unwrap(RunStore.RunStore.useSync((store) => Follows.follow(store, runId, options)))

/**
 * Continues a stored run from its last record and emits the events from there on.
 *
 * @category running
 * @since 0.1.0
 */
export const resumeStream = <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R, unknown>,
  runId: string,
  options?: ResumeOptions
): Stream.Stream<RunEvent<Output, S>, ResumeStreamError, Kernel | Needs<R>> =>
  Stream.unwrap(Kernel.useSync((kernel) => kernel.resumeStream(agent, runId, options)))

/**
 * Continues a stored run from its last record: answers its questions, decides about the calls that were in flight, or
 * just continues after a crash. Completed turns and finished calls are not repeated.
 *
 * Fails with `OutputInvalid` if a stored answer does not fit the agent's output schema.
 *
 * @category running
 * @since 0.1.0
 */
export const resume = <Output, S extends AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R, unknown>,
  runId: string,
  options?: ResumeOptions
): Effect.Effect<RunResult<Output>, ResumeError, Kernel | Needs<R>> =>
  Kernel.use((kernel) => kernel.resume(agent, runId, options))

/**
 * Creates a new run from a prefix of another run's records, and returns its id. The other run does not change. Use
 * `resume` to continue the fork.
 *
 * `RunState.isCopied` tells which revisions of the fork are copied; the rest ran in the fork. Copied records keep their
 * times, while the creation time of the fork is its own.
 *
 * @category running
 * @since 0.1.0
 */
export const fork = Effect.fn("Kernel.fork")(function* (
  runId: string,
  options: ForkOptions = {}
): Effect.fn.Return<string, ForkError, RunStore.RunStore> {
  const store = yield* RunStore.RunStore
  const id = options.runId ?? (yield* newRunId)
  yield* Forks.fork(store, runId, { revision: options.revision ?? Infinity, runId: id, edit: options.edit })
  return id
})

/**
 * Offers a stored run to workers, as `submit` and `answer` do. A run that was only stored, such as a fork, is claimed by
 * a worker from then on.
 *
 * Fails with `RunBusy` if a worker holds the run.
 *
 * @category running
 * @since 0.1.0
 */
export const offer = Effect.fn("Kernel.offer")(function* (
  runId: string,
  options: Pick<AnswerOptions, "workerId"> = {}
): Effect.fn.Return<void, OfferError, RunStore.RunStore> {
  yield* Queue.offer(yield* RunStore.RunStore, runId, options.workerId ?? "local")
})

/**
 * Returns a random id for a run, for a caller that needs the id before the run starts.
 *
 * @category constructors
 * @since 0.1.0
 */
export const newRunId: Effect.Effect<string> = Effect.map(Random.Random, randomRunId)

// ---------------------------------------------------------------- layers

/**
 * Provides the kernel on the stores and registries in context, with the provider for its models.
 *
 * The provider serves runs that do not name one. Use `layerModels` for agents whose model string names its provider,
 * and `layerNoProvider` when every run is given a provider.
 *
 * References (Policy, Hooks, Middleware, PromptPipeline, Recorder, …) are taken from this layer and from the running
 * fiber: the fiber's win, policies combine. Services that only a skill needs, such as credentials, come from the layer
 * that registers the skill, or from the running fiber.
 *
 * Unlike other layers, it is built at every place that provides it, with what is provided there: two kernels in one
 * program keep their own policies, hooks, redaction and limits. A layer made from it with `Layer.provide` is memoized by
 * Effect like any other: a constant `KernelLive` has the references of the place where it is built first. Make such a
 * layer with a function that takes its policy, and provide references in it, not around it.
 *
 * A kernel has no state besides its stores, so kernels on the same stores and registries act as one.
 *
 * An agent calls another one through its `agents`, in the same tree of runs. A skill that calls
 * `Kernel.run` starts a root run with its own budget and events. It needs a kernel, which needs its registry: register
 * such a skill on top of both with `SkillRegistry.register`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Kernel, never, Parts | Provider> = Layer.fresh(
  Layer.effect(
    Kernel,
    Effect.map(Effect.context<Parts | Provider>(), (built) => make(built))
  )
)

/**
 * Provides the kernel for agents whose model is a `<provider>/<model>` string, which the `ModelRegistry` resolves.
 * Otherwise the same as `layer`. Also provide a `Provider` for agents whose model string names no provider.
 *
 * @example
 * const KernelLive = Kernel.layerModels.pipe(Layer.provide([HttpModelRegistry.layer, Stores]))
 *
 * @category layers
 * @since 0.1.0
 */
export const layerModels: Layer.Layer<Kernel, never, Parts | ModelRegistry> = Layer.fresh(
  Layer.effect(
    Kernel,
    Effect.map(Effect.context<Parts | ModelRegistry>(), (built) => make(built))
  )
)

/**
 * Provides the kernel without a provider: pass one to each run (`Kernel.run(agent, input, { provider })`) or provide
 * one to its fiber. A run without either fails with `ProviderError` of reason `not_configured`. Otherwise the same as
 * `layer`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerNoProvider: Layer.Layer<Kernel, never, Parts> = Layer.fresh(
  Layer.effect(
    Kernel,
    Effect.map(Effect.context<Parts>(), (built) => make(built))
  )
)

/**
 * Provides the kernel with its stores in memory. Needs only skills and a provider.
 *
 * The run store belongs to all kernels that one program builds from this layer, and keeps the last 100 runs that ended.
 * It is not provided to `questions`, `answer`, `fork` or a `RunWorker`: use `layerWith`, which also keeps runs in memory
 * unless a store is given.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<Kernel, never, SkillRegistry | Provider> = Layer.fromBuild((memoMap, scope) =>
  Layer.buildWithMemoMap(Layer.provide(layer, memoryParts), memoMap, scope)
)

// Built once in a program, unlike the kernels on it.
const memoryParts = Layer.mergeAll(
  Layer.orDie(ProtocolRegistry.layer()),
  MediaStore.layerMemory,
  RunStore.layerMemoryWith({ endedRuns: 100, endedBytes: 16 * 1024 * 1024 })
)

/**
 * Provides a kernel with its stores and registries as one layer. Parts that are left out are in memory or empty.
 *
 * Policies, hooks and other references are provided to it: `Kernel.layerWith(parts).pipe(Layer.provide(policy))`. See
 * `layer` about them.
 *
 * @example
 * const KernelLive = Kernel.layerWith({
 *   provider: AnthropicProvider.layer,
 *   skills: [search],
 *   store: SqlRunStore.layerSqlite("runs.db")
 * })
 *
 * @category layers
 * @since 0.1.0
 */
export function layerWith<const P extends KernelParts>(
  parts: P & { readonly [K in Exclude<keyof P, keyof KernelParts>]: never }
): Layer.Layer<Kernel | Parts, KernelParts.Errors<P>, KernelParts.Services<P>>
export function layerWith(parts: KernelParts): Layer.Layer<Kernel | Parts, unknown, unknown> {
  return layerNoProvider.pipe(Layer.provide(modelsOf(parts)), Layer.provideMerge(storesOf(parts)))
}

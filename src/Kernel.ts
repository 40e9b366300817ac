/**
 * The loop that lets a model act (design: one loop, many settings).
 *
 * `stream` tells a run as it happens, `run` is the same run folded to its
 * result, `resume` takes a stored one up where it stands. Interrupting the fiber
 * that consumes a run interrupts its model call, its skills and its children;
 * what was committed stays.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import type { Agent } from "./Agent.ts"
import * as Agents from "./Agent.ts"
import type { Content } from "./Content.ts"
import { agentIdOf, EventBus } from "./EventBus.ts"
import { Hooks } from "./Hooks.ts"
import { InstructionBuilder } from "./InstructionBuilder.ts"
import * as Begin from "./internal/begin.ts"
import type { JsonObject } from "./internal/json.ts"
import * as Forks from "./internal/fork.ts"
import { remember } from "./internal/kernelParts.ts"
import * as Mailbox from "./internal/mailbox.ts"
import * as Offers from "./internal/offer.ts"
import * as Replays from "./internal/replay.ts"
import type { AnyAgent, Ground, Steering, TaskReport } from "./internal/run.ts"
import { deep } from "./internal/redact.ts"
import * as Streams from "./internal/streams.ts"
import * as Tree from "./internal/tree.ts"
import type { KernelError } from "./KernelError.ts"
import { ProviderError } from "./KernelError.ts"
import { Limits } from "./Limits.ts"
import type { Media } from "./Media.ts"
import * as MediaStore from "./MediaStore.ts"
import type { Message } from "./Message.ts"
import * as Messages from "./Message.ts"
import { Middleware } from "./Middleware.ts"
import type { Model } from "./Model.ts"
import { ModelRegistry, modelOf as modelByName } from "./ModelRegistry.ts"
import * as Policy from "./Policy.ts"
import { PromptPipeline, TokenCounter } from "./PromptPipeline.ts"
import * as ProtocolRegistry from "./ProtocolRegistry.ts"
import { Provider, type ProviderShape } from "./Provider.ts"
import { guard, Recorder } from "./Recorder.ts"
import { Redaction, type Redactor } from "./Redaction.ts"
import type { RunEvent } from "./RunEvent.ts"
import { isStreamed } from "./RunEvent.ts"
import type { ApprovalAnswer, RunRecord, RunResult, RunState } from "./RunState.ts"
import * as RunStore from "./RunStore.ts"
import type { AnySkill } from "./Skill.ts"
import { SkillRegistry } from "./SkillRegistry.ts"
import { Telemetry } from "./Telemetry.ts"

// ---------------------------------------------------------------- models

/**
 * What a run begins with: text, media, contents, or a list of them.
 *
 * @category models
 * @since 0.1.0
 */
export type Input = string | Media | Content | ReadonlyArray<string | Media | Content>

/**
 * What the host is told when a task ends (BP-103).
 *
 * @category models
 * @since 0.1.0
 */
export type { TaskReport }

/**
 * What holds for every run, new or resumed.
 *
 * @category models
 * @since 0.1.0
 */
export interface CommonOptions {
  /** The model's provider for this run, before the agent's and the layer's (BP-31). */
  readonly provider?: ProviderShape
  /** Names of skills the host allows at all (BP-65). */
  readonly allowedSkills?: ReadonlyArray<string>
  /** Tell every part of a reply as `stream_part`, text too (DR-24). */
  readonly parts?: boolean
  /** Who runs: part of every record, and the owner of leases. */
  readonly workerId?: string
  /**
   * Asked before each step of the run and of its children. An error stops it
   * there, at its last commit: a `CancellationError` from the host that wants
   * to end, an `AgentCrashError` from a worker that is no longer the owner.
   */
  readonly stop?: () => KernelError | undefined
  /**
   * What is said to the run while it runs: each thing offered here is a message of the user from the next turn on,
   * and part of the journal. A run whose answer is ready goes on when something waits.
   */
  readonly steering?: Queue.Dequeue<Input, unknown>
  /** Called once per task of a workflow; what it does wrong changes nothing (BP-103). */
  readonly onTaskComplete?: (task: TaskReport) => Effect.Effect<void>
}

/**
 * How a new run is begun.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunOptions extends CommonOptions {
  readonly runId?: string
  /** What was said before; not part of the result. */
  readonly history?: ReadonlyArray<Message>
  /** The host's own small JSON: skills read it, hooks change it (BP-153). */
  readonly context?: JsonObject
}

/**
 * How a stored run is taken up again (DR-15 to DR-19, DR-22).
 *
 * @category models
 * @since 0.1.0
 */
export interface ResumeOptions extends CommonOptions, Begin.Resume {}

/**
 * @category models
 * @since 0.1.0
 */
export type Verdict = Begin.Verdict

/**
 * A recorded tree of runs: the id of its root, and its records when they are not in the store.
 *
 * @category models
 * @since 0.1.0
 */
export type Recording =
  | string
  | {
      readonly runId: string
      readonly records: ReadonlyArray<RunRecord>
      /** What was told live: with `stream_part` events of whole replies (`parts: true`) they come again piece by piece. */
      readonly events?: ReadonlyArray<RunEvent>
    }

/**
 * What a replay gave: the events in the order they were told, and where the run stands at the end of the recording.
 *
 * @category models
 * @since 0.1.0
 */
export interface Replay extends Replays.Replayed {}

type Events<Output, S extends AnySkill<unknown>, R> = Stream.Stream<RunEvent<Output, S>, KernelError, R>
type Result<Output, R> = Effect.Effect<RunResult<Output>, KernelError, R>

/**
 * The verbs of the kernel.
 *
 * @category models
 * @since 0.1.0
 */
export interface Shape {
  readonly stream: <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    input: Input,
    options?: RunOptions
  ) => Events<Output, S, R>
  readonly run: <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    input: Input,
    options?: RunOptions
  ) => Result<Output, R>
  /** Stores a run without running it, and gives its id. */
  readonly submit: <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    input: Input,
    options?: RunOptions
  ) => Effect.Effect<string, KernelError, R>
  readonly resumeStream: <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    runId: string,
    options?: ResumeOptions
  ) => Events<Output, S, R>
  readonly resume: <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    runId: string,
    options?: ResumeOptions
  ) => Result<Output, R>
  /** Runs a recorded run again, without asking a model and without entering a skill. */
  readonly replay: <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    recording: Recording
  ) => Effect.Effect<Replay, KernelError, R>
}

/**
 * Runs agents.
 *
 * @category services
 * @since 0.1.0
 */
export class Kernel extends Context.Service<Kernel, Shape>()("kernai/Kernel") {}

// ---------------------------------------------------------------- running

/**
 * Tells a run as it happens. The last event of a run with an answer is
 * `run_completed` and carries its result; one that waits for a person ends with
 * `paused`.
 *
 * @category running
 * @since 0.1.0
 */
export const stream = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  input: Input,
  options?: RunOptions
): Events<Output, S, Kernel | R> =>
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
export const run = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  input: Input,
  options?: RunOptions
): Result<Output, Kernel | R> => Kernel.use((kernel) => kernel.run(agent, input, options))

/**
 * Stores a run without running it, and gives its id: a worker takes it up (see `RunWorker`).
 *
 * @category running
 * @since 0.1.0
 */
export const submit = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  input: Input,
  options?: RunOptions
): Effect.Effect<string, KernelError, Kernel | R> => Kernel.use((kernel) => kernel.submit(agent, input, options))

/**
 * Records what a person decided about the calls a run, or a task of it, waits with (DR-22).
 *
 * Nothing runs here: whoever runs the agent takes the run up, a `RunWorker` at
 * once. Without answers a paused run is only offered again.
 *
 * @category running
 * @since 0.1.0
 */
export const answer = (
  runId: string,
  answers: ReadonlyArray<ApprovalAnswer>,
  options: { readonly workerId?: string } = {}
): Effect.Effect<void, KernelError, RunStore.RunStore> =>
  RunStore.RunStore.use((store) => Offers.answer(store, runId, answers, options.workerId ?? "local"))

/**
 * Takes a stored run up where it stands, and tells what happens from there.
 *
 * @category running
 * @since 0.1.0
 */
export const resumeStream = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  runId: string,
  options?: ResumeOptions
): Events<Output, S, Kernel | R> =>
  Streams.begin(() => Kernel.use((kernel) => Effect.succeed(kernel.resumeStream(agent, runId, options))))

/**
 * Takes a stored run up where it stands: answers its questions, decides about
 * calls in flight, or just goes on after a crash.
 *
 * @category running
 * @since 0.1.0
 */
export const resume = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  runId: string,
  options?: ResumeOptions
): Result<Output, Kernel | R> => Kernel.use((kernel) => kernel.resume(agent, runId, options))

/**
 * Runs a recorded run again as its agent is now, without asking a model and
 * without entering a skill: both give what they gave.
 *
 * Hooks, policies and instructions run again. Every phase event must be the one
 * that was recorded, times and prices aside; the first that is not fails the
 * replay with `ReplayDiverged`, which names it and its step.
 *
 * @category running
 * @since 0.1.0
 */
export const replay = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  recording: Recording
): Effect.Effect<Replay, KernelError, Kernel | R> => Kernel.use((kernel) => kernel.replay(agent, recording))

/**
 * How a fork differs from the run it comes from.
 *
 * @category models
 * @since 0.1.0
 */
export interface ForkOptions {
  /** The last commit both have in common: the run's last one unless told. */
  readonly revision?: number
  /** The id of the fork; one is made up unless told. */
  readonly runId?: string
  /** Changes a record on its way into the fork: an answer, a result, the context. What follows is run on what it says. */
  readonly edit?: (record: RunRecord) => RunRecord
}

/**
 * Makes a new run from a commit of another, and gives its id. The other one
 * stays as it is; `resume` takes the fork up from there.
 *
 * Up to that commit the fork is a copy: `RunState.isCopied` tells which of its
 * commits are, the others were run anew.
 *
 * @category running
 * @since 0.1.0
 */
export const fork = Effect.fnUntraced(function* (
  runId: string,
  options: ForkOptions = {}
): Effect.fn.Return<string, KernelError, RunStore.RunStore> {
  const store = yield* RunStore.RunStore
  const random = yield* Random.Random
  const id = options.runId ?? newRunId(random)
  yield* Forks.fork(store, runId, { revision: options.revision ?? Infinity, runId: id, edit: options.edit })
  return id
})

/**
 * The records of a run and of all runs below it: what a replay needs, and what an export holds.
 *
 * @category running
 * @since 0.1.0
 */
export const recordsOf = (runId: string): Effect.Effect<ReadonlyArray<RunRecord>, KernelError, RunStore.RunStore> =>
  RunStore.RunStore.use((store) => Replays.recordsOf(store, runId))

// ---------------------------------------------------------------- layers

/**
 * The kernel on the stores and registries in context.
 *
 * The provider of the layer is used by runs that name none. References
 * (Policy, Hooks, Middleware, PromptPipeline, Recorder, …) are taken from here
 * and from the running fiber: the fiber's win, policies combine.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<
  Kernel,
  never,
  SkillRegistry | ProtocolRegistry.ProtocolRegistry | MediaStore.MediaStore | RunStore.RunStore
> = /*#__PURE__*/ Layer.effect(
  Kernel,
  Effect.map(
    Effect.context<SkillRegistry | ProtocolRegistry.ProtocolRegistry | MediaStore.MediaStore | RunStore.RunStore>(),
    (built) => make(built)
  )
)

/**
 * The kernel with everything in memory: needs only skills and a provider.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<Kernel, never, SkillRegistry | Provider> = /*#__PURE__*/ Layer.effect(
  Kernel,
  Effect.map(
    Effect.context<
      SkillRegistry | Provider | ProtocolRegistry.ProtocolRegistry | MediaStore.MediaStore | RunStore.RunStore
    >(),
    (built) => make(built)
  )
).pipe(Layer.provide([ProtocolRegistry.layer(), MediaStore.layerMemory, RunStore.layerMemory]), Layer.orDie)

// ---------------------------------------------------------------- making

type Built = Context.Context<
  SkillRegistry | ProtocolRegistry.ProtocolRegistry | MediaStore.MediaStore | RunStore.RunStore
>

/** Where a run tells what happens, and whether whoever listens is behind. */
interface Sink {
  readonly tell: (event: RunEvent) => void
  readonly isFull: () => boolean
  readonly batch: <A>(body: () => A) => A
}

const silent: Sink = { tell: () => {}, isFull: () => false, batch: (body) => body() }

const make = (built: Built): Shape => {
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
      return Effect.scoped(
        Effect.gen(function* () {
          const media = yield* ground.media.run(runId)
          const parts = yield* media.admit(isList(input) ? input : [input])
          const birth = {
            runId,
            rootRunId: runId,
            parentRunId: undefined,
            depth: 0,
            taskId: undefined,
            history: options.history ?? [],
            input: parts,
            context: options.context ?? {}
          }
          const steered = { ...ground, media, steering: steeringOf(options.steering, media) }
          return yield* Effect.provideService(start(steered, birth), MediaStore.MediaStore, media)
        })
      )
    })

  const runWith = <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    input: Input,
    options: RunOptions,
    sink: Sink
  ): Result<Output, R> =>
    // Decoded by the agent's own schema: its type is the agent's Output.
    newRun(agent, input, options, sink, (ground, birth) => traced(ground, Begin.begin(ground, birth))) as Result<
      Output,
      R
    >

  const resumeWith = <Output, S extends AnySkill<unknown>, R>(
    agent: Agent<Output, S, R>,
    runId: string,
    options: ResumeOptions,
    sink: Sink
  ): Result<Output, R> =>
    Effect.flatMap(Begin.stored(Context.get(built, RunStore.RunStore), runId), (state) =>
      onGround(built, agent, options, sink, state, (ground) =>
        traced(
          ground,
          Effect.scoped(
            Effect.gen(function* () {
              const media = yield* ground.media.run(state.rootRunId, yield* Forks.originsOf(ground.store, state))
              const steered = { ...ground, media, steering: steeringOf(options.steering, media) }
              return yield* Effect.provideService(Begin.resume(steered, state, options), MediaStore.MediaStore, media)
            })
          )
        )
      )
    ) as Result<Output, R>

  const replay: Shape["replay"] = (agent, recording) => {
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

  return remember<Shape>(
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

const isList = (input: Input): input is ReadonlyArray<string | Media | Content> => Array.isArray(input)

/** What waits in the host's queue, as messages of the user; the queue may end. */
const steeringOf = (queue: Queue.Dequeue<Input, unknown> | undefined, media: MediaStore.Shape): Steering | undefined =>
  queue === undefined
    ? undefined
    : {
        isWaiting: () => Queue.sizeUnsafe(queue) > 0,
        take: Effect.orElseSucceed(Queue.clear(queue), (): ReadonlyArray<Input> => []).pipe(
          Effect.flatMap(
            Effect.forEach((input) => Effect.map(media.admit(isList(input) ? input : [input]), Messages.user))
          )
        )
      }

/** The same run, told through a mailbox to whoever pulls. */
const events = <Output, S extends AnySkill<unknown>, R>(
  _agent: Agent<Output, S, R>,
  start: (sink: Sink) => Result<Output, R>
): Events<Output, S, R> =>
  Streams.begin((scope) =>
    Effect.gen(function* () {
      const { liveEvents } = yield* Limits
      const mailbox = Mailbox.make<RunEvent, KernelError>({ limit: liveEvents, keep: (event) => !isStreamed(event) })
      yield* Effect.forkIn(
        Effect.onExit(start({ tell: mailbox.offer, isFull: mailbox.isFull, batch: mailbox.batch }), (exit) =>
          Effect.sync(() => (Exit.isFailure(exit) && !isPause(exit.cause) ? mailbox.fail(exit.cause) : mailbox.end()))
        ),
        scope,
        { startImmediately: true }
      )
      // Events are made from the agent's own skills and output schema: this is where their types meet.
      return mailbox.stream as Stream.Stream<RunEvent<Output, S>, KernelError>
    })
  )

/** A pause is told as an event; a stream that ends with it has not failed. */
const isPause = (cause: Cause.Cause<KernelError>): boolean =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && reason.error._tag === "RunPaused")

/** Gathers what a run stands on, from the layer and from the fiber that runs it, and runs on it. */
const onGround = <Output, S extends AnySkill<unknown>, R, A>(
  built: Built,
  agent: Agent<Output, S, R>,
  options: CommonOptions,
  sink: Sink,
  state: RunState | undefined,
  body: (ground: Ground, newId: () => string) => Effect.Effect<A, KernelError>
): Effect.Effect<A, KernelError, R> =>
  Effect.contextWith((current: Context.Context<R>) => {
    const problem = Agents.problem(agent)
    if (problem !== undefined) return Effect.fail(problem)
    const own = closed(agent, current)
    return Effect.flatMap(modelOf(built, current, own, options), ({ model, provider }) => {
      const random = Context.get(current, Random.Random)
      const holder = options.workerId ?? "local"
      const ground: Ground = {
        agent: own,
        model,
        provider,
        store: Context.get(built, RunStore.RunStore),
        skills: Context.get(built, SkillRegistry),
        protocols: Context.get(built, ProtocolRegistry.ProtocolRegistry),
        media: Context.get(built, MediaStore.MediaStore),
        hooks: reference(built, current, Hooks),
        middleware: reference(built, current, Middleware),
        policy: Policy.combine(Context.get(built, Policy.Policy), Context.get(current, Policy.Policy)),
        pipeline: reference(built, current, PromptPipeline),
        builder: reference(built, current, InstructionBuilder),
        counter: reference(built, current, TokenCounter),
        telemetry: reference(built, current, Telemetry),
        redactor: reference(built, current, Redaction),
        limits: reference(built, current, Limits),
        clock: Context.get(current, Clock.Clock),
        holder,
        // Two lives of a run must never write the same record, not even by one worker at one instant.
        workerId: `${holder}#${hex(random)}`,
        allowed: options.allowedSkills,
        parts: options.parts ?? false,
        tree: Tree.make(agent.budget, agent.spawn ?? { maxAgents: 50, maxDepth: 1 }, Tree.spentOf(state)),
        tell: listeners(built, current, agent.name, sink),
        isFull: sink.isFull,
        batch: sink.batch,
        stop: options.stop,
        steering: undefined,
        spawn: Begin.spawn,
        onTaskComplete: options.onTaskComplete
      }
      return body(ground, () => newRunId(random))
    })
  })

/** A whole run as telemetry sees it. */
const traced = (
  { agent, model, provider, telemetry }: Ground,
  whole: Effect.Effect<RunResult<unknown>, KernelError>
): Effect.Effect<RunResult<unknown>, KernelError> =>
  telemetry === undefined
    ? whole
    : telemetry.run(
        whole,
        { agent: agent.name, description: agent.description, model: model.id, provider: provider.name },
        ({ costUsd, turns, usage }) => ({ usage, turns, costUsd })
      )

/** Instructions that need services are closed over them here: inside, an agent needs nothing. */
const closed = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  services: Context.Context<R>
): AnyAgent => {
  const { instructions } = agent
  if (typeof instructions !== "string") {
    const own = Effect.updateContext(instructions, (current: Context.Context<never>) =>
      Context.merge(services, current)
    )
    return { ...agent, instructions: own }
  }
  // One copy per agent: what is made for an agent once is found again at its next run.
  let plain = plainAgents.get(agent)
  if (plain === undefined) plainAgents.set(agent, (plain = { ...agent, instructions }))
  return plain
}

const plainAgents = new WeakMap<object, AnyAgent>()

/** The provider of a run: its own, else the agent's model string, else the layer's (BP-31). */
const modelOf = (
  built: Built,
  current: Context.Context<never>,
  agent: AnyAgent,
  options: CommonOptions
): Effect.Effect<{ readonly provider: ProviderShape; readonly model: Model }, KernelError> => {
  const named = agent.model
  if (options.provider !== undefined) {
    return Effect.succeed({ provider: options.provider, model: modelFor(named, options.provider) })
  }
  const registry = service(built, current, ModelRegistry)
  if (typeof named === "string" && named.includes("/") && registry !== undefined) return registry.resolve(named)
  const provider = service(built, current, Provider)
  return provider === undefined
    ? Effect.fail(new ProviderError({ provider: "none", reason: "not_configured", detail: "No provider configured" }))
    : Effect.succeed({ provider, model: modelFor(named, provider) })
}

/** A model by name: a prefix that names the provider itself is not part of what the vendor is asked for. */
const modelFor = (named: Model | string, provider: ProviderShape): Model => {
  if (typeof named !== "string") return named
  const own = `${provider.name}/`
  return modelByName(provider.name, named.startsWith(own) ? named.slice(own.length) : named)
}

const service = <I, S>(
  built: Context.Context<never>,
  current: Context.Context<never>,
  key: Context.Key<I, S>
): S | undefined =>
  Option.getOrUndefined(Option.orElse(Context.getOption(current, key), () => Context.getOption(built, key)))

/** A reference as the running fiber has it, else as the layer was built with. */
const reference = <A>(built: Context.Context<never>, current: Context.Context<never>, key: Context.Reference<A>): A =>
  Context.get(current.mapUnsafe.has(key.key) ? current : built, key)

/** Everyone who hears of events: the same ones in the same order for all. */
const listeners = (built: Context.Context<never>, current: Context.Context<never>, agent: string, sink: Sink) => {
  const recorder = reference(built, current, Recorder)
  const bus = service(built, current, EventBus)
  const from = bus === undefined ? undefined : agentIdOf(agent)
  const all: ReadonlyArray<(event: RunEvent) => void> = [
    ...(sink === silent ? [] : [sink.tell]),
    ...(recorder === undefined ? [] : [cleaned(guard(recorder).record, reference(built, current, Redaction))]),
    ...(bus === undefined ? [] : [(event: RunEvent) => bus.publish(event, from)])
  ]
  const [first, second] = all
  if (first === undefined) return undefined
  if (second === undefined) return first
  return (event: RunEvent) => {
    for (const tell of all) tell(event)
  }
}

/** What is written down holds no secret, when somebody knows what is one. */
const cleaned = (record: (event: RunEvent) => void, redactor: Redactor | undefined) =>
  redactor === undefined ? record : (event: RunEvent) => record(deep(event, redactor.text))

const newRunId = (random: Random.Random): string => `run_${hex(random)}${hex(random)}${hex(random)}`

const hex = (random: Random.Random): string => (random.nextIntUnsafe() >>> 0).toString(16).padStart(8, "0")

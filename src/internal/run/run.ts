/**
 * A run in this process: its state, its environment, the delta of its next record, and the errors of its steps.
 *
 * The delta collects changes that belong to the next record, which clears it.
 */

import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import type { Agent } from "../../Agent.ts"
import type { Call, CallResult } from "../../Call.ts"
import type { Scope } from "../../Caller.ts"
import type { Content } from "../../Content.ts"
import type { DialectName } from "../../Dialect.ts"
import type { Hooks } from "../../Hooks.ts"
import type * as InstructionBuilder from "../../InstructionBuilder.ts"
import type {
  AgentConfigInvalid,
  AgentCrashError,
  BudgetExhaustedError,
  CutReplies,
  DeadlineExceeded,
  EmptyReplies,
  ExtensionFailed,
  InFlightToolCalls,
  LimitExceeded,
  LoopDetected,
  MaxStepsReached,
  MediaConflict,
  MiddlewareTermination,
  ModelCallError,
  ModelError,
  ProgramError,
  PromptError,
  ResumeError,
  RunBusy,
  RunCancelled,
  RunFinished,
  RunPaused,
  StopError,
  StoreError
} from "../../KernelError.ts"
import type { Limits } from "../../Limits.ts"
import type * as MediaStore from "../../MediaStore.ts"
import type { Message } from "../../Message.ts"
import type { Middleware } from "../../Middleware.ts"
import type { Model } from "../../Model.ts"
import type { PolicyShape } from "../../Policy.ts"
import type { Prompt, PromptContext, PromptPipelineShape, TokenCount } from "../../PromptPipeline.ts"
import type { AnyProtocol } from "../../Protocol.ts"
import type { ProtocolRegistry } from "../../ProtocolRegistry.ts"
import type { ProviderShape } from "../../Provider.ts"
import type { Redactor } from "../../Redaction.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { TaskReport } from "../../RunOptions.ts"
import type { Delta, Phase, RunRecord, RunState, Turn } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"
import type * as Telemetry from "../../Telemetry.ts"
import { isSound } from "../errors/extensionError.ts"
import { perObject } from "../../kit/perObject.ts"
import type { JsonObject } from "../../kit/json.ts"
import type { LiveTree, Underway } from "../../store-kit/internal/liveTree.ts"
import * as PromptCache from "../prompt/promptCache.ts"
import { State, callerScope, turnLog } from "../state/state.ts"
import type { FlushError } from "../../store-kit/internal/storeGuard.ts"
import { type IsUsed, usedIds } from "../words/ids.ts"
import type { Reports } from "./reports.ts"
import type { TreeBudget } from "./treeBudget.ts"

/** An agent whose instructions need no services. */
export type AnyAgent = Agent<unknown, AnySkill<unknown>, never, unknown>

/** An agent whose dialect is decided. */
export type AskedAgent = AnyAgent & { readonly dialect: DialectName }

/** An agent that can be called, in the form of a skill whose `call` reads the input as a text. */
export interface Callable {
  readonly kind: "agent" | "handoff"
  readonly agent: AnyAgent
  readonly skill: AnySkill
}

/** The agents that an agent can call, by the name of the call. */
export type Callables = ReadonlyMap<string, Callable>

/** The parts of an environment that depend on the agent. */
export interface Member {
  readonly agent: AskedAgent
  /** Whether its prompt may list its skills, as it may if its dialect is chosen for its model. */
  readonly isListed: boolean
  readonly model: Model
  readonly provider: ProviderShape<ProgramError>
  readonly skills: SkillRegistry["Service"]
  /** The agents it can call or hand the conversation over to. */
  readonly callables: Callables
}

/** The input and the agent of a child run. An undefined agent is that of its parent. */
export interface Child {
  readonly agent: AnyAgent | undefined
  readonly taskId: string | undefined
  readonly input: ReadonlyArray<Content>
}

/** A model and the provider that serves it. */
export interface Served {
  readonly provider: ProviderShape<ProgramError>
  readonly model: Model
}

/** The services and settings of a run. They belong to the process and are never stored. */
export interface Environment extends Member {
  /** Returns the parts that depend on an agent of the team, by its name. */
  readonly member: (name: string) => Effect.Effect<Member, MemberError>
  /** The largest number of turns of the run, of all its agents together. */
  readonly maxSteps: number
  /** The time that the run may take. */
  readonly deadline: Duration.Input | undefined
  /** Returns the provider of a model that a hook chose for one turn. */
  readonly served: (chosen: Model, own: Served) => Effect.Effect<Served, ModelError>
  readonly store: RunStore.RunStoreShape
  readonly protocols: ProtocolRegistry["Service"]
  readonly media: MediaStore.MediaStoreShape
  readonly hooks: Hooks
  readonly middleware: ReadonlyArray<Middleware>
  readonly policy: PolicyShape | undefined
  readonly pipeline: PromptPipelineShape
  readonly builder: InstructionBuilder.InstructionBuilderShape
  readonly counter: TokenCount | undefined
  readonly telemetry: Telemetry.TelemetryShape | undefined
  readonly redactor: Redactor | undefined
  readonly limits: Limits
  readonly clock: Clock.Clock
  /** Owner of the leases of this worker. */
  readonly holder: string
  /** Writer of the records. A new id for each start and each resume. */
  readonly workerId: string
  /** Names of the skills the host allows. Undefined allows all. */
  readonly allowed: ReadonlyArray<string> | undefined
  /** Emit every part of a reply as `stream_part`, text included. */
  readonly parts: boolean
  /** Counters and slots shared by the whole tree of runs. */
  readonly budget: TreeBudget
  /** Publishes the events of the whole tree to listeners and followers. */
  readonly live: LiveTree
  /** Returns whether the consumer's buffer is full. */
  readonly isFull: () => boolean
  /** Returns whether the consumer of the event stream has worked through all events. */
  readonly isIdle: () => boolean
  /** Publishes all events that `body` emits together. */
  readonly batch: <A>(body: () => A) => A
  /** Whether the run is the only suspect of a crash that its driver attempts. */
  readonly isAlone: boolean
  /** The calls that were in flight when the host decided about them. Undefined if it was not asked. */
  readonly asked: ReadonlySet<string> | undefined
  /** The head of the run when its driver claimed it, or `leased` under a lease of the store. */
  readonly seen: RunStore.RunHead | "leased" | undefined
  /** Called before each step. If it returns an error, the run stops at its last stored record. */
  readonly stop: (() => StopError | ExtensionFailed | MiddlewareTermination | undefined) | undefined
  /** Cancels the root run when aborted. */
  readonly signal: AbortSignal | undefined
  /** Called before a `write` skill runs, with the stored head of the root run. */
  readonly prove: ((root: RunStore.RunHead) => Effect.Effect<void, AgentCrashError | StoreError>) | undefined
  /** The run that started this one as a child. */
  readonly parent: Run | undefined
  /** Messages that the host sends while the root run is active. */
  readonly steering: Steering | undefined
  /** Runs a task or an agent as a child of a run. */
  readonly spawn: (parent: Run, call: Call, child: Child) => Effect.Effect<CallResult, ResumeError>
  readonly onTaskComplete: ((task: TaskReport) => Effect.Effect<void>) | undefined
}

/** Reads messages that wait for the next turn of a run. */
export interface Steering {
  readonly isWaiting: () => boolean
  /** Reads the waiting messages. They stay until `take` is called. */
  readonly look: Effect.Effect<Waiting, MediaError>
  /** Returns once a message waits. */
  readonly arrival: Effect.Effect<void>
  /** Returns the background calls whose results the next turn of a run receives, where that is known in advance. */
  readonly awaited?: ((runId: string) => ReadonlyArray<string>) | undefined
}

/** Waiting messages. `take` removes them from the queue. */
interface Waiting {
  readonly messages: ReadonlyArray<Message>
  readonly take: () => void
}

/** The tools and the listing that a turn offers its model, with the extensions they come from. */
export interface Offer extends Pick<PromptContext, "tools" | "listing"> {
  /** All registered skills and protocols when the offer was made. */
  readonly skills: ReadonlyArray<AnySkill>
  readonly protocols: ReadonlyArray<AnyProtocol>
  /** The protocols that the agent may use. */
  readonly spoken: ReadonlyArray<AnyProtocol>
  /** A digest of the skills that the agent may call, and of their schemas if the model reads these. */
  readonly digest: number
}

/** A prompt that does not depend on the conversation, and what it was built from. */
interface SteadyPrompt {
  readonly offer: Offer
  readonly context: JsonObject
  readonly prompt: Prompt
}

/** The background calls of a run in this process, each by the id of its child run. Mutable. */
export interface Background {
  readonly fibers: Map<string, Fiber.Fiber<CallResult, TaskError>>
  /** The results that no turn has received yet. */
  readonly ended: Map<string, CallResult>
  /** The pauses of the calls that wait for a person. */
  readonly waits: Map<string, RunPaused>
  /** The failure of a call that concerns the run. */
  failure: TaskError | undefined
}

/** An active run. Mutable: `commit.ts` advances its state, and `carry` adds to the delta of the next record. */
export interface Run extends Environment {
  /** Advanced in place by `commit.ts` alone. */
  readonly state: State
  /** The delta of the next record, which clears it. */
  next: Delta
  /** Records that are not stored yet, and the events to publish once they are stored. */
  records: Array<RunRecord>
  events: Array<RunEvent>
  /** The number of turns that were complete before this process had the run. */
  readonly turnsBefore: number
  /** The revision up to which events are published. */
  published: number
  /** The reply under way. */
  reply: Underway["reply"]
  /** The latest reports of calls in flight, for followers that join. Created with the first report. */
  reports: Reports | undefined
  /** The error of a failed flush. Later flushes fail with it. */
  failed: FlushError | undefined
  /** The background calls in this process. Created with the first one. */
  background: Background | undefined
  /** Serializes flushes of concurrent calls. Created with the first concurrent calls. */
  lock: Semaphore.Semaphore | undefined
  /** The answer, decoded by the agent's output schema. */
  output: unknown
  /** The prefixes of this run's prompts that vendors are expected to have cached. Replaced by `forecastCache` alone. */
  cache: PromptCache.PromptCache
  /** The offer of the last turn. Replaced by `offerOf` alone. */
  offer: Offer | undefined
  /** The prompt of the last turn, for turns that change nothing. Replaced by `preparePrompt` alone. */
  prompt: SteadyPrompt | undefined
  /** The options dropped from the last model call. Replaced by `noteDropped` alone. */
  dropped: string
  /** The media left out of the last request. Replaced by `noteLeftOut` alone. */
  leftOut: string
  /** Restores interruptibility for foreign code inside the uninterruptible loop. */
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Returns whether an earlier call of this run had this id. */
  readonly isUsed: IsUsed
}

/** Returns the time in milliseconds by the clock the run started on. */
export const now = (environment: Pick<Environment, "clock">): number => environment.clock.currentTimeMillisUnsafe()

/** Returns whether a run is active and at this phase. */
export const isAt = ({ state: { status } }: Run, phase: Phase): boolean =>
  status.type === "running" && status.phase === phase

/** Fails if the host of a run has asked it to stop. */
export const unlessStopped = (run: Run): Effect.Effect<void, StopError | ExtensionFailed | MiddlewareTermination> => {
  const reason = run.stop?.()
  return reason === undefined ? Effect.void : Effect.fail(reason)
}

/** Returns the open turn. Throws without one, which callers rule out. */
export const currentTurn = (run: Run): Turn => {
  if (run.state.currentTurn === undefined) throw new Error("no open turn")
  return run.state.currentTurn
}

/** Returns whether this call was in flight when the run was interrupted and is launched again. */
export const isRecovered = (run: Run, { callId }: Pick<Call, "callId">): boolean =>
  currentTurn(run).recovered?.includes(callId) === true

/** Returns the facts about a run by which policies and middleware decide. */
export const policyScope = ({ agent, state }: Run): Scope => callerScope(state, agent.name)

/** Creates a run in this process from a state and its decoded answer, if it has one. */
export const makeRun = (environment: Environment, state: RunState, output: unknown): Run => ({
  ...environment,
  agent: state.taskId === undefined ? environment.agent : asTask(environment.agent),
  state: new State(state),
  next: noDelta,
  records: [],
  events: [],
  turnsBefore: turnLog(state).length,
  published: state.revision,
  reply: undefined,
  reports: undefined,
  failed: undefined,
  background: undefined,
  lock: undefined,
  output,
  cache: PromptCache.empty,
  offer: undefined,
  prompt: undefined,
  dropped: "",
  leftOut: "",
  restore: Effect.interruptible,
  isUsed: usedIds(state.input)
})

export const noDelta: Delta = {}

/** Merges fields into the delta of the next record. Synchronous. */
export const carry = (run: Run, delta: Delta): void => {
  run.next = { ...run.next, ...delta }
}

/** Removes a field from the delta of the next record. Synchronous. */
export const drop = (run: Run, field: keyof Delta): void => {
  const { [field]: _, ...rest } = run.next
  run.next = Object.keys(rest).length === 0 ? noDelta : rest
}

/** Merges a context into the run's state and into the delta of the next record. Synchronous. */
export const mergeContext = (run: Run, context: JsonObject): void => {
  carry(run, { context: { ...run.next.context, ...context } })
  run.state.context = { ...run.state.context, ...context }
}

/** Errors of running a hook and applying its control. */
export type HookError = ExtensionFailed | MiddlewareTermination | FlushError

/** Errors of calling a model and reading its reply. */
export type ReplyError = ModelCallError | ModelError | LimitExceeded

/** Errors of storing the media of an input. */
export type MediaError = MediaConflict | LimitExceeded | StoreError

/** Errors of finding an agent of the team and its model. */
export type MemberError = AgentConfigInvalid | ModelError

/** Errors of a child run that concern its whole tree, such as a lost lease, a failed store or an exhausted budget. */
export type TaskError = FlushError | StopError | RunBusy | RunPaused | InFlightToolCalls | BudgetExhaustedError

/** Returns whether an error concerns the whole tree rather than the child run. */
export const isTaskError = (error: unknown): error is TaskError => isSound(error) && taskErrors.has(error._tag)

/** Errors of running the calls of a reply. */
export type CallsError = HookError | TaskError

/** Errors of opening a turn, which stores the media of steering messages and receives results of background calls. */
export type StartError = HookError | MediaError | TaskError

/** Errors of building the prompt of a turn. */
export type PrepareError = HookError | PromptError | BudgetExhaustedError

/** Errors of calling the model and deciding what its reply means. */
export type AskError = HookError | ReplyError | MediaError | BudgetExhaustedError | LoopDetected

/** Errors of one step of the loop. */
export type StepError = CallsError | PrepareError | AskError | EmptyReplies | CutReplies

/** Errors of driving a run, hand-overs included. */
export type DriveError = StepError | StopError | DeadlineExceeded | RunCancelled | MemberError

/** Reasons why a run stopped without an answer. */
export type EndError = RunPaused | RunCancelled | RunFinished | MaxStepsReached | MiddlewareTermination

/**
 * Returns the agent of a task. It answers with text, because the output schema describes the answer of the whole run.
 */
const asTask = (agent: AskedAgent): AskedAgent => (agent.typed ? untyped(agent) : agent)

// One per agent, because decoders and grammars are cached by agent.
const untyped = perObject((agent: AskedAgent): AskedAgent => ({
  ...agent,
  output: Schema.String,
  typed: false,
  outputJsonSchema: undefined
}))

const taskErrors: ReadonlySet<string> = new Set<TaskError["_tag"]>([
  "ConcurrentAppendError",
  "AgentCrashError",
  "CancellationError",
  "StoreError",
  "RunExists",
  "RunBusy",
  "RunPaused",
  "InFlightToolCalls",
  "BudgetExhaustedError"
])

/**
 * A run in this process: its state, everything it uses, the delta of its next record, and the errors of its steps.
 *
 * The delta holds what is decided before the record it belongs to. The next record clears it.
 */

import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Semaphore from "effect/Semaphore"
import type { Agent } from "../../Agent.ts"
import type { Call, CallResult } from "../../Call.ts"
import type { Content } from "../../Content.ts"
import type { DialectName } from "../../Dialect.ts"
import type { Hooks } from "../../Hooks.ts"
import type * as InstructionBuilder from "../../InstructionBuilder.ts"
import type {
  AgentConfigInvalid,
  AgentCrashError,
  BudgetExhaustedError,
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
import type { PolicyScope, PolicyShape } from "../../Policy.ts"
import type { PromptPipelineShape, TokenCount } from "../../PromptPipeline.ts"
import type { ProtocolRegistry } from "../../ProtocolRegistry.ts"
import type { ProviderShape } from "../../Provider.ts"
import type { Redactor } from "../../Redaction.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { TaskReport } from "../../RunOptions.ts"
import type { Delta, RunRecord, RunState, Turn } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"
import type * as Telemetry from "../../Telemetry.ts"
import { isSound } from "../base/foreignCode.ts"
import type { JsonObject } from "../base/json.ts"
import type { LiveTree } from "../live/liveTree.ts"
import * as PromptCache from "../prompt/promptCache.ts"
import { State } from "../state/state.ts"
import type { FlushError } from "../store/storeGuard.ts"
import { type IsUsed, usedIds } from "../words/ids.ts"
import type { SharedBudget } from "./sharedBudget.ts"

/** An agent whose instructions need no services any more. */
export type AnyAgent = Agent<unknown, AnySkill<unknown>, never, unknown>

/** An agent whose dialect is decided. */
export type AskedAgent = AnyAgent & { readonly dialect: DialectName }

/** An agent that can be called, in the form of a skill whose `call` reads the input as a text. */
export interface Callable {
  readonly kind: "agent" | "handoff"
  readonly agent: AnyAgent
  readonly skill: AnySkill
}

/** What an agent can call besides skills and protocols, by the names of the calls. */
export type Callables = ReadonlyMap<string, Callable>

/** What a run uses that depends on its agent. */
export interface Member {
  readonly agent: AskedAgent
  /** May its prompt list its skills? It does where its dialect is chosen for its model. */
  readonly isListed: boolean
  readonly model: Model
  readonly provider: ProviderShape
  readonly skills: SkillRegistry["Service"]
  /** The agents it can call, and those it can hand the conversation over to. */
  readonly callables: Callables
}

/** A child run: what it is asked, and by which agent it runs. Undefined: that of its parent. */
export interface Child {
  readonly agent: AnyAgent | undefined
  readonly taskId: string | undefined
  readonly input: ReadonlyArray<Content>
}

/** A model and the provider that serves it. */
export interface Served {
  readonly provider: ProviderShape
  readonly model: Model
}

/** Everything a run uses. It belongs to the process and is never stored. */
export interface Environment extends Member {
  /** Finds what an agent of the team uses. */
  readonly member: (name: string) => Effect.Effect<Member, MemberError>
  /** The maximum of turns of the run, whichever agent takes them. */
  readonly maxSteps: number
  /** The time that the run may take. */
  readonly deadline: Duration.Input | undefined
  /** Finds the provider of a model that a hook chose for one turn. */
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
  /** Owner of the leases that this worker holds. */
  readonly holder: string
  /** Writer of the records: a new id each time a run starts or is resumed. */
  readonly workerId: string
  /** Names of the skills the host allows. Undefined allows all. */
  readonly allowed: ReadonlyArray<string> | undefined
  /** Emit every part of a reply as `stream_part`, text included. */
  readonly parts: boolean
  /** Counters and slots shared by the whole tree of runs. */
  readonly budget: SharedBudget
  /** Publishes the events of the whole tree, and shows it to followers. */
  readonly live: LiveTree
  /** Is the consumer's buffer full? */
  readonly isFull: () => boolean
  /** Publishes at once all events that `body` emits. */
  readonly batch: <A>(body: () => A) => A
  /** Asked before each step. An error stops the run at its last stored record. */
  readonly stop: (() => StopError | ExtensionFailed | MiddlewareTermination | undefined) | undefined
  /** Cancels the root run when it is aborted. */
  readonly signal: AbortSignal | undefined
  /** Asked before a `write` skill is entered, with the head of the root run as it is stored. */
  readonly prove: ((root: RunStore.RunHead) => Effect.Effect<void, AgentCrashError | StoreError>) | undefined
  /** The run of which this one is a task. */
  readonly parent: Run | undefined
  /** Messages that the host sends while the root run is under way. */
  readonly steering: Steering | undefined
  /** Runs a task or an agent as a child of a run. */
  readonly spawn: (parent: Run, call: Call, child: Child) => Effect.Effect<CallResult, ResumeError>
  readonly onTaskComplete: ((task: TaskReport) => Effect.Effect<void>) | undefined
}

/** Messages that wait for the next turn of a run. */
export interface Steering {
  readonly isWaiting: () => boolean
  /** Reads the waiting messages. They stay until `take` is called. */
  readonly look: Effect.Effect<Waiting, MediaError>
}

/** Messages in the queue of a host. `take` removes them. */
export interface Waiting {
  readonly messages: ReadonlyArray<Message>
  readonly take: () => void
}

/** A run under way. `commit.ts` moves its state; `hooks` and refused replies add to `next`. */
export interface Run extends Environment {
  /** Moved in place by `commit.ts` alone. */
  readonly state: State
  /** Goes into the delta of the next record, which clears it. */
  next: Delta
  /** Records that are not stored yet, and the events to publish once they are. */
  records: Array<RunRecord>
  events: Array<RunEvent>
  /** The revision up to which events are published. */
  published: number
  /** Emits the reply under way from its beginning. */
  reply: (() => ReadonlyArray<RunEvent>) | undefined
  /** Why records could not be stored. Nothing more is stored then. */
  failed: FlushError | undefined
  /** Keeps flushes of parallel calls in order. Made with the first parallel calls. */
  lock: Semaphore.Semaphore | undefined
  /** The answer as the agent's output schema decoded it. */
  output: unknown
  /** What vendors keep of this run's prompts, as far as it is known. Replaced by `forecastCache` alone. */
  cache: PromptCache.PromptCache
  /** The options that the last model call was sent without. Replaced by `reportDropped` alone. */
  dropped: string
  /** Makes foreign code interruptible again: the loop itself is not. */
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Did an earlier call of this run have this id? */
  readonly isUsed: IsUsed
}

/** Milliseconds of the clock the run started on. */
export const now = (environment: Pick<Environment, "clock">): number => environment.clock.currentTimeMillisUnsafe()

/** The agent that a run was handed over to, or the one it began with. */
export const agentName = ({ agent, handed }: Pick<RunState, "agent" | "handed">): string => handed?.agent ?? agent

/** The open turn. Dies when no turn is open, which the caller has ruled out. */
export const openTurn = (run: Run): Turn => {
  if (run.state.currentTurn === undefined) throw new Error("no open turn")
  return run.state.currentTurn
}

/** The facts about a run that a policy receives. */
export const policyScope = ({ agent, state }: Run): PolicyScope => ({
  runId: state.runId,
  rootRunId: state.rootRunId,
  agent: agent.name,
  depth: state.depth,
  context: state.context
})

/** A run in this process at a state, with its answer if it has one. */
export const makeRun = (environment: Environment, state: RunState, output: unknown): Run => ({
  ...environment,
  agent: state.taskId === undefined ? environment.agent : asTask(environment.agent),
  state: new State(state),
  next: noDelta,
  records: [],
  events: [],
  published: state.revision,
  reply: undefined,
  failed: undefined,
  lock: undefined,
  output,
  cache: PromptCache.empty,
  dropped: "",
  restore: Effect.interruptible,
  isUsed: usedIds(state.input)
})

/** A delta without changes. */
export const noDelta: Delta = {}

/** Adds to the delta of the next record. Synchronous. */
export const carry = (run: Run, delta: Delta): void => {
  run.next = { ...run.next, ...delta }
}

/** Takes fields back out of the delta of the next record. Synchronous. */
export const drop = (run: Run, field: keyof Delta): void => {
  const { [field]: _, ...rest } = run.next
  run.next = Object.keys(rest).length === 0 ? noDelta : rest
}

/** Merges into the context of the run, now and with the next record. Synchronous. */
export const mergeContext = (run: Run, context: JsonObject): void => {
  carry(run, { context: { ...run.next.context, ...context } })
  run.state.context = { ...run.state.context, ...context }
}

/** Asking a hook, and doing what it asks for. */
export type HookError = ExtensionFailed | MiddlewareTermination | FlushError

/** Asking a model, and reading its reply. */
export type ReplyError = ModelCallError | ModelError | LimitExceeded

/** Storing the media of an input. */
export type MediaError = MediaConflict | LimitExceeded | StoreError

/** Finding an agent of the team, and its model. */
export type MemberError = AgentConfigInvalid | ModelError

/** A task, where the error concerns its whole tree: another owner, a store that fails, a tree that may not continue. */
export type TaskError = FlushError | StopError | RunBusy | RunPaused | InFlightToolCalls | BudgetExhaustedError

/** Does an error concern the whole tree rather than the task? */
export const isTaskError = (error: unknown): error is TaskError => isSound(error) && taskErrors.has(error._tag)

/** The calls of a reply. */
export type CallsError = HookError | TaskError

/** Opening a turn, which stores the media of messages that wait for it. */
export type StartError = HookError | MediaError

/** Building the prompt of a turn. */
export type PrepareError = HookError | PromptError | BudgetExhaustedError

/** Asking the model, and deciding what its reply means. */
export type AskError = HookError | ReplyError | MediaError | BudgetExhaustedError | LoopDetected

/** One step of the loop. */
export type StepError = CallsError | PrepareError | AskError | EmptyReplies

/** The loop, within its deadline, and the loop of the agent that a run is handed over to. */
export type DriveError = StepError | StopError | DeadlineExceeded | RunCancelled | MemberError

/** A run that stopped without an answer. */
export type EndError = RunPaused | RunCancelled | RunFinished | MaxStepsReached | MiddlewareTermination

/** The agent of a task, which answers in words: the output schema describes the answer of the whole run. */
const asTask = (agent: AskedAgent): AskedAgent => {
  if (!agent.typed) return agent
  let task = tasks.get(agent)
  if (task === undefined) {
    tasks.set(agent, (task = { ...agent, output: Schema.String, typed: false, outputJsonSchema: undefined }))
  }
  return task
}

// One per agent, because decoders and grammars are kept by agent.
const tasks = new WeakMap<AskedAgent, AskedAgent>()

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

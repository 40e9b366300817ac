/**
 * A run while it runs: its state, and what it stands on.
 */

import type * as Clock from "effect/Clock"
import type * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import type { Agent } from "../../Agent.ts"
import type { Call, CallResult } from "../../Call.ts"
import type { Content } from "../../Content.ts"
import type { Hooks } from "../../Hooks.ts"
import type * as InstructionBuilder from "../../InstructionBuilder.ts"
import type { KernelError } from "../../KernelError.ts"
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
import type { Delta, RunRecord, RunState, Stop, Turn } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import type { StreamPart } from "../../StreamPart.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"
import type * as Telemetry from "../../Telemetry.ts"
import type { IsUsed } from "../words/callIds.ts"
import { turnLog } from "../state/state.ts"
import type { JsonObject } from "../base/json.ts"
import type { Tree } from "./sharedBudget.ts"

/** Any agent, its instructions already closed over what they need. */
export type AnyAgent = Agent<unknown, AnySkill<unknown>, never>

/** What a run stands on. Process-local, never stored (DR-2). */
export interface Ground {
  readonly agent: AnyAgent
  readonly model: Model
  readonly provider: ProviderShape
  readonly store: RunStore.RunStoreShape
  readonly skills: SkillRegistry["Service"]
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
  /** Who runs: the owner of leases. */
  readonly holder: string
  /** Who writes: another one each time a run is begun or resumed. */
  readonly workerId: string
  /** Names of skills the host allows at all; undefined for every one (BP-65). */
  readonly allowed: ReadonlyArray<string> | undefined
  /** Every part of a reply is told, not only those no block event tells (DR-24). */
  readonly parts: boolean
  /** What the whole tree of runs has used, and who hears of it. */
  readonly tree: Tree
  /** Undefined where nobody listens: then no event is made. */
  readonly tell: ((event: RunEvent) => void) | undefined
  /** Whether the consumer's buffer is full: a moment to let it read. */
  readonly isFull: () => boolean
  /** Tells at once what `body` tells, when it has ended. */
  readonly batch: <A>(body: () => A) => A
  /** Asked before each step: why the run must not go on in this process, if so. */
  readonly stop: (() => KernelError | undefined) | undefined
  /** What is said to the root run while it runs. */
  readonly steering: Steering | undefined
  /** Runs a task as a child of a run and gives its result. */
  readonly spawn: (parent: Run, call: Call, input: ReadonlyArray<Content>) => Effect.Effect<CallResult, KernelError>
  readonly onTaskComplete: ((task: TaskReport) => Effect.Effect<void>) | undefined
}

/** Messages that wait for the next turn of a run. */
export interface Steering {
  readonly isWaiting: () => boolean
  /** What waits. It goes on waiting until it is taken: when it is part of the run. */
  readonly look: Effect.Effect<Waiting, KernelError>
}

/** Messages that somebody said to a run, and how they are taken. */
export interface Waiting {
  readonly messages: ReadonlyArray<Message>
  readonly take: () => void
}

/** What the host is told when a task ends (BP-103). */
export interface TaskReport {
  readonly taskId: string
  /** The task's own words, without what it depends on. */
  readonly input: string
  readonly result: string | null
  readonly error: string | null
  readonly durationMs: number
}

/** A run in this process. */
export interface Run extends Ground {
  state: RunState
  /** Serialises commits when several calls may finish at once. */
  lock: Semaphore.Semaphore | undefined
  /** The settle hook of this phase ran; the next commit records it (DR-8). */
  settled: boolean
  /** What hooks merged into the context since the last commit. */
  changed: JsonObject | undefined
  /** Set by onTurnCompleted: one more turn, though the model is done (DR-10). */
  goesOn: boolean
  /** The answer as the agent's output schema decoded it. */
  output: unknown
  /** The provider's parts of the last reply, kept for its hook only (DR-27). */
  raw: ReadonlyArray<StreamPart>
  /** The stop a hook asked for while other calls were under way: the next commit keeps it. */
  deferred: Stop | undefined
  /** What a refused reply used, or a prompt that is not committed: the commit that stops the run keeps it. */
  unkept?: Delta | undefined
  /** Whether an id is that of an earlier call: no later one is known by it. */
  readonly isUsed: IsUsed
  /** What waits for the next barrier. */
  outbox: Outbox
}

/** Revisions that are not stored yet, the states they lead to, and what is told once they are stored. */
export interface Outbox {
  readonly records: Array<RunRecord>
  readonly states: Array<RunState>
  readonly events: Array<RunEvent>
}

/** The time of the clock the run began on. */
export const now = (run: Ground): number => run.clock.currentTimeMillisUnsafe()

/** What a call is known by over all runs: an id of ours says its turn and run, one that a vendor gave may come again. */
export const keyOf = ({ currentTurn, runId }: RunState, { callId }: Call): string => {
  const turnId = currentTurn?.turnId ?? runId
  return callId.startsWith(`${turnId}.`) ? callId : `${turnId}/${callId}`
}

/** The step events of this moment belong to. */
export const stepOf = (state: RunState): number =>
  state.currentTurn === undefined ? Math.max(0, turnLog(state).length - 1) : state.currentTurn.turn - 1

/** The turn that is open, which every caller of this knows to be there. */
export const openTurn = (run: Run): Turn => {
  if (run.state.currentTurn === undefined) throw new Error("no open turn")
  return run.state.currentTurn
}

/** What a policy is told of the run that asks it. */
export const policyScope = (run: Run): PolicyScope => ({
  runId: run.state.runId,
  rootRunId: run.state.rootRunId,
  agent: run.agent.name,
  depth: run.state.depth,
  context: run.state.context
})

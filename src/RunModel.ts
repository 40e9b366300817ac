/**
 * The data of a run: its state, its turns, questions, and result.
 *
 * Everything here is JSON-safe; skills, layers and fibers are never part of it.
 *
 * @since 0.1.0
 */

import type { Json } from "./kit/json.ts"
import type * as Schemas from "./internal/state/modelSchema.ts"
import type { TypeOf } from "./kit/schemas.ts"
import type { Message } from "./Message.ts"
import type { FinishReason } from "./StreamPart.ts"
import type * as Usage from "./Usage.ts"

export type { Answerers, Caller } from "./Caller.ts"
export type { Answer, GivenAnswer, OpenQuestion, Question } from "./internal/words/question.ts"

// ---------------------------------------------------------------- models

/**
 * The phase of a run: its last stored phase event.
 *
 * @category models
 * @since 0.1.0
 */
export type Phase = TypeOf<typeof Schemas.phase>

/**
 * The cause of a run's end: its host, the model, or the turn limit.
 *
 * @category models
 * @since 0.1.0
 */
export type RunSource = TypeOf<typeof Schemas.runSource>

/**
 * A stored failure: the tag of the error, its message, and its fields if it is a typed error.
 *
 * @category models
 * @since 0.1.0
 */
export interface ErrorInfo extends TypeOf<typeof Schemas.errorInfo> {}

/**
 * A call that was in flight when its run was cancelled. It may have had an effect.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallLeft extends TypeOf<typeof Schemas.callLeft> {}

/**
 * The status of a run by its journal: running or paused at a phase, cancelled, completed, or failed.
 * `RunStore.RunStatus` also shows whether a worker runs it.
 *
 * @category models
 * @since 0.1.0
 */
export type Status = TypeOf<typeof Schemas.status>

/**
 * A prompt as a change to the previous one: keep the first `base` messages and append the new ones. Holds the system
 * text only if it changed.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptDelta extends TypeOf<typeof Schemas.promptDelta> {}

/**
 * A content or message that a repair left out, the schema of a typed answer, or a medium that a request could not hold.
 * `message` is its index in the conversation before the repair.
 *
 * @category models
 * @since 0.1.0
 */
export interface LeftOut extends TypeOf<typeof Schemas.leftOut> {}

/**
 * The repair of a request that the vendor refused: what was left out, and the change of the conversation.
 *
 * @category models
 * @since 0.1.0
 */
export interface Repair extends TypeOf<typeof Schemas.repair> {}

/**
 * Differences between the model call of a turn and the settings of the agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface ModelArgs extends TypeOf<typeof Schemas.modelArgs> {}

/**
 * The meaning of a reply for the run. `corrective` is the message sent to the model next.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome = TypeOf<typeof Schemas.outcome>

/**
 * A change of one call at its review, by a hook or a policy: the call in its new form, or a result that is used without
 * running it.
 *
 * @category models
 * @since 0.1.0
 */
export type CallChange = TypeOf<typeof Schemas.callChange>

/**
 * One prompt, one reply, and its results.
 *
 * @category models
 * @since 0.1.0
 */
export interface Turn extends TypeOf<typeof Schemas.turn> {}

/**
 * The origin of a fork. Records up to that revision are copied; later ones are the fork's own.
 *
 * @category models
 * @since 0.1.0
 */
export interface ForkedFrom extends TypeOf<typeof Schemas.forkedFrom> {}

/**
 * A stop of a run before its own end.
 *
 * @category models
 * @since 0.1.0
 */
export type Stop = TypeOf<typeof Schemas.stop>

/**
 * The state of a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunState extends TypeOf<typeof Schemas.stateFacts> {
  /** The initial messages of the run: history, then the input. */
  readonly input: ReadonlyArray<Message>
  readonly turns: ReadonlyArray<Turn>
  readonly currentTurn: Turn | undefined
  /** The conversation so far: the last prompt, and after a turn also the messages that it added. */
  readonly prompt: ReadonlyArray<Message>
}

/**
 * The result of a completed run. Computed from its state, so a resumed run returns the same result as an undisturbed
 * one.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunResult<out Output = string> {
  readonly runId: string
  /** Only completed runs have a result. */
  readonly status: "completed"
  /** The name of the agent that answered: the one the run was started with, or handed over to. */
  readonly agent: string
  /** The answer, decoded by the agent's output schema. */
  readonly output: Output
  /** The answer as written by the model. */
  readonly text: string
  /** Usage of all turns, tasks, prompts and refused replies, as far as providers reported it. */
  readonly usage: Usage.Usage
  /** Cost in US dollars by the models' prices. A model without a `price` adds nothing; undefined if none has one. */
  readonly costUsd: number | undefined
  readonly turns: number
  /** Null for a turn whose provider reported no usage. */
  readonly perTurnUsage: ReadonlyArray<Usage.Usage | null>
  /** Model calls whose provider reported no usage; `usage` does not include them. */
  readonly unreportedTurns: number
  readonly finishReason: FinishReason
  /** The messages of this run, without the history before it: input, replies, results, steering. */
  readonly messages: ReadonlyArray<Message>
  /** The whole last reply of the model. */
  readonly finalMessage: Message | undefined
  readonly calls: ReadonlyArray<CallMade>
}

/**
 * A call of a completed run.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallMade {
  readonly callId: string
  readonly name: string | null
  readonly input: Json
  readonly isError: boolean
  readonly error?: string
  readonly durationMs: number | undefined
  /** Counts from 1. */
  readonly turn: number
  /** True if the call was in flight when the run stopped, and a resume retried or resolved it. */
  readonly recovered: boolean
}

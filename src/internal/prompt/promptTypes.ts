/**
 * The types of prompts.
 */

import * as Effect from "effect/Effect"
import type { Agent } from "../../Agent.ts"
import type { Generation } from "../../Generation.ts"
import type * as InstructionBuilder from "../../InstructionBuilder.ts"
import type { ProgramError, PromptError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { Middleware } from "../../Middleware.ts"
import type { Model } from "../../Model.ts"
import type { ProviderShape, ToolDefinition } from "../../Provider.ts"
import type { Redactor } from "../../Redaction.ts"
import type { RunState } from "../../RunState.ts"
import type { AnySkill } from "../../Skill.ts"
import type { Expense } from "../../Usage.ts"

/**
 * The input of a prompt pipeline.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptContext {
  readonly agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>
  /** The agent's instructions, evaluated for this turn. */
  readonly instructions: string
  readonly state: RunState
  readonly model: Model
  /** The provider of the run's model. */
  readonly provider: ProviderShape<ProgramError>
  /**
   * Whether the agent can act, by skills, protocols or plans. Decides both the rules in the prompt and the meaning of
   * prose.
   */
  readonly canAct: boolean
  /** Names of the protocols the agent may use. */
  readonly protocols: ReadonlyArray<string>
  /** Native tools, when the dialect is `tools`. */
  readonly tools: ReadonlyArray<ToolDefinition>
  /** The listing of skills in the prompt. Undefined if the model requests it. */
  readonly listing?: InstructionBuilder.Options["listing"]
  /** The JSON Schema of a typed answer, as text. */
  readonly outputSchema: string | undefined
  /** Writes the rules of the dialect. */
  readonly builder: InstructionBuilder.InstructionBuilderShape
  /** Counts the tokens of a text. Without it, tokens are estimated (see `TokenCounter`). */
  readonly counter?: TokenCount | undefined
  /** Removes secrets from messages before they are summarized. */
  readonly redactor?: Redactor | undefined
  /** The middleware around the run's model calls. Also applies to a model that summarizes. */
  readonly middleware?: ReadonlyArray<Middleware> | undefined
  /** In a replay, the recorded parts of this turn's prompt. They replace queries to a memory or a model. */
  readonly recorded?: Recorded | undefined
}

/**
 * The parts of a recorded prompt.
 *
 * @category models
 * @since 0.1.0
 */
export interface Recorded {
  /** The system text. Absent if it is that of the previous turn. */
  readonly system?: string | null
  /** The summary of the removed messages. Its text is empty without one. */
  readonly summary: Summary
}

/**
 * A prompt that is ready to send.
 *
 * @category models
 * @since 0.1.0
 */
export interface Prompt {
  readonly system: string | null
  /** The conversation without the system message. Absent if it is the conversation of the state. */
  readonly messages?: ReadonlyArray<Message> | undefined
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly generation?: Generation | undefined
  /** Indexes into `messages` after which the prefix is stable enough to cache. */
  readonly cacheBreakpoints?: ReadonlyArray<number> | undefined
  /** Usage of the models that helped to build the prompt. It counts as usage of the run. */
  readonly spent?: Expense | undefined
}

/**
 * Adds a text after the rules of the dialect, such as facts for the model. An empty text adds nothing.
 *
 * @category models
 * @since 0.1.0
 */
export type Section<out R = never> = (context: PromptContext) => Effect.Effect<string, PromptError, R>

/**
 * Shortens a conversation that outgrows its window: the agent's `contextWindow`, or else that of the model. The room
 * for the conversation is the window without the agent's `reservedOutputTokens`, the system text and the tools.
 *
 * @category models
 * @since 0.1.0
 */
export interface Compaction<out R = never> {
  /** The share of the room that may be filled before the conversation is shortened. Default: 0.9. */
  readonly trigger?: number | undefined
  /** The share of the room to aim for. Default: 0.5. */
  readonly target?: number | undefined
  /** How many of the newest turns are kept unchanged, if possible. Default: 2. */
  readonly keep?: number | undefined
  /**
   * Summarizes the removed messages, given without the secrets that the run's redactor knows. A failure is logged, and
   * the note in their place then has no summary, as without this option.
   */
  readonly summarize?:
    | ((messages: ReadonlyArray<Message>, context: PromptContext) => Effect.Effect<string | Summary, unknown, R>)
    | undefined
}

/**
 * A summary of messages, and what a model used to write it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Summary {
  readonly text: string
  /** Absent if no model was asked, or its provider reported no usage. */
  readonly spent?: Expense | undefined
}

/**
 * Counts the tokens of a text.
 *
 * @category models
 * @since 0.1.0
 */
export type TokenCount = (text: string) => Effect.Effect<number>

/**
 * The types of prompts.
 */

import * as Effect from "effect/Effect"
import type { Agent } from "../../Agent.ts"
import type { Generation } from "../../Generation.ts"
import type * as InstructionBuilder from "../../InstructionBuilder.ts"
import type { PromptError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { Middleware } from "../../Middleware.ts"
import type { Model } from "../../Model.ts"
import type { ProviderShape, ToolDefinition } from "../../Provider.ts"
import type { Redactor } from "../../Redaction.ts"
import type { RunState } from "../../RunState.ts"
import type { AnySkill } from "../../Skill.ts"
import type { Expense } from "../../Usage.ts"

/**
 * What a prompt is made from.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptContext {
  readonly agent: Agent<unknown, AnySkill<unknown>, unknown>
  /** The agent's instructions, read for this turn (BP-36). */
  readonly instructions: string
  readonly state: RunState
  readonly model: Model
  /** The provider the run asks for that model. */
  readonly provider: ProviderShape
  /** Whether the agent can act (BP-42): one predicate for the rules and the stall. */
  readonly canAct: boolean
  /** Names of the protocols it may speak. */
  readonly protocols: ReadonlyArray<string>
  /** Native tools, when the dialect is `tools`. */
  readonly tools: ReadonlyArray<ToolDefinition>
  /** JSON Schema text of a typed answer. */
  readonly outputSchema: string | undefined
  /** Writes the rules of the dialect. */
  readonly builder: InstructionBuilder.InstructionBuilderShape
  /** Counts the tokens of a text; without one they are estimated (see `TokenCounter`). */
  readonly counter?: TokenCount | undefined
  /** Takes the secrets out of what is shown to whoever sums up (S-7). */
  readonly redactor?: Redactor | undefined
  /** What wraps the model calls of the run. A model that sums up for it is asked through this, too. */
  readonly middleware?: ReadonlyArray<Middleware> | undefined
  /** In a replay: what the prompt of this turn was made of. Nobody is asked again for what it holds. */
  readonly recorded?: Recorded | undefined
}

/**
 * What a recorded prompt tells of what it was made of.
 *
 * @category models
 * @since 0.1.0
 */
export interface Recorded {
  /** The system text; absent where it was that of the turn before. */
  readonly system?: string | null
  /** The summary of the messages that were taken away; an empty text where there is none. */
  readonly summary: Summary
}

/**
 * A prompt, ready to ask.
 *
 * @category models
 * @since 0.1.0
 */
export interface Prompt {
  readonly system: string | null
  /** The conversation, without the system message. Absent: as it stands in the state, which costs nothing. */
  readonly messages?: ReadonlyArray<Message> | undefined
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly generation?: Generation | undefined
  /** Indexes into `messages` after which the prefix is stable enough to cache. */
  readonly cacheBreakpoints?: ReadonlyArray<number> | undefined
  /** What the models that helped to make it used: it counts as used by the run (CP-15). */
  readonly spent?: Expense | undefined
}

/**
 * Adds a text after the rules: what there is to know. An empty text adds nothing.
 *
 * @category models
 * @since 0.1.0
 */
export type Section<out R = never> = (context: PromptContext) => Effect.Effect<string, PromptError, R>

/**
 * What happens to a conversation that outgrows its window: the agent's `contextWindow`, or the model's where the agent
 * has none. The room of the conversation is what the agent's `reservedOutputTokens`, the system text and the tools
 * leave of that.
 *
 * @category models
 * @since 0.1.0
 */
export interface Compaction<out R = never> {
  /** The share of the room that may be filled before anything happens. Default: 0.9. */
  readonly trigger?: number | undefined
  /** The share of the room to come down to. Default: 0.5. */
  readonly target?: number | undefined
  /** How many of the newest turns are left as they are, where that is possible. Default: 2. */
  readonly keep?: number | undefined
  /**
   * Sums up the messages that are taken away, given without the secrets the run's redactor knows. When it fails, that
   * is logged, and the note in their place holds no summary, as without this.
   */
  readonly summarize?:
    | ((messages: ReadonlyArray<Message>, context: PromptContext) => Effect.Effect<string | Summary, unknown, R>)
    | undefined
}

/**
 * A few words about messages, and what a model used to say them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Summary {
  readonly text: string
  /** Absent when nobody was asked, or the provider reported nothing. */
  readonly spent?: Expense | undefined
}

/**
 * Counts the tokens of a text.
 *
 * @category models
 * @since 0.1.0
 */
export type TokenCount = (text: string) => Effect.Effect<number>

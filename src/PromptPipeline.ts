/**
 * From what a run knows to the prompt its model reads (AC-10).
 *
 * `build` is an Effect without hidden state: the same context gives the same
 * prompt. The default puts the system text first (the agent's instructions and
 * the rules of the dialect), then the conversation as it stands. What it builds
 * is what the turn commits.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Agent } from "./Agent.ts"
import type { Generation } from "./Generation.ts"
import * as InstructionBuilder from "./InstructionBuilder.ts"
import type { KernelError } from "./KernelError.ts"
import type { Message } from "./Message.ts"
import type { Model } from "./Model.ts"
import type { ToolDefinition } from "./Provider.ts"
import type { RunState } from "./RunState.ts"
import type { AnySkill } from "./Skill.ts"

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
  /** Whether the agent can act (BP-42): one predicate for the rules and the stall. */
  readonly canAct: boolean
  /** Names of the protocols it may speak. */
  readonly protocols: ReadonlyArray<string>
  /** Native tools, when the dialect is `tools`. */
  readonly tools: ReadonlyArray<ToolDefinition>
  /** JSON Schema text of a typed answer. */
  readonly outputSchema: string | undefined
  /** Writes the rules of the dialect. */
  readonly builder: InstructionBuilder.Builder
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
  readonly messages?: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<ToolDefinition>
  readonly generation?: Generation
  /** Indexes into `messages` after which the prefix is stable enough to cache. */
  readonly cacheBreakpoints?: ReadonlyArray<number>
}

/**
 * @category models
 * @since 0.1.0
 */
export interface PromptPipelineShape {
  readonly build: (context: PromptContext) => Effect.Effect<Prompt, KernelError>
}

/**
 * The system text of a turn: instructions, then the rules (BP-160 to BP-163).
 *
 * A turn whose text is made of the same things as the last one of its agent
 * gets the same text, without making it again.
 *
 * @category combinators
 * @since 0.1.0
 */
export const systemText = (context: PromptContext): string => {
  const { agent, builder, instructions, model, outputSchema, protocols } = context
  const root = context.state.depth === 0
  // Native tools carry their own rules; blocks have to be explained.
  const canAct = context.canAct && agent.dialect === "blocks"
  const last = written.get(agent)
  if (
    last !== undefined &&
    last.base === instructions &&
    last.builder === builder &&
    last.canAct === canAct &&
    last.root === root &&
    last.model === model &&
    last.outputSchema === outputSchema &&
    sameNames(last.protocols, protocols)
  ) {
    return last.text
  }
  const facts = { base: instructions, canAct, protocols, root, model, outputSchema }
  const text = builder.build(facts)
  written.set(agent, { ...facts, builder, text })
  return text
}

const written = new WeakMap<
  PromptContext["agent"],
  InstructionBuilder.Options & { readonly builder: InstructionBuilder.Builder; readonly text: string }
>()

const sameNames = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a === b || (a.length === b.length && a.every((name, index) => name === b[index]))

/**
 * The default: system text, then the conversation.
 *
 * @category constructors
 * @since 0.1.0
 */
export const simple: PromptPipelineShape = {
  build: (context) =>
    Effect.sync(() => {
      const system = systemText(context)
      return { system: system === "" ? null : system, tools: context.tools }
    })
}

/**
 * The pipeline of a run.
 *
 * @category references
 * @since 0.1.0
 */
export const PromptPipeline: Context.Reference<PromptPipelineShape> = Context.Reference<PromptPipelineShape>(
  "kernai/PromptPipeline",
  { defaultValue: () => simple }
)

/**
 * Builds the prompt of a turn from the state of a run.
 *
 * `build` is an Effect without hidden state: the same context gives the same prompt. The default pipeline puts the
 * system text first (the agent's instructions and the rules of the dialect), then the conversation. The prompt it
 * returns is stored with the turn.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as InstructionBuilder from "./InstructionBuilder.ts"
import { type Needs, closeOver } from "./kit/foreignCode.ts"
import type { JsonObject } from "./kit/json.ts"
import { summarize } from "./internal/prompt/sideCall.ts"
import { ofText } from "./internal/prompt/tokenEstimate.ts"
import { breakpoints, compacted, fitted } from "./internal/prompt/window.ts"
import type { LimitExceeded, ModelCallError, PromptError } from "./KernelError.ts"
import { ContextWindowExceeded } from "./KernelError.ts"
import type { Message } from "./Message.ts"
import type { Model } from "./Model.ts"
import type { ProviderShape } from "./Provider.ts"
import type {
  Compaction,
  Prompt,
  PromptContext,
  Recorded,
  Section,
  Summary,
  TokenCount
} from "./internal/prompt/promptTypes.ts"

export type { Compaction, Prompt, PromptContext, Recorded, Section, Summary, TokenCount }

export { ContextWindowExceeded }

/**
 * Builds the prompt of a turn. A failure fails the run at its last record.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptPipelineShape {
  readonly build: (context: PromptContext) => Effect.Effect<Prompt, PromptError>
}

/**
 * Returns the system text of a turn: instructions, then the rules of the dialect.
 *
 * The text is cached while the parts it is made from stay the same.
 *
 * @category rendering
 * @since 0.1.0
 */
export const systemText = (context: PromptContext): string => {
  const { agent, builder, instructions, listing, model, outputSchema, protocols } = context
  const root = context.state.depth === 0
  // Native tools describe themselves; blocks must be explained.
  const canAct = context.canAct && agent.dialect !== "tools"
  const last = written.get(agent)
  if (
    last !== undefined &&
    last.base === instructions &&
    last.builder === builder &&
    last.canAct === canAct &&
    last.root === root &&
    last.model === model &&
    last.outputSchema === outputSchema &&
    isSameListing(last.listing, listing) &&
    sameNames(last.protocols, protocols)
  ) {
    return last.text
  }
  const grammar = agent.grammar ? { grammar: true } : {}
  const facts = { base: instructions, canAct, protocols, root, model, outputSchema, listing, ...grammar }
  const text = builder.build(facts)
  written.set(agent, { ...facts, builder, text })
  return text
}

const written = new WeakMap<
  PromptContext["agent"],
  InstructionBuilder.Options & { readonly builder: InstructionBuilder.InstructionBuilderShape; readonly text: string }
>()

const isSameListing = (a: PromptContext["listing"], b: PromptContext["listing"]): boolean =>
  a === b ||
  (a?._tag === "Whole" && b?._tag === "Whole" && a.text === b.text) ||
  (a?._tag === "Searched" && b?._tag === "Searched" && a.count === b.count)

const sameNames = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a === b || (a.length === b.length && a.every((name, index) => name === b[index]))

// ---------------------------------------------------------------- parts of a pipeline

/**
 * Renders the instructions of a turn from those of the agent.
 *
 * @category models
 * @since 0.1.0
 */
export type Template<out R = never> = (
  template: string,
  context: PromptContext
) => Effect.Effect<string, PromptError, R>

/**
 * The parts of a pipeline.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out R = never> {
  /** Default: `substitute` with the run's context. */
  readonly template?: Template<R> | undefined
  readonly sections?: ReadonlyArray<Section<R>> | undefined
  /** Default: none, and a conversation that outgrows the agent's `contextWindow` fails with `ContextWindowExceeded`. */
  readonly compaction?: Compaction<R> | undefined
  /** Mark where providers may cache the prefix. Default: true. */
  readonly cache?: boolean | undefined
}

/**
 * Counts the tokens of texts. By default, tokens are estimated as four bytes of UTF-8 each. A message adds four tokens
 * and each of its media 1,600. Native tools are always estimated. Fractions are rounded up, and an impossible count is
 * replaced by the estimate.
 *
 * @category references
 * @since 0.1.0
 */
export const TokenCounter: Context.Reference<TokenCount | undefined> = Context.Reference<TokenCount | undefined>(
  "kernai/TokenCounter",
  { defaultValue: () => undefined }
)

export {
  /**
   * Returns the summary that a compacted prompt holds for removed messages. Empty without one.
   *
   * @category getters
   * @since 0.1.0
   */
  summaryIn
} from "./internal/prompt/keptSummary.ts"

/**
 * Estimates the tokens of a text as a quarter of its bytes in UTF-8.
 *
 * @category getters
 * @since 0.1.0
 */
export const estimateTokens: (text: string) => number = ofText

/**
 * Replaces each `{{name}}` by its value, in one pass: inserted text is not searched again, and names without a value
 * stay. A name contains neither spaces nor braces.
 *
 * @category rendering
 * @since 0.1.0
 */
export const substitute = (template: string, values: JsonObject): string =>
  template.includes("{{")
    ? template.replace(/\{\{\s*([^{}\s]+)\s*\}\}/g, (whole, name: string) => {
        const value = Object.hasOwn(values, name) ? values[name] : undefined
        if (value === undefined) return whole
        return typeof value === "string" ? value : JSON.stringify(value)
      })
    : template

/**
 * Lets a model summarize the messages that a `Compaction` removes. Default: the run's own model and provider. Accepts
 * the result of `ModelRegistry.resolve`.
 *
 * The model is asked once per compaction, through the middleware of the run. Its usage counts toward that of the run
 * and its budget. A chat keeps the summary with its history, which stays complete: a later compaction summarizes only
 * the messages since.
 *
 * @category constructors
 * @since 0.1.0
 */
export const summarizer =
  (options?: { readonly provider?: ProviderShape | undefined; readonly model?: Model | undefined }) =>
  (messages: ReadonlyArray<Message>, context: PromptContext): Effect.Effect<Summary, ModelCallError | LimitExceeded> =>
    summarize(options?.provider ?? context.provider, options?.model ?? context.model, messages, context)

// ---------------------------------------------------------------- pipelines

/**
 * The default pipeline: system text, then the conversation.
 *
 * `{{name}}` in the instructions is replaced by the value in the run's context. A prompt that does not fit the agent's
 * `contextWindow` fails before the model is asked.
 *
 * @category constructors
 * @since 0.1.0
 */
export const simple: PromptPipelineShape = {
  build: (context) => {
    const { agent, instructions, state, tools } = context
    const given = substitute(instructions, state.context)
    // Most instructions contain no names, so the context needs no copy.
    const text = systemText(given === instructions ? context : { ...context, instructions: given })
    const system = text === "" ? null : text
    return agent.contextWindow === undefined
      ? Effect.succeed({ system, tools })
      : Effect.as(fitted(context, system), { system, tools })
  }
}

/**
 * The services that the parts of a pipeline need.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<O> =
  | Needs<Part<O, "template">>
  | Needs<Part<Part<O, "sections">, number>>
  | Needs<Part<Part<O, "compaction">, "summarize">>

/** The part at a key, if there is one. */
type Part<O, K extends PropertyKey> = O extends unknown ? (K extends keyof O ? O[K] : never) : never

/**
 * Creates a pipeline from parts: the rendered instructions, the rules, the sections, and a conversation that fits the
 * window.
 *
 * The run continues with the compacted conversation: later turns build on it, so the prefix of the prompt stays the
 * same until the window is full again.
 *
 * @category constructors
 * @since 0.1.0
 */
export function make(): Effect.Effect<PromptPipelineShape>
export function make<const O extends Options<unknown>>(
  options: O
): Effect.Effect<PromptPipelineShape, never, Services<O>>
export function make(options: Options<unknown> = {}): Effect.Effect<PromptPipelineShape, never, unknown> {
  return Effect.map(Effect.context<unknown>(), (services) => {
    const provide = closeOver(services)
    return { build: (context) => provide(assemble(options, context)) }
  })
}

/**
 * Provides a pipeline of these parts to every run under the layer.
 *
 * @example
 * PromptPipeline.layer({ sections: [SkillPack.section, Memory.section()], compaction: {} })
 *
 * @category layers
 * @since 0.1.0
 */
export function layer(): Layer.Layer<never>
export function layer<const O extends Options<unknown>>(options: O): Layer.Layer<never, never, Services<O>>
export function layer(options: Options<unknown> = {}): Layer.Layer<never, never, unknown> {
  return Layer.effect(PromptPipeline, make(options))
}

const assemble = Effect.fnUntraced(function* <R>(
  options: Options<R>,
  context: PromptContext
): Effect.fn.Return<Prompt, PromptError, R> {
  const { cache = true, compaction, sections = [], template } = options
  const { instructions, state, tools } = context
  const rendered =
    template === undefined ? substitute(instructions, state.context) : yield* template(instructions, context)
  const texts = [systemText({ ...context, instructions: rendered })]
  for (const section of sections) texts.push(yield* section(context))
  const text = texts.filter((text) => text !== "").join("\n\n")
  const system = text === "" ? null : text
  const conversation =
    compaction === undefined ? yield* fitted(context, system) : yield* compacted(context, system, compaction)
  return {
    system,
    tools,
    ...conversation,
    ...(cache ? { cacheBreakpoints: breakpoints(conversation?.messages ?? state.prompt) } : {})
  }
})

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

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
import * as Layer from "effect/Layer"
import type * as InstructionBuilder from "./InstructionBuilder.ts"
import { closeOver, type Needs } from "./internal/base/effects.ts"
import type { JsonObject } from "./internal/base/json.ts"
import { summarize } from "./internal/prompt/summary.ts"
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
 * Makes the prompt of a turn. A failure fails the run where it stands.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptPipelineShape {
  readonly build: (context: PromptContext) => Effect.Effect<Prompt, PromptError>
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
  const grammar = agent.grammar ? { grammar: true } : {}
  const facts = { base: instructions, canAct, protocols, root, model, outputSchema, ...grammar }
  const text = builder.build(facts)
  written.set(agent, { ...facts, builder, text })
  return text
}

const written = new WeakMap<
  PromptContext["agent"],
  InstructionBuilder.Options & { readonly builder: InstructionBuilder.InstructionBuilderShape; readonly text: string }
>()

const sameNames = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a === b || (a.length === b.length && a.every((name, index) => name === b[index]))

// ---------------------------------------------------------------- parts of a pipeline

/**
 * Makes the instructions of a turn from what the agent says.
 *
 * @category models
 * @since 0.1.0
 */
export type Template<out R = never> = (
  template: string,
  context: PromptContext
) => Effect.Effect<string, PromptError, R>

/**
 * What a pipeline is made of.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<out R = never> {
  /** Default: `substitute` with the run's context. */
  readonly template?: Template<R> | undefined
  readonly sections?: ReadonlyArray<Section<R>> | undefined
  /** Without it a conversation that outgrows the agent's `contextWindow` fails with `ContextWindowExceeded`. */
  readonly compaction?: Compaction<R> | undefined
  /** Mark where providers may cache the prefix. Default: yes. */
  readonly cache?: boolean | undefined
}

/**
 * Counts the tokens of texts. Without one, a token is four bytes of UTF-8 (AC-9). A message counts four tokens more,
 * each medium in it 1,600; native tools are always estimated. Fractions are rounded up, and where a counter gives a
 * number no text can have, the estimate holds.
 *
 * @category references
 * @since 0.1.0
 */
export const TokenCounter: Context.Reference<TokenCount | undefined> = Context.Reference<TokenCount | undefined>(
  "kernai/TokenCounter",
  { defaultValue: () => undefined }
)

/**
 * Puts values in the place of `{{name}}`, all at once: what is put in is not
 * looked at again, and a name that has no value stays (AC-10). A name is whatever has neither spaces nor braces.
 *
 * @category combinators
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
 * Lets a model sum up what a `Compaction` takes away. Default: the run's own model, of the run's own provider. What
 * `ModelRegistry.resolve` gives can be passed as it is.
 *
 * It is asked once per compaction, through the middleware of the run. What it uses counts as used by the run, also
 * against its budget (CP-15). A chat keeps the summary with its history, which stays whole: for a later message, only
 * what was said since is summed up.
 *
 * @category combinators
 * @since 0.1.0
 */
export const summarizer =
  (options?: { readonly provider?: ProviderShape | undefined; readonly model?: Model | undefined }) =>
  (messages: ReadonlyArray<Message>, context: PromptContext): Effect.Effect<Summary, ModelCallError | LimitExceeded> =>
    summarize(options?.provider ?? context.provider, options?.model ?? context.model, messages, context)

// ---------------------------------------------------------------- pipelines

/**
 * The default: system text, then the conversation as it stands.
 *
 * `{{name}}` in the instructions takes its value from the run's context. A
 * prompt that does not fit the agent's `contextWindow` fails before any call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const simple: PromptPipelineShape = {
  build: (context) => {
    const { agent, instructions, state, tools } = context
    const given = substitute(instructions, state.context)
    // Most instructions have nothing to put in: their context is not copied at every turn.
    const text = systemText(given === instructions ? context : { ...context, instructions: given })
    const system = text === "" ? null : text
    return agent.contextWindow === undefined
      ? Effect.succeed({ system, tools })
      : Effect.as(fitted(context, system), { system, tools })
  }
}

/**
 * What the parts of a pipeline need.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<O> =
  | Needs<Part<O, "template">>
  | Needs<Part<Part<O, "sections">, number>>
  | Needs<Part<Part<O, "compaction">, "summarize">>

/** What stands at a key, where there is one. */
type Part<O, K extends PropertyKey> = O extends unknown ? (K extends keyof O ? O[K] : never) : never

/**
 * A pipeline of parts: the rendered instructions, the rules, the sections, and
 * a conversation that fits (AC-9, AC-10).
 *
 * What is compacted is what the run goes on with: the next turn builds on it, and the
 * prefix of the prompt stays the same until the window is full again.
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
 * A pipeline of parts, for every run under it.
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

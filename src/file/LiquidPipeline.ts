/**
 * Renders instructions as Liquid templates.
 *
 * Only the agent's instructions are a template. The run's context and the user's text are values and are never parsed.
 * A template reads no files, includes no other templates, sees own properties only, and is limited in size, time and
 * memory. `liquidjs` is loaded when first needed: install it beside kernai.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { messageOf } from "../kit/foreignCode.ts"
import { TemplateError } from "../KernelError.ts"
import * as Messages from "../Message.ts"
import * as PromptPipeline from "../PromptPipeline.ts"

export { TemplateError }

/**
 * Options of a template.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Whether a variable without a value fails the turn. Default: false; the variable is left out. */
  readonly strictVariables?: boolean | undefined
  /** Maximum size of a template in characters. Default: 100,000. */
  readonly parseLimit?: number | undefined
  /** Maximum rendering time in milliseconds. Default: 100. */
  readonly renderLimit?: number | undefined
  /** Maximum output and intermediate data, in characters and items. Default: 1,000,000. */
  readonly memoryLimit?: number | undefined
}

/**
 * Renders instructions, for `PromptPipeline.Options`.
 *
 * A template sees the fields of the run's context by name, as in every pipeline. Unless the context has these names,
 * `agent` holds the agent's name and description, and `input` the first 10,000 characters of the user's message.
 *
 * @category constructors
 * @since 0.1.0
 */
export const template = (options: Options = {}): Effect.Effect<PromptPipeline.Template, TemplateError> =>
  Effect.map(engine(options), (render) => (text, { agent, state }) => {
    const message = state.input.at(-1)
    const { description = null, name } = agent
    return render(text, {
      agent: { name, description },
      input: message === undefined ? "" : Messages.text(message).slice(0, 10_000),
      ...state.context
    })
  })

/**
 * Provides a pipeline whose instructions are Liquid templates.
 *
 * @category layers
 * @since 0.1.0
 */
export function layer<const O extends Options & Omit<PromptPipeline.Options<unknown>, "template">>(
  options: O
): Layer.Layer<never, TemplateError, PromptPipeline.Services<O>>
export function layer(
  options: Options & Omit<PromptPipeline.Options<unknown>, "template">
): Layer.Layer<never, TemplateError, unknown> {
  return Layer.unwrap(Effect.map(template(options), (template) => PromptPipeline.layer({ ...options, template })))
}

type Render = (text: string, values: { readonly [name: string]: unknown }) => Effect.Effect<string, TemplateError>

/** Parsed templates by their text. An agent usually has one, which stays the same each turn. */
const maxParsed = 16

const engine = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Render, TemplateError> {
  const { Liquid, LiquidError } = yield* Effect.tryPromise({
    try: () => import("liquidjs"),
    catch: () => new TemplateError({ line: 0, detail: "the package 'liquidjs' is not installed" })
  })
  const { memoryLimit = 1_000_000 } = options
  const liquid = new Liquid({
    ownPropertyOnly: true,
    strictFilters: true,
    strictVariables: options.strictVariables ?? false,
    parseLimit: options.parseLimit ?? 100_000,
    renderLimit: options.renderLimit ?? 100,
    memoryLimit,
    // Templates are only looked up here, so nothing can be included.
    templates: {}
  })
  for (const name of ["include", "render", "layout", "block"]) {
    liquid.registerTag(name, {
      parse: () => {
        throw new Error(`the tag '${name}' is not allowed`)
      },
      render: () => ""
    })
  }
  const parsed = new Map<string, ReturnType<typeof liquid.parse>>()
  const parse = (text: string) => {
    const known = parsed.get(text)
    if (known !== undefined) return known
    const templates = liquid.parse(text)
    const [oldest] = parsed.keys()
    if (parsed.size >= maxParsed && oldest !== undefined) parsed.delete(oldest)
    parsed.set(text, templates)
    return templates
  }
  const failure = (error: unknown) => {
    const isLiquid = LiquidError.is(error)
    const [line = 0] = isLiquid ? error.token.getPosition() : []
    const cause: unknown = isLiquid ? (error.originalError ?? error) : error
    return new TemplateError({ line, detail: messageOf(cause) })
  }
  const render: (...given: Parameters<Render>) => string = (text, values) => {
    const made = String(liquid.renderSync(parse(text), { ...values }))
    // Filters count what they create; the output and captured text are counted here.
    if (made.length > memoryLimit) throw new Error("memory alloc limit exceeded")
    return made
  }
  return (text, values) => Effect.try({ try: () => render(text, values), catch: failure })
})

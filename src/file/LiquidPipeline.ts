/**
 * Instructions as Liquid templates (AC-11).
 *
 * Only what the agent says is a template; the run's context and the user's text
 * are values and are never parsed. A template reads no file, includes no other,
 * sees own properties only, and is held to limits of size, time and memory.
 * `liquidjs` is loaded when it is first needed: install it beside kernai.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TemplateError } from "../KernelError.ts"
import * as Messages from "../Message.ts"
import * as PromptPipeline from "../PromptPipeline.ts"

export { TemplateError }

/**
 * What a template may do.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Whether a variable without a value fails the turn instead of being left out. Default: no. */
  readonly strictVariables?: boolean | undefined
  /** Characters of a template. Default: 100,000. */
  readonly parseLimit?: number | undefined
  /** Milliseconds a template may take. Default: 100. */
  readonly renderLimit?: number | undefined
  /** What a template may make, counted in characters and items. Default: 1,000,000. */
  readonly memoryLimit?: number | undefined
}

/**
 * Renders instructions, for `PromptPipeline.Options`.
 *
 * A template sees the fields of the run's context by their names, as in every
 * pipeline. Where the context has none of these names, `agent` is the agent's
 * name and description, and `input` the text of the user's message, of which it
 * has the first 10,000 characters.
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
 * A pipeline whose instructions are Liquid templates.
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

/** Templates that were parsed, by their text: an agent has one, that says the same each turn. */
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
    // Looked up here and nowhere else: there is nothing to include.
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
    return new TemplateError({ line, detail: cause instanceof Error ? cause.message : String(cause) })
  }
  const render: (...given: Parameters<Render>) => string = (text, values) => {
    const made = String(liquid.renderSync(parse(text), { ...values }))
    // What filters make is counted where it is made; what is put out or captured is not.
    if (made.length > memoryLimit) throw new Error("memory alloc limit exceeded")
    return made
  }
  return (text, values) => Effect.try({ try: () => render(text, values), catch: failure })
})

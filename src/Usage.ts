/**
 * Tokens a run used, as numbers that add up (CP-14).
 *
 * Input counts every prompt token, cached ones among them; output counts every
 * generated token, reasoning among them. So `cached <= input` and
 * `reasoning <= output` hold for every usage and every sum of them. A provider
 * that reports nothing gives `undefined`, never zero.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Reducer_ from "effect/Reducer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Fault from "./internal/base/fault.ts"
import { UsageInvalid } from "./KernelError.ts"
import type { Price } from "./Model.ts"
import type { ReportedUsage } from "./StreamPart.ts"

export { UsageInvalid }

/**
 * Tokens of one or more model calls.
 *
 * @category models
 * @since 0.1.0
 */
export interface Usage {
  readonly inputTokens: number
  /** Of the input, read from a cache. */
  readonly cachedTokens: number
  readonly outputTokens: number
  /** Of the output, spent on thinking. */
  readonly reasoningTokens: number
}

/**
 * What calls of models used, and what that cost.
 *
 * @category models
 * @since 0.1.0
 */
export interface Expense {
  readonly usage: Usage
  /** US dollars, by the prices of the models; a model without one adds nothing. */
  readonly costUsd: number
}

/**
 * The wire form: snake_case, missing counts are zero.
 *
 * @category models
 * @since 0.1.0
 */
export interface Encoded {
  readonly input_tokens?: number
  readonly cached_tokens?: number
  readonly output_tokens?: number
  readonly reasoning_tokens?: number
}

/**
 * The codec. Counts are natural numbers, cached and reasoning tokens a part of theirs; else it fails with the field's path.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Usage: Schema.Codec<Usage, Encoded> = (() => {
  const Count = Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)))
  return Schema.Struct({ inputTokens: Count, cachedTokens: Count, outputTokens: Count, reasoningTokens: Count })
    .check(
      Schema.makeFilter((usage) => {
        if (usage.cachedTokens > usage.inputTokens) return { path: ["cached_tokens"], issue: "more than input_tokens" }
        if (usage.reasoningTokens > usage.outputTokens) {
          return { path: ["reasoning_tokens"], issue: "more than output_tokens" }
        }
      })
    )
    .pipe(
      Schema.encodeKeys({
        inputTokens: "input_tokens",
        cachedTokens: "cached_tokens",
        outputTokens: "output_tokens",
        reasoningTokens: "reasoning_tokens"
      })
    )
})()

/**
 * No tokens: neutral in every sum.
 *
 * @category constructors
 * @since 0.1.0
 */
export const zero: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 }

/**
 * A usage from the counts you have; the others are zero.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (counts: Partial<Usage>): Usage => ({ ...zero, ...counts })

/**
 * What a provider reported, in effect/ai's shape; `undefined` when it reported nothing.
 *
 * A total that is missing is the sum of its parts. Parts larger than their total are cut to it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromAi = ({ inputTokens: input, outputTokens: output }: ReportedUsage): Usage | undefined =>
  consistent(
    input.total ?? sum(input.uncached, input.cacheRead, input.cacheWrite),
    input.cacheRead,
    output.total ?? sum(output.text, output.reasoning),
    output.reasoning
  )

/**
 * What a provider reported as prompt and completion tokens; `undefined` when it reported neither.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromPromptCompletion = (counts: {
  readonly prompt_tokens?: number | null | undefined
  readonly completion_tokens?: number | null | undefined
}): Usage | undefined => consistent(counts.prompt_tokens, undefined, counts.completion_tokens, undefined)

/**
 * Input and output together; cached and reasoning tokens are in them already.
 *
 * @category combinators
 * @since 0.1.0
 */
export const total = (usage: Usage): number => usage.inputTokens + usage.outputTokens

/**
 * The sum, field by field.
 *
 * @category combinators
 * @since 0.1.0
 */
export const add = (self: Usage, that: Usage): Usage => ({
  inputTokens: self.inputTokens + that.inputTokens,
  cachedTokens: self.cachedTokens + that.cachedTokens,
  outputTokens: self.outputTokens + that.outputTokens,
  reasoningTokens: self.reasoningTokens + that.reasoningTokens
})

/**
 * `add` and `zero`, for folds.
 *
 * @category combinators
 * @since 0.1.0
 */
export const Reducer: Reducer_.Reducer<Usage> = Reducer_.make(add, zero)

/**
 * What the tokens cost in US dollars. Cached input without a price of its own costs what other input costs.
 *
 * @category combinators
 * @since 0.1.0
 */
export const cost = (usage: Usage, price: Price): number => {
  const cached = usage.cachedTokens * (price.cachedPerMillion ?? price.inputPerMillion)
  const fresh = (usage.inputTokens - usage.cachedTokens) * price.inputPerMillion
  return (cached + fresh + usage.outputTokens * price.outputPerMillion) / 1_000_000
}

/**
 * Returns what a call costs in US dollars: 0 without usage or price, and for a result that is not finite.
 *
 * @category combinators
 * @since 0.2.0
 */
export const costOf = (usage: Usage | null | undefined, price: Price | undefined): number => {
  const found = usage && price ? cost(usage, price) : 0
  // A journal cannot hold anything but finite numbers.
  return found < Infinity ? found : 0
}

/**
 * Reads the wire form.
 *
 * @category codecs
 * @since 0.1.0
 */
export const decode = (input: unknown): Result.Result<Usage, UsageInvalid> =>
  Result.mapError(Schema.decodeUnknownResult(Usage)(input), (error) => new UsageInvalid(Fault.ofSchema(error)))

/**
 * Writes the wire form. The total is derived and never stored.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encode = (usage: Usage): Required<Encoded> => ({
  input_tokens: usage.inputTokens,
  cached_tokens: usage.cachedTokens,
  output_tokens: usage.outputTokens,
  reasoning_tokens: usage.reasoningTokens
})

// Some write `null` where they report nothing, whatever their types say.
type Reported = number | null | undefined

const sum = (...counts: ReadonlyArray<Reported>): number | undefined =>
  counts.every((count) => count == null)
    ? undefined
    : counts.reduce<number>((total, count) => total + natural(count), 0)

const consistent = (input: Reported, cached: Reported, output: Reported, reasoning: Reported): Usage | undefined => {
  if ([input, cached, output, reasoning].every((count) => count == null)) return undefined
  const inputTokens = natural(input)
  const outputTokens = natural(output)
  return {
    inputTokens,
    cachedTokens: Math.min(natural(cached), inputTokens),
    outputTokens,
    reasoningTokens: Math.min(natural(reasoning), outputTokens)
  }
}

// A provider's number may be anything; a count is a natural number.
const natural = (count: Reported): number => (count != null && Number.isSafeInteger(count) && count > 0 ? count : 0)

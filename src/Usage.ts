/**
 * Tokens used by a run, as numbers that add up.
 *
 * Input counts all prompt tokens, including those read from a cache or written to it; output counts all generated
 * tokens, including reasoning. So `cached <= input` and `reasoning <= output` hold for every usage and every sum. The
 * usage of a call whose provider reports nothing is `undefined`, never zero.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Reducer_ from "effect/Reducer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Fault from "./kit/fault.ts"
import { lazily, type TypeOf } from "./kit/schemas.ts"
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
export interface Usage extends TypeOf<typeof counts> {}

const counts = /* @__PURE__ */ lazily(() => {
  const Count = Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0)))
  return Schema.Struct({
    inputTokens: Count,
    /** Input tokens that were read from a cache. */
    cachedTokens: Count,
    /** Input tokens that were written to a cache. Absent if none were written or reported. */
    cacheWriteTokens: Schema.optionalKey(Schema.Natural),
    outputTokens: Count,
    /** Output tokens that were spent on thinking. */
    reasoningTokens: Count,
    /**
     * A reply was cut before its vendor reported its usage: the output is estimated from what arrived, and the input
     * too unless it was reported first. A sum is partial as soon as one of its usages is.
     */
    partial: Schema.optionalKey(Schema.Literal(true))
  })
})

/**
 * The usage of model calls, and its cost.
 *
 * @category models
 * @since 0.1.0
 */
export interface Expense {
  readonly usage: Usage
  /** US dollars, by the prices of the models. Absent where no price is known. */
  readonly costUsd?: number
}

/**
 * The wire form, in snake_case. Missing counts are zero.
 *
 * @category models
 * @since 0.1.0
 */
export interface Encoded {
  readonly input_tokens?: number
  readonly cached_tokens?: number
  readonly cache_write_tokens?: number
  readonly output_tokens?: number
  readonly reasoning_tokens?: number
  readonly partial?: true
}

/**
 * The codec of usages. Counts are natural numbers, with `cached <= input` and `reasoning <= output`; otherwise it fails
 * with the path of the field.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Usage: Schema.Codec<Usage, Encoded> = /* @__PURE__ */ (() =>
  counts()
    .check(
      Schema.makeFilter((usage) => {
        if (usage.cachedTokens + (usage.cacheWriteTokens ?? 0) > usage.inputTokens)
          return { path: ["cached_tokens"], issue: "more than input_tokens" }
        if (usage.reasoningTokens > usage.outputTokens) {
          return { path: ["reasoning_tokens"], issue: "more than output_tokens" }
        }
      })
    )
    .pipe(
      Schema.encodeKeys({
        inputTokens: "input_tokens",
        cachedTokens: "cached_tokens",
        cacheWriteTokens: "cache_write_tokens",
        outputTokens: "output_tokens",
        reasoningTokens: "reasoning_tokens"
      })
    ))()

/**
 * No tokens.
 *
 * @category constructors
 * @since 0.1.0
 */
export const zero: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 }

/**
 * Creates a usage. Missing counts are zero.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (counts: Partial<Usage>): Usage => ({ ...zero, ...counts })

/**
 * Creates an expense. An unknown cost is left out.
 *
 * @category constructors
 * @since 0.1.0
 */
export const expense = (usage: Usage, costUsd: number | undefined): Expense =>
  costUsd === undefined ? { usage } : { usage, costUsd }

/**
 * Converts the counts a provider reported in the form of effect/ai. Undefined if it reported none.
 *
 * A missing total is the sum of its parts. Parts larger than their total are reduced to it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromAi = ({ inputTokens: input, outputTokens: output }: ReportedUsage): Usage | undefined =>
  consistent(
    input.total ?? sum(input.uncached, input.cacheRead, input.cacheWrite),
    input.cacheRead,
    output.total ?? sum(output.text, output.reasoning),
    output.reasoning,
    input.cacheWrite
  )

/**
 * Converts reported counts of prompt and completion tokens. Undefined if neither was reported.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromPromptCompletion = (counts: {
  readonly prompt_tokens?: number | null | undefined
  readonly completion_tokens?: number | null | undefined
}): Usage | undefined => consistent(counts.prompt_tokens, undefined, counts.completion_tokens, undefined)

/**
 * Returns the sum of input and output tokens, which include cached and reasoning tokens.
 *
 * @category getters
 * @since 0.1.0
 */
export const total = (usage: Usage): number => usage.inputTokens + usage.outputTokens

/**
 * Adds up two usages.
 *
 * @category combinators
 * @since 0.1.0
 */
export const add: {
  (that: Usage): (self: Usage) => Usage
  (self: Usage, that: Usage): Usage
} = /* @__PURE__ */ dual(2, (self: Usage, that: Usage): Usage => ({
  inputTokens: self.inputTokens + that.inputTokens,
  cachedTokens: self.cachedTokens + that.cachedTokens,
  ...writes((self.cacheWriteTokens ?? 0) + (that.cacheWriteTokens ?? 0)),
  outputTokens: self.outputTokens + that.outputTokens,
  reasoningTokens: self.reasoningTokens + that.reasoningTokens,
  ...(self.partial === true || that.partial === true ? { partial: true } : {})
}))

/**
 * `add` and `zero` as a reducer.
 *
 * @category instances
 * @since 0.1.0
 */
export const Reducer: Reducer_.Reducer<Usage> = /* @__PURE__ */ Reducer_.make(add, zero)

/**
 * Returns the cost of one call in US dollars. Input read from or written to a cache without its own price costs the same
 * as other input.
 *
 * @category getters
 * @since 0.1.0
 */
export const cost = (usage: Usage, price: Price): number => {
  const { longPrompt } = price
  const rates = longPrompt !== undefined && usage.inputTokens > longPrompt.above ? longPrompt : price
  const cached = usage.cachedTokens * (rates.cachedPerMillion ?? rates.inputPerMillion)
  const writes = usage.cacheWriteTokens ?? 0
  const written = writes * (rates.cacheWritePerMillion ?? rates.inputPerMillion)
  const fresh = (usage.inputTokens - usage.cachedTokens - writes) * rates.inputPerMillion
  return (cached + written + fresh + usage.outputTokens * rates.outputPerMillion) / 1_000_000
}

/**
 * Returns the cost of a call in US dollars. Undefined without usage or price, and if the cost is not finite.
 *
 * @category getters
 * @since 0.1.0
 */
export const costOf = (usage: Usage | null | undefined, price: Price | undefined): number | undefined => {
  const found = usage && price ? cost(usage, price) : undefined
  // A journal holds finite numbers only.
  return found !== undefined && found < Infinity ? found : undefined
}

/**
 * Returns the cost in US dollars of the calls that a vendor ran itself. Undefined if the price of none is known.
 *
 * @category getters
 * @since 0.1.0
 */
export const hostedCost = (
  calls: ReadonlyArray<{ readonly name: string }>,
  price: Price | undefined
): number | undefined =>
  calls.reduce<number | undefined>((sum, { name }) => addCost(sum, price?.hosted?.[name]), undefined)

/**
 * Adds up two costs. An unknown one adds nothing.
 *
 * @category combinators
 * @since 0.1.0
 */
export const addCost = (self: number | undefined, that: number | undefined): number | undefined =>
  self === undefined ? that : that === undefined ? self : self + that

/**
 * Decodes the wire form.
 *
 * @category codecs
 * @since 0.1.0
 */
export const decode = (input: unknown): Result.Result<Usage, UsageInvalid> =>
  Result.mapError(Schema.decodeUnknownResult(Usage)(input), (error) => new UsageInvalid(Fault.ofSchema(error)))

/**
 * Encodes the wire form. The total is derived and not stored.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encode = (usage: Usage): Required<Omit<Encoded, "cache_write_tokens" | "partial">> & Encoded => ({
  input_tokens: usage.inputTokens,
  cached_tokens: usage.cachedTokens,
  ...(usage.cacheWriteTokens === undefined ? {} : { cache_write_tokens: usage.cacheWriteTokens }),
  output_tokens: usage.outputTokens,
  reasoning_tokens: usage.reasoningTokens,
  ...(usage.partial === true ? { partial: true } : {})
})

// Some providers send `null` for counts they do not report, whatever their types say.
type Reported = number | null | undefined

const sum = (...counts: ReadonlyArray<Reported>): number | undefined =>
  counts.every((count) => count == null)
    ? undefined
    : counts.reduce<number>((total, count) => total + natural(count), 0)

const writes = (count: number): { readonly cacheWriteTokens?: number } =>
  count === 0 ? {} : { cacheWriteTokens: count }

const consistent = (
  input: Reported,
  cached: Reported,
  output: Reported,
  reasoning: Reported,
  written?: Reported
): Usage | undefined => {
  if ([input, cached, output, reasoning].every((count) => count == null)) return undefined
  const inputTokens = natural(input)
  const outputTokens = natural(output)
  const cachedTokens = Math.min(natural(cached), inputTokens)
  return {
    inputTokens,
    cachedTokens,
    ...writes(Math.min(natural(written), inputTokens - cachedTokens)),
    outputTokens,
    reasoningTokens: Math.min(natural(reasoning), outputTokens)
  }
}

// Returns a reported count, or 0 for anything but a natural number.
const natural = (count: Reported): number => (count != null && Number.isSafeInteger(count) && count > 0 ? count : 0)

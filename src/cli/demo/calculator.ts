/**
 * Sums a model wants done: `(2 / 4) * 100`.
 *
 * Whole numbers stay whole, and their quotient is rounded down; one decimal
 * makes the result a decimal, written with its point.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** What was written is no sum. */
export class NoSum extends Schema.TaggedError<NoSum>()("NoSum", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

/** Works a sum out and writes the result. */
export const calculate = (sum: string): Effect.Effect<string, NoSum> =>
  Effect.try({
    try: () => written(new Reader(sum).whole()),
    catch: (error) => (error instanceof NoSum ? error : new NoSum({ reason: "this cannot be worked out" }))
  })

interface Value {
  readonly number: number
  readonly isWhole: boolean
}

const written = ({ isWhole, number }: Value): string => {
  if (!Number.isFinite(number)) throw new NoSum({ reason: "the result is no number" })
  return !isWhole && Number.isInteger(number) ? `${number}.0` : String(number)
}

const maxLength = 500

/** Reads a sum from left to right: products bind closer than sums. */
class Reader {
  readonly #tokens: ReadonlyArray<string>
  #at = 0

  constructor(sum: string) {
    if (sum.length > maxLength) throw new NoSum({ reason: `a sum has at most ${maxLength} characters` })
    const tokens = sum.match(/\d+(?:\.\d+)?|[-+*/()]|[^\s]/g) ?? []
    const strange = tokens.find((token) => !/^(?:\d|[-+*/()]$)/.test(token))
    if (strange !== undefined) {
      throw new NoSum({ reason: `'${strange}' is not part of a sum; use numbers, + - * / and parentheses` })
    }
    this.#tokens = tokens
  }

  whole(): Value {
    const value = this.#sum()
    if (this.#at < this.#tokens.length) throw new NoSum({ reason: `'${this.#tokens[this.#at]}' was not expected` })
    return value
  }

  #sum(): Value {
    let value = this.#product()
    for (let sign = this.#take("+", "-"); sign !== undefined; sign = this.#take("+", "-")) {
      const other = this.#product()
      value = {
        number: sign === "+" ? value.number + other.number : value.number - other.number,
        isWhole: value.isWhole && other.isWhole
      }
    }
    return value
  }

  #product(): Value {
    let value = this.#factor()
    for (let sign = this.#take("*", "/"); sign !== undefined; sign = this.#take("*", "/")) {
      const other = this.#factor()
      const isWhole = value.isWhole && other.isWhole
      value = {
        number: sign === "*" ? value.number * other.number : divide(value.number, other.number, isWhole),
        isWhole
      }
    }
    return value
  }

  #factor(): Value {
    if (this.#take("-") !== undefined) {
      const { isWhole, number } = this.#factor()
      return { number: -number, isWhole }
    }
    if (this.#take("(") !== undefined) {
      const value = this.#sum()
      if (this.#take(")") === undefined) throw new NoSum({ reason: "a ')' is missing" })
      return value
    }
    const token = this.#tokens[this.#at++]
    if (token === undefined || !/^\d/.test(token)) throw new NoSum({ reason: "a number is missing" })
    return { number: Number(token), isWhole: !token.includes(".") }
  }

  #take(...signs: ReadonlyArray<string>): string | undefined {
    const token = this.#tokens[this.#at]
    if (token === undefined || !signs.includes(token)) return undefined
    this.#at++
    return token
  }
}

const divide = (dividend: number, divisor: number, isWhole: boolean): number => {
  if (divisor === 0) throw new NoSum({ reason: "nothing can be divided by 0" })
  return isWhole ? Math.floor(dividend / divisor) : dividend / divisor
}

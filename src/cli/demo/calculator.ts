/**
 * Arithmetic for models: `(2 / 4) * 100`.
 *
 * The quotient of whole numbers is rounded down, as in the recorded
 * conversations; one decimal makes the result a decimal, with its point.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The text is not an expression that can be evaluated. */
export class InvalidExpression extends Schema.TaggedError<InvalidExpression>()("InvalidExpression", {
  reason: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

/** Evaluates an expression of at most 500 characters. */
export const calculate = (text: string): Effect.Effect<string, InvalidExpression> =>
  Effect.gen(function* () {
    if (!/^[\d.\s+\-*/()]{1,500}$/.test(text)) {
      return yield* new InvalidExpression({ reason: "an expression has numbers, + - * / and parentheses" })
    }
    const tokens = text.match(/\d+(?:\.\d+)?|\S/g) ?? []
    const result = sum(tokens)
    if (result === undefined || tokens.length > 0 || !Number.isFinite(result.number)) {
      return yield* new InvalidExpression({ reason: "the expression has no value" })
    }
    return result.isWhole || !Number.isInteger(result.number) ? String(result.number) : `${result.number}.0`
  })

interface Value {
  readonly number: number
  readonly isWhole: boolean
}

// Each of these takes its tokens off the front of the list; undefined stands for an expression that is broken.

const sum = (tokens: Array<string>): Value | undefined => {
  let left = product(tokens)
  while (tokens[0] === "+" || tokens[0] === "-") {
    left = apply(tokens.shift() === "+" ? (a, b) => a + b : (a, b) => a - b, left, product(tokens))
  }
  return left
}

const product = (tokens: Array<string>): Value | undefined => {
  let left = factor(tokens)
  while (tokens[0] === "*" || tokens[0] === "/") {
    left = apply(tokens.shift() === "*" ? (a, b) => a * b : divide, left, factor(tokens))
  }
  return left
}

const factor = (tokens: Array<string>): Value | undefined => {
  const token = tokens.shift() ?? ""
  if (token === "-") return apply((a, b) => a - b, { number: 0, isWhole: true }, factor(tokens))
  if (/^\d/.test(token)) return { number: Number(token), isWhole: !token.includes(".") }
  const inner = token === "(" ? sum(tokens) : undefined
  return tokens.shift() === ")" ? inner : undefined
}

type Operation = (left: number, right: number, isWhole: boolean) => number

const divide: Operation = (left, right, isWhole) => (isWhole ? Math.floor(left / right) : left / right)

const apply = (operation: Operation, left: Value | undefined, right: Value | undefined): Value | undefined => {
  if (left === undefined || right === undefined) return undefined
  const isWhole = left.isWhole && right.isWhole
  return { number: operation(left.number, right.number, isWhole), isWhole }
}

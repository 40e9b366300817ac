/**
 * Arithmetic for models: `(2 / 4) * 100`. As in the recorded conversations, the quotient of whole numbers is rounded down,
 * and one decimal makes the result a decimal.
 */

/** Evaluates an expression of at most 500 characters. Returns undefined if it has no value. */
export const calculate = (text: string): string | undefined => {
  if (!/^[\d.\s+\-*/()]{1,500}$/.test(text)) return undefined
  const tokens = text.match(/\d+(?:\.\d+)?|\S/g) ?? []
  const result = sum(tokens)
  if (result === undefined || tokens.length > 0 || !Number.isFinite(result.number)) return undefined
  return result.isWhole || !Number.isInteger(result.number) ? String(result.number) : `${result.number}.0`
}

interface Value {
  readonly number: number
  readonly isWhole: boolean
}

type Operation = (left: number, right: number, isWhole: boolean) => number

const operations: { readonly [sign: string]: Operation } = {
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  "/": (left, right, isWhole) => (isWhole ? Math.floor(left / right) : left / right)
}

const apply = (sign: string, left: Value | undefined, right: Value | undefined): Value | undefined => {
  const operation = operations[sign]
  if (operation === undefined || left === undefined || right === undefined) return undefined
  const isWhole = left.isWhole && right.isWhole
  return { number: operation(left.number, right.number, isWhole), isWhole }
}

// Parsers remove their tokens from the front of the list. Undefined means an invalid expression.

type Parser = (tokens: Array<string>) => Value | undefined

const chain =
  (signs: string, operand: Parser): Parser =>
  (tokens) => {
    let value = operand(tokens)
    while (tokens[0] !== undefined && signs.includes(tokens[0])) {
      value = apply(tokens.shift() ?? "", value, operand(tokens))
    }
    return value
  }

const factor: Parser = (tokens) => {
  const token = tokens.shift() ?? ""
  if (token === "-") return apply("-", { number: 0, isWhole: true }, factor(tokens))
  if (/^\d/.test(token)) return { number: Number(token), isWhole: !token.includes(".") }
  const inner = token === "(" ? sum(tokens) : undefined
  return tokens.shift() === ")" ? inner : undefined
}

const sum: Parser = chain("+-", chain("*/", factor))

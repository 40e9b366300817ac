/**
 * Productions of the numbers between two bounds, digit by digit.
 *
 * Bounded numbers are written without exponent, and with at most nine digits more after the point than their bound.
 */

import { chars, choice, empty, never, type Node, optional, repeat, sequence, text } from "./productions.ts"

/** The bounds of a number in a JSON Schema. */
export interface Bounds {
  readonly minimum?: number | undefined
  readonly maximum?: number | undefined
  readonly exclusiveMinimum?: number | undefined
  readonly exclusiveMaximum?: number | undefined
}

const digit = chars([0x30, 0x39])
const between = (from: number, to: number): Node =>
  from > to ? never : from === to ? text(String(from)) : chars([0x30 + from, 0x30 + to])
const digits = (min: number, max: number): Node => repeat(digit, min, max)

// ---------------------------------------------------------------- whole numbers

/** Returns the integers within the bounds that a double holds exactly. */
export const integers = (bounds: Bounds): Node => {
  const low = Math.max(Math.ceil(bounds.minimum ?? -Infinity), above(bounds.exclusiveMinimum), -Number.MAX_SAFE_INTEGER)
  const high = Math.min(Math.floor(bounds.maximum ?? Infinity), below(bounds.exclusiveMaximum), Number.MAX_SAFE_INTEGER)
  return choice(
    high < 0 || high < low ? never : magnitudes(Math.max(low, 0), high),
    low >= 0 || high < low ? never : sequence(text("-"), magnitudes(Math.max(-high, 1), -low))
  )
}

const above = (bound: number | undefined) => (bound === undefined ? -Infinity : Math.floor(bound) + 1)
const below = (bound: number | undefined) => (bound === undefined ? Infinity : Math.ceil(bound) - 1)

/** Unsigned integers from `low` to `high`, with one alternative per length. */
const magnitudes = (low: number, high: number): Node => {
  if (low > high) return never
  const [a, b] = [String(low), String(high)]
  const parts: Array<Node> = []
  for (let length = a.length; length <= b.length; length++) {
    const from = length === a.length ? a : `1${"0".repeat(length - 1)}`
    const to = length === b.length ? b : "9".repeat(length)
    parts.push(sameLength(from, to))
  }
  return choice(...parts)
}

/** Digits from one text to another of the same length. */
const sameLength = (low: string, high: string): Node => {
  if (low === high) return low === "" ? empty : text(low)
  const [a, b] = [Number(low[0]), Number(high[0])]
  const [restLow, restHigh] = [low.slice(1), high.slice(1)]
  if (a === b) return sequence(text(String(a)), sameLength(restLow, restHigh))
  const isWholeLow = /^0*$/.test(restLow)
  const isWholeHigh = /^9*$/.test(restHigh)
  return choice(
    isWholeLow ? never : sequence(text(String(a)), sameLength(restLow, "9".repeat(restLow.length))),
    sequence(between(isWholeLow ? a : a + 1, isWholeHigh ? b : b - 1), digits(restLow.length, restLow.length)),
    isWholeHigh ? never : sequence(text(String(b)), sameLength("0".repeat(restHigh.length), restHigh))
  )
}

// ---------------------------------------------------------------- all numbers

/** Returns the numbers within the bounds. */
export const numbers = (bounds: Bounds): Node => {
  const low = tighter(bounds.minimum, bounds.exclusiveMinimum, 1)
  const high = tighter(bounds.maximum, bounds.exclusiveMaximum, -1)
  // Such bounds cannot be written without exponent, so the schema decides.
  if ((low?.value ?? -Infinity) >= largest || (high?.value ?? Infinity) <= -largest) return anyNumber
  if (low === undefined && high === undefined) return anyNumber
  return choice(
    high !== undefined && (high.value < 0 || (high.value === 0 && high.exclusive))
      ? never
      : decimals(low === undefined || low.value < 0 ? zero : low, high),
    low !== undefined && low.value >= 0
      ? never
      : sequence(
          text("-"),
          decimals(
            high === undefined || high.value > 0 ? zero : negated(high),
            low === undefined ? undefined : negated(low)
          )
        )
  )
}

interface Bound {
  readonly value: number
  readonly exclusive: boolean
}

const zero: Bound = { value: 0, exclusive: false }

const negated = ({ exclusive, value }: Bound): Bound => ({ value: -value, exclusive })

const tighter = (inclusive: number | undefined, exclusive: number | undefined, sign: 1 | -1): Bound | undefined => {
  if (exclusive !== undefined && (inclusive === undefined || sign * exclusive >= sign * inclusive)) {
    return { value: exclusive, exclusive: true }
  }
  return inclusive === undefined ? undefined : { value: inclusive, exclusive: false }
}

const whole = choice(text("0"), sequence(chars([0x31, 0x39]), digits(0, 14)))
const anyNumber: Node = sequence(
  optional(text("-")),
  whole,
  optional(sequence(text("."), digits(1, 15))),
  optional(sequence(chars([0x45, 0x45], [0x65, 0x65]), optional(chars([0x2b, 0x2b], [0x2d, 0x2d])), digits(1, 2)))
)

/** Unsigned decimals between two bounds that are not negative. */
const decimals = (low: Bound, high: Bound | undefined): Node => {
  const [from, fromRest, noFrom] = split(low, 1)
  const [to, toRest, noTo] = high === undefined ? [largest, "", false] : split(high, -1)
  if (from > to) return never
  const more = fraction(to === largest ? from : to)
  const point = text(".")
  if (from === to) {
    return sequence(
      text(String(from)),
      choice(
        fromRest === "" && !noFrom && !(noTo && toRest === "") ? empty : never,
        sequence(point, within(fromRest, noFrom, toRest, noTo, more))
      )
    )
  }
  return choice(
    sequence(
      text(String(from)),
      choice(
        fromRest === "" && !noFrom ? empty : never,
        sequence(point, first(atLeast(fromRest, noFrom, fraction(from))))
      )
    ),
    from + 1 > to - 1
      ? never
      : sequence(magnitudes(from + 1, to - 1), optional(sequence(point, digits(1, Math.min(maxFraction, more))))),
    sequence(
      text(String(to)),
      choice(toRest !== "" || !noTo ? empty : never, sequence(point, first(atMost(toRest, noTo, more))))
    )
  )
}

const largest = 999_999_999_999_999

/**
 * Returns the maximum number of digits after the point. With more digits than a double holds, a number could be rounded
 * onto an excluded bound.
 */
const fraction = (whole: number): number => Math.max(1, whole === 0 ? 15 : 15 - String(whole).length)

const maxFraction = 9

/**
 * Splits a bound into the digits before and after its point, and whether it is excluded. Values beyond the largest
 * possible one are reduced to it. A long fraction of an excluded bound is rounded inwards.
 */
const split = (
  { exclusive, value }: Bound,
  inwards: 1 | -1
): readonly [whole: number, rest: string, exclusive: boolean] => {
  if (value >= largest) return [largest, "", false]
  const shown = String(value)
  // Very small numbers are printed with an exponent.
  const rest = trimmed(shown.includes("e") ? value.toFixed(20).slice(2) : (shown.split(".")[1] ?? ""))
  const whole = Math.floor(value)
  const most = Math.min(maxFraction, fraction(whole))
  if (!exclusive || rest.length <= most) return [whole, rest, exclusive]
  const short = Number(rest.slice(0, most)) + (inwards === 1 ? 1 : 0)
  return short === 10 ** most ? [whole + 1, "", false] : [whole, trimmed(String(short).padStart(most, "0")), false]
}

/**
 * Digits after a point that amount to at least `0.bound`, or none if the bound is empty. At most `most` digits, not
 * counting those of the bound itself.
 */
const atLeast = (bound: string, exclusive: boolean, most: number): Node => {
  if (bound === "") return exclusive ? notZero(Math.min(maxFraction, most)) : upTo(most)
  const next = Number(bound[0])
  return choice(
    sequence(between(next + 1, 9), upTo(most - 1)),
    sequence(text(String(next)), atLeast(bound.slice(1), exclusive, most - 1))
  )
}

/** At most `count` digits, one of them not zero. */
const notZero = (count: number): Node =>
  count < 1 ? never : choice(sequence(between(1, 9), upTo(count - 1)), sequence(text("0"), notZero(count - 1)))

const upTo = (count: number): Node => digits(0, Math.max(0, Math.min(maxFraction, count)))

/**
 * Digits after a point that amount to at most `0.bound`. At most `most` digits, not counting those of the bound itself.
 */
const atMost = (bound: string, exclusive: boolean, most: number): Node => {
  if (bound === "") return exclusive ? never : repeat(text("0"), 0, Math.max(0, most))
  const next = Number(bound[0])
  return choice(
    empty,
    sequence(between(0, next - 1), upTo(most - 1)),
    sequence(text(String(next)), atMost(bound.slice(1), exclusive, most - 1))
  )
}

const within = (low: string, noLow: boolean, high: string, noHigh: boolean, most: number): Node => {
  const length = Math.max(low.length, high.length)
  const [a, b] = [low.padEnd(length, "0"), high.padEnd(length, "0")]
  let same = 0
  while (same < length && a[same] === b[same]) same++
  if (same === length) {
    return noLow || noHigh
      ? never
      : sequence(text(a), repeat(text("0"), length === 0 ? 1 : 0, Math.max(0, most - length)))
  }
  const [from, to] = [Number(a[same]), Number(b[same])]
  if (from > to) return never
  const left = most - same - 1
  return sequence(
    text(a.slice(0, same)),
    choice(
      sequence(text(String(from)), atLeast(trimmed(a.slice(same + 1)), noLow, left)),
      sequence(between(from + 1, to - 1), upTo(left)),
      sequence(text(String(to)), atMost(trimmed(b.slice(same + 1)), noHigh, left))
    )
  )
}

const trimmed = (rest: string) => rest.replace(/0+$/, "")

/** Removes the empty text, since a point is followed by digits. */
const first = (node: Node): Node => {
  switch (node.kind) {
    case "choice":
      return choice(...node.items.filter((item) => item !== empty).map(first))
    case "repeat":
      return node.min > 0 ? node : repeat(node.item, 1, node.max)
    default:
      return node
  }
}

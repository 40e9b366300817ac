/**
 * Parses JSON text that is still streaming in, for display.
 *
 * Nothing is repaired. Incomplete values are left out, except for an incomplete string. Each character is scanned once,
 * and a value is built only when enough text has arrived since the last one, so the total cost is a small multiple of
 * the length of the text.
 */

import type { Json } from "../../kit/json.ts"
import { isHighSurrogate } from "../../kit/text.ts"

/** A parser of JSON text that is still streaming in. */
export class PartialJson {
  #text = ""
  /** The end of the longest prefix that becomes valid JSON once its open brackets are closed. */
  #safe = 0
  #at = 0
  #emitted = 0
  #last: string | undefined
  readonly #open: Array<"}" | "]"> = []
  #string: "key" | "value" | undefined
  #literal = false
  #wantsKey = false
  #isBroken = false

  /** Appends text. Returns the value so far, when it has grown enough to be worth emitting. */
  push(text: string): Json | undefined {
    if (this.#isBroken || text === "") return undefined
    this.#scan(text)
    this.#text += text
    // The longer the text, the less often it is emitted.
    if (this.#text.length - this.#emitted < this.#emitted / 32) return undefined
    return this.#value()
  }

  /** Returns the final value, unless it was emitted already. */
  end(): Json | undefined {
    return this.#isBroken ? undefined : this.#value()
  }

  #value(): Json | undefined {
    const whole = this.#whole()
    if (whole === undefined || whole === this.#last) return undefined
    this.#emitted = this.#text.length
    try {
      const value: Json = JSON.parse(whole)
      this.#last = whole
      return value
    } catch {
      // The text is not JSON, and later text cannot change that.
      this.#isBroken = true
      return undefined
    }
  }

  #whole(): string | undefined {
    const closing = this.#open.toReversed().join("")
    if (this.#string === "value") return `${this.#text.slice(0, beforeEscape(this.#text))}"${closing}`
    return this.#safe === 0 ? undefined : this.#text.slice(0, this.#safe) + closing
  }

  // Only the new text is scanned, since indexing into the whole would flatten it each time.
  #scan(text: string): void {
    const before = this.#text.length
    for (; this.#at < before + text.length; this.#at++) {
      const char = text[this.#at - before]
      if (this.#string !== undefined) {
        if (char === "\\") this.#at++
        else if (char === '"') this.#endString()
        continue
      }
      switch (char) {
        case '"':
          this.#string = this.#wantsKey ? "key" : "value"
          break
        case "{":
        case "[":
          this.#open.push(char === "{" ? "}" : "]")
          this.#wantsKey = char === "{"
          this.#safe = this.#at + 1
          break
        case "}":
        case "]":
          this.#endLiteral()
          if (this.#open.pop() !== char) this.#isBroken = true
          this.#wantsKey = false
          this.#safe = this.#at + 1
          break
        case ",":
          this.#endLiteral()
          this.#wantsKey = this.#open.at(-1) === "}"
          break
        case ":":
          this.#wantsKey = false
          break
        case " ":
        case "\n":
        case "\r":
        case "\t":
          this.#endLiteral()
          break
        default:
          // Prose is not a JSON literal.
          if (!this.#literal && !"-0123456789tfn".includes(char ?? "")) this.#isBroken = true
          this.#literal = true
      }
      if (this.#isBroken) return
    }
  }

  #endString(): void {
    if (this.#string === "value") this.#safe = this.#at + 1
    this.#string = undefined
  }

  #endLiteral(): void {
    if (this.#literal) this.#safe = this.#at
    this.#literal = false
  }
}

/** Returns the end of a text that was cut inside a string, before an incomplete escape or half a surrogate pair. */
const beforeEscape = (text: string): number => {
  const tail = text.slice(-6)
  const start = tail.lastIndexOf("\\")
  const at = text.length - tail.length + start
  if (start === -1 || !isEscape(text, at)) return beforePair(text, text.length)
  const escape = tail.slice(start)
  const isWhole = escape[1] === "u" ? escape.length === 6 : escape.length > 1
  return beforePair(text, isWhole ? text.length : at)
}

/** Returns the end of a text before half a surrogate pair, literal or escaped. */
const beforePair = (text: string, end: number): number => {
  if (isHighSurrogate(text.charCodeAt(end - 1))) return end - 1
  return /^\\u[dD][89abAB]/.test(text.slice(Math.max(0, end - 6), end)) && isEscape(text, end - 6) ? end - 6 : end
}

/** Returns whether the backslash at an index starts an escape: in a run of backslashes, pairs escape each other. */
const isEscape = (text: string, at: number): boolean => {
  let slashes = 0
  while (text[at - slashes] === "\\") slashes++
  return slashes % 2 === 1
}

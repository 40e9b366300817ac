/**
 * A native call whose parameters come in pieces.
 */

import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import * as Bounds from "../../internal/base/bounds.ts"
import * as Snapshot from "../../internal/base/snapshot.ts"
import { isDeeper } from "../../internal/base/json.ts"
import { parse } from "./readFields.ts"

/** One call of a reply. It is open until its vendor ends it, or another begins in its place. */
export class NativeCall {
  readonly id: string
  /** What the vendor calls it. */
  readonly given: string | undefined
  name: string | undefined
  isOpen = true
  /** Its parameters, as far as they came. */
  text = ""
  #braces = new Braces()
  /** Its parameters as they were read last; text where they are whole and no JSON, which they stay. */
  #value: unknown

  constructor(id: string, given: string | undefined) {
    this.id = id
    this.given = given
  }

  /** Whether the parameters are a whole object, or a list: what follows belongs to another. */
  get isWhole(): boolean {
    return this.#braces.areClosed
  }

  /** Whether they are an empty object: where more follows, no more than a beginning, which some gateways write. */
  get hasNone(): boolean {
    return isNone(this.text)
  }

  /** What it is called with; some vendors say null where there is nothing. */
  get params(): unknown {
    return this.text.trim() === "" ? {} : (this.#read(this.text) ?? {})
  }

  push(fragment: string): void {
    if (this.hasNone && fragment.trim() !== "") {
      this.text = ""
      this.#braces = new Braces()
    }
    this.text += fragment
    this.#braces.push(fragment)
    if (typeof this.#value !== "string") this.#value = undefined
  }

  /** Whether its parameters are these, as text, however it is spelled, or as a JSON value. */
  has(params: unknown): boolean {
    const told = typeof params === "string" || isDeeper(params, Bounds.jsonDepth) ? params : textOf(params)
    if (typeof told !== "string" || told === this.text) return told === this.text
    // A value told again may be spelled in another way; neither a piece of one nor what goes on is read.
    if (!this.isWhole || typeof this.#value === "string" || !told.trimEnd().endsWith("}")) return false
    return Equal.equals(this.#read(told), (this.#value ??= this.#read(this.text)))
  }

  // Text that is not JSON, or nests too deeply for it, stays text.
  #read(text: string): unknown {
    const value = parse(text)
    return value === undefined || isDeeper(value, Bounds.jsonDepth) ? text : value
  }
}

// It is asked before every fragment: a long text is none without a look at it.
const isNone = (params: string): boolean => params.length < 16 && /^\s*\{\s*\}\s*$/.test(params)

/** The braces of an object that comes in pieces, or the brackets of a list; each character is looked at once. */
class Braces {
  #depth = 0
  #hasBegun = false
  #isText = false
  #isEscaped = false

  get areClosed(): boolean {
    return this.#hasBegun && this.#depth === 0
  }

  push(piece: string): void {
    for (let at = 0; at < piece.length; at++) {
      const character = piece[at]
      if (this.#isEscaped) this.#isEscaped = false
      else if (character === "\\") this.#isEscaped = true
      else if (character === '"') this.#isText = !this.#isText
      else if (this.#isText) continue
      else if (character === "}" || character === "]") this.#depth--
      else if (character === "{" || character === "[") {
        this.#depth++
        this.#hasBegun = true
      }
    }
  }
}

/** Arguments as text. JavaScript would write a number too large for a double as null: as a whole they are no JSON then. */
export const textOf = (value: unknown): string =>
  value === undefined || Result.isSuccess(Snapshot.take(value)) ? (JSON.stringify(value) ?? "") : "out of range"

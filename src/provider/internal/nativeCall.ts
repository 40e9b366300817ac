/**
 * A native call whose parameters arrive in pieces.
 */

import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import * as Bounds from "../../kit/bounds.ts"
import * as Snapshot from "../../kit/snapshot.ts"
import { isDeeper } from "../../kit/json.ts"
import { parse } from "./readFields.ts"

/** One call of a reply. It is open until its vendor ends it or another call replaces it. */
export class NativeCall {
  readonly id: string
  /** The vendor's id of the call. */
  readonly given: string | undefined
  name: string | undefined
  isOpen = true
  /** Its parameters so far. */
  text = ""
  #braces = new Braces()
  /** The last parsed parameters, or the text itself if it is complete and not JSON. */
  #value: unknown

  constructor(id: string, given: string | undefined) {
    this.id = id
    this.given = given
  }

  /** Whether the parameters are a whole object or list, so that further text belongs to another call. */
  get isWhole(): boolean {
    return this.#braces.areClosed
  }

  /**
   * Whether the parameters are an empty object. If more follows, the object was the placeholder that some gateways send
   * first.
   */
  get hasNone(): boolean {
    return isNone(this.text)
  }

  /** The input of the call. Some vendors write null for no input. */
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

  /** Returns true if its parameters equal these, as text in any spelling or as a JSON value. */
  has(params: unknown): boolean {
    const told = typeof params === "string" || isDeeper(params, Bounds.jsonDepth) ? params : textOf(params)
    if (typeof told !== "string" || told === this.text) return told === this.text
    // A repeated value may be spelled differently. Only whole values are compared.
    if (!this.isWhole || typeof this.#value === "string" || !told.trimEnd().endsWith("}")) return false
    return Equal.equals(this.#read(told), (this.#value ??= this.#read(this.text)))
  }

  // Text that is not JSON, or nests too deeply, stays text.
  #read(text: string): unknown {
    const value = parse(text)
    return value === undefined || isDeeper(value, Bounds.jsonDepth) ? text : value
  }
}

// This is checked before every fragment, so a long text is ruled out without parsing it.
const isNone = (params: string): boolean => params.length < 16 && /^\s*\{\s*\}\s*$/.test(params)

/** Counts the braces or brackets of a value that arrives in pieces, reading each character once. */
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

/**
 * Encodes arguments as JSON text. A number beyond a double would become null, so such arguments become text that is not
 * JSON.
 */
export const textOf = (value: unknown): string =>
  value === undefined || Result.isSuccess(Snapshot.take(value)) ? (JSON.stringify(value) ?? "") : "out of range"

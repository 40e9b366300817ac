/**
 * The names of tools and calls as a vendor accepts them.
 *
 * A name that fits is kept. Any other becomes its readable start and a hash of the whole, the same in every request. A
 * name that is taken already gets another hash, so no two names of a request become one.
 */

import type { VendorRules } from "../../kit/vendorRules.ts"
import { hash } from "./messageParts.ts"

/** The names of one request. */
export class WireNames {
  readonly #rules: VendorRules
  /** Names that stand for themselves. */
  readonly #taken: Set<string>
  readonly #known = new Map<string, string>()

  /** `kept` are the names of the request that fit: those of its tools, and those of earlier calls. */
  constructor(rules: VendorRules, kept: Iterable<string>) {
    this.#rules = rules
    this.#taken = new Set(kept)
  }

  /** Returns the name to send. */
  of(name: string): string {
    if (this.#rules.name.test(name)) return name
    const known = this.#known.get(name)
    if (known !== undefined) return known
    let fitted = fit(name, "")
    for (let times = 2; this.#taken.has(fitted); times++) fitted = fit(name, `#${times}`)
    this.#taken.add(fitted)
    this.#known.set(name, fitted)
    return fitted
  }
}

/** Returns a name of letters, digits, `_` and `-` that begins with a letter or `_`, for any name. */
const fit = (name: string, salt: string): string => {
  const readable = name.slice(0, 40).replace(/[^A-Za-z0-9_-]/g, "_")
  return `${/^[A-Za-z_]/.test(readable) ? "" : "tool_"}${readable}_${hash(name + salt)}`
}

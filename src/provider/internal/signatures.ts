/** Collects signatures of thoughts, which arrive in pieces and are sent back to the vendor with the next request. */

import type { Reply } from "./replyParts.ts"

/** Collects the signature of each step of a reply, and reports it when the step ends. */
export class Signatures {
  readonly #name: string
  readonly #reply: Reply
  readonly #pieces = new Map<string, string>()

  /** `name` is the provider's, under which the signature is stored. */
  constructor(name: string, reply: Reply) {
    this.#name = name
    this.#reply = reply
  }

  add(key: string, piece: string | undefined): void {
    if (piece === undefined || piece === "") return
    this.#pieces.set(key, (this.#pieces.get(key) ?? "") + piece)
    this.#reply.keep(piece.length)
  }

  end(key: string): void {
    const signature = this.#pieces.get(key)
    this.#pieces.delete(key)
    if (signature !== undefined) this.#reply.endThinking({ [this.#name]: { signature } })
  }
}

/** Splits a reply into its blocks, with the place of each in the text. */

import { BlockFold, type Part } from "../../kit/blockFold.ts"

/** A part of the reply as written. */
export interface Piece {
  readonly text: string
  /** The index of its block. Absent for text outside blocks. */
  readonly block?: number
}

/** A reply that was read. */
export interface Read {
  /** The limit that the reply exceeds. The rest of it is not read. */
  readonly failure: string | undefined
  readonly pieces: ReadonlyArray<Piece>
  readonly blocks: ReadonlyArray<{
    readonly type: string
    readonly name: string | null
    readonly content: string
    readonly flag: string
  }>
}

/** Reads a reply like the kernel. A part ends where the text read so far ends, which gives its place. */
export const readReply = (reply: string): Read => {
  const fold = new BlockFold({ replyLength: Infinity }, ({ limit, value }) => `${limit} over ${value}`)
  const blocks: Array<Read["blocks"][number]> = []
  const pieces: Array<Piece> = []
  let from = 0
  const cut = (to: number, block?: number) => {
    if (to > from) pieces.push({ text: reply.slice(from, to), ...(block === undefined ? {} : { block }) })
    from = Math.max(from, to)
  }
  const take = (parts: ReadonlyArray<Part>, at: number) => {
    for (const part of parts) {
      if (part.type === "block_start") cut(reply.lastIndexOf("<", at - 1))
      if (part.type === "block_complete" || part.type === "block_unclosed") {
        const isClosed = part.type === "block_complete"
        const block = isClosed ? part.block : { type: part.blockType, name: part.name, content: part.content }
        cut(at, blocks.length)
        blocks.push({ ...block, flag: isClosed ? "" : "unclosed" })
      }
    }
  }
  for (let at = 0; at < reply.length; at++) take(fold.push(reply.charAt(at)), at + 1)
  take(fold.flush(), reply.length)
  cut(reply.length)
  return { pieces, blocks, failure: fold.failure }
}

/**
 * The fold behind `BlockParser`: consumes text in pieces and produces parts.
 *
 * It searches only for the next `<`. Outside a block, an opening tag may start there; inside, the closing tag or a
 * nested opening tag. Only the start of such a tag or half a surrogate pair is held back.
 */

import * as Bounds from "./bounds.ts"
import { OpeningTag, REFUSED, UNDECIDED } from "./openingTag.ts"
import { isHighSurrogate, isSpace, ownSlice, Pieces } from "./text.ts"

/**
 * A block: type, name and content. Without a name attribute, `name` is null; an empty name stays empty.
 *
 * @category models
 * @since 0.1.0
 */
export interface Block {
  readonly type: string
  readonly name: string | null
  readonly content: string
}

/**
 * The output of a parser, in the order of the text.
 *
 * The content of a `block_complete` is the concatenation of the `block_content` parts before it. `block_unclosed` is
 * the block in which a truncated reply ended; never act on it.
 *
 * @category models
 * @since 0.1.0
 */
export type Part =
  | { readonly type: "text_chunk"; readonly text: string }
  | { readonly type: "block_start"; readonly blockType: string; readonly name: string | null }
  | { readonly type: "block_content"; readonly text: string }
  | { readonly type: "block_complete"; readonly block: Block }
  | {
      readonly type: "block_unclosed"
      readonly blockType: string
      readonly name: string | null
      readonly content: string
    }

// Called without a method lookup: engines represent strings in several ways, and a call site that has seen more than
// four of them looks methods up slowly.
const { charCodeAt, indexOf, slice, startsWith } = String.prototype

const OUTSIDE = 0
const TAG = 1
const INSIDE = 2

/** A limit that a text exceeded. */
export interface Excess {
  readonly limit: string
  readonly value: number
}

/** The state of one text being parsed. The public methods are those of `BlockParser`. */
export class BlockFold<out Failure> {
  failure: Failure | undefined = undefined
  /** The length of the unread rest of the last piece, once the text has the largest number of blocks. */
  unread: number | undefined = undefined

  private readonly replyLength: number
  private readonly blockDepth: number
  private readonly tag: OpeningTag
  private readonly content = new Pieces()
  private place: typeof OUTSIDE | typeof TAG | typeof INSIDE = OUTSIDE
  /** Text read but not yet emitted: part of a tag, the start of a closing tag, or half a surrogate pair. */
  private held = ""
  private size = 0
  private depth = 0
  private blockType = ""
  private name: string | null = null
  private closing = ""
  private readonly blocks: number
  private count = 0

  private readonly failureOf: (excess: Excess) => Failure

  /** `failureOf` makes the failure, so that a page can read replies without the errors of the kernel. */
  constructor(
    bounds: {
      readonly replyLength: number
      readonly tagLength?: number
      readonly blockDepth?: number
      readonly blocks?: number
    },
    failureOf: (excess: Excess) => Failure
  ) {
    this.failureOf = failureOf
    this.blocks = bounds.blocks ?? Infinity
    this.replyLength = bounds.replyLength
    this.blockDepth = bounds.blockDepth ?? Bounds.blockDepth
    this.tag = new OpeningTag(bounds.tagLength ?? Bounds.tagLength)
  }

  get state(): "text" | "tag_open" | "block_content" {
    return this.place === OUTSIDE ? "text" : this.place === TAG ? "tag_open" : "block_content"
  }

  /** Accepts a piece of plain text while nothing is held back. Returns false for a piece that needs parsing. */
  takePlain(chunk: string): boolean {
    const size = chunk.length
    if (
      size === 0 ||
      this.held !== "" ||
      indexOf.call(chunk, "<", 0) >= 0 ||
      isHighSurrogate(charCodeAt.call(chunk, size - 1)) ||
      this.size + size > this.replyLength ||
      this.failure !== undefined ||
      this.unread !== undefined
    ) {
      return false
    }
    this.size += size
    if (this.place !== OUTSIDE) this.content.add(chunk, size)
    return true
  }

  /** The type of the part that plain text becomes at this point. */
  get plain(): "text_chunk" | "block_content" {
    return this.place === OUTSIDE ? "text_chunk" : "block_content"
  }

  push(chunk: string): ReadonlyArray<Part> {
    // The fast path: nearly every piece is plain.
    if (this.takePlain(chunk)) return [{ type: this.plain, text: chunk }]
    const out: Array<Part> = []
    this.accept(chunk, out)
    return out
  }

  pushAll(chunks: ReadonlyArray<string>): ReadonlyArray<Part> {
    if (chunks.length === 1 && chunks[0] !== undefined) return this.push(chunks[0])
    const out: Array<Part> = []
    let gathered = ""
    for (const chunk of chunks) {
      gathered += chunk
      if (gathered.length < gatherable) continue
      this.accept(gathered, out)
      gathered = ""
    }
    this.accept(gathered, out)
    return out
  }

  flush(): ReadonlyArray<Part> {
    const out: Array<Part> = []
    this.continueWith("", out, true)
    // The held text may have contained blocks, and one may have nested too deep.
    if (this.failure !== undefined) return out
    if (this.place === INSIDE) {
      out.push({ type: "block_unclosed", blockType: this.blockType, name: this.name, content: this.content.take("") })
    }
    this.reset()
    return out
  }

  reset(): void {
    this.place = OUTSIDE
    this.held = ""
    this.size = 0
    this.content.take("")
    this.failure = undefined
    this.unread = undefined
    this.count = 0
  }

  private accept(chunk: string, out: Array<Part>): void {
    if (this.failure !== undefined || this.unread !== undefined) return
    const room = this.replyLength - this.size
    if (chunk.length > room) {
      this.accept(slice.call(chunk, 0, room), out)
      return this.overrun(chunk.length - room)
    }
    this.size += chunk.length
    if (this.place !== TAG) return this.continueWith(chunk, out, false)
    const end = this.tag.advance(chunk, 0)
    if (end === REFUSED) return this.continueWith(chunk, out, false)
    const size = this.held.length
    // A tag that arrives in many small pieces is joined once, when it is complete.
    this.held += chunk
    if (end === UNDECIDED) return
    const text = this.held
    this.held = ""
    this.open(text, 0, out)
    this.read(text, size + end, out, false)
  }

  /** Fails a reply beyond its limit, unless the text is not read anyway. */
  private overrun(length: number): void {
    if (this.unread === undefined) this.fail("reply", this.replyLength)
    else this.unread += length
  }

  /** Reads the held text, then `chunk`. A partial tag in the held text has been refused by now. */
  private continueWith(chunk: string, out: Array<Part>, last: boolean): void {
    const text = this.held + chunk
    if (this.place === TAG) this.place = OUTSIDE
    this.held = ""
    this.read(text, 0, out, last)
  }

  private open(text: string, at: number, out: Array<Part>): void {
    const { tag } = this
    const name = tag.nameTo < 0 ? null : ownSlice(text, at + tag.nameFrom, at + tag.nameTo)
    this.blockType = tag.typeTo < 0 ? tag.word.text : ownSlice(text, at + tag.typeFrom, at + tag.typeTo)
    this.name = name
    this.closing = tag.word.closing
    this.depth = 1
    this.place = INSIDE
    out.push({ type: "block_start", blockType: this.blockType, name })
  }

  /** Reads all of `text` from `start`. With `last`, no more text follows and nothing is held back. */
  private read(text: string, start: number, out: Array<Part>, last: boolean): void {
    let at = start
    while (at >= 0) at = this.place === INSIDE ? this.inside(text, at, out, last) : this.outside(text, at, out, last)
  }

  /** Reads text up to the next block. Returns where its content starts. */
  private outside(text: string, start: number, out: Array<Part>, last: boolean): number {
    let end = text.length
    let at = indexOf.call(text, "<", start)
    while (at >= 0) {
      if (charCodeAt.call(text, at + 1) === LESS) {
        at += 1
        continue
      }
      const after = this.tag.begin(text, at)
      if (after > 0) {
        emitText(text, start, at, out)
        this.open(text, at, out)
        return after
      }
      if (after === UNDECIDED && !last) {
        this.place = TAG
        end = at
        break
      }
      at = indexOf.call(text, "<", at + 1)
    }
    if (at < 0 && !last && end > start && isHighSurrogate(charCodeAt.call(text, end - 1))) end--
    if (end < text.length) this.held = slice.call(text, end, text.length)
    emitText(text, start, end, out)
    return -1
  }

  /** Reads content up to the end of the block. Returns where the text behind it starts. */
  private inside(text: string, start: number, out: Array<Part>, last: boolean): number {
    const { closing } = this
    const nests = closing === "</block>"
    const width = closing.length
    let end = text.length
    let at = indexOf.call(text, "<", start)
    while (at >= 0) {
      const next = charCodeAt.call(text, at + 1)
      if (next === LESS) {
        at += 1
        continue
      }
      if (next === SLASH) {
        if (charCodeAt.call(text, at + width - 1) === GREATER && startsWith.call(text, closing, at)) {
          this.depth--
          if (this.depth === 0) {
            const piece = ownSlice(text, start, at)
            if (piece !== "") out.push({ type: "block_content", text: piece })
            const content = this.content.take(piece)
            out.push({ type: "block_complete", block: { type: this.blockType, name: this.name, content } })
            this.place = OUTSIDE
            if (++this.count < this.blocks) return at + width
            this.unread = text.length - at - width
            return -1
          }
        } else if (!last && isCut(closing, text, at)) {
          break
        }
      } else if (next === LETTER_B && nests) {
        if (startsWith.call(text, "<block", at) && at + 6 < end) {
          const code = charCodeAt.call(text, at + 6)
          if ((code === GREATER || isSpace(code)) && ++this.depth > this.blockDepth) {
            this.emitContent(text, start, at, out)
            this.fail("block nesting", this.blockDepth)
            return -1
          }
        } else if (!last && isCut("<block", text, at)) {
          break
        }
      } else if (!last && at + 1 === end) {
        break
      }
      at = indexOf.call(text, "<", at + 1)
    }
    if (at >= 0) end = at
    else if (!last && end > start && isHighSurrogate(charCodeAt.call(text, end - 1))) end--
    if (end < text.length) this.held = slice.call(text, end, text.length)
    this.emitContent(text, start, end, out)
    return -1
  }

  private emitContent(text: string, start: number, end: number, out: Array<Part>): void {
    if (end <= start) return
    const piece = ownSlice(text, start, end)
    this.content.add(piece, end - start)
    out.push({ type: "block_content", text: piece })
  }

  private fail(limit: string, value: number): void {
    this.failure ??= this.failureOf({ limit, value })
    this.held = ""
    this.content.take("")
  }
}

// ---------------------------------------------------------------- helpers

const SLASH = 47
const LESS = 60
const GREATER = 62
const LETTER_B = 98

/** Pieces that arrive together are joined and read at once, up to this many UTF-16 units. */
const gatherable = 65_536

const emitText = (text: string, start: number, end: number, out: Array<Part>): void => {
  if (end > start) out.push({ type: "text_chunk", text: ownSlice(text, start, end) })
}

/** Returns whether the text ends with a prefix of the tag. */
const isCut = (tag: string, text: string, at: number): boolean =>
  text.length - at <= tag.length && tag.startsWith(slice.call(text, at, text.length))

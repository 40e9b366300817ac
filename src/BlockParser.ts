/**
 * Parses blocks from a stream of text.
 *
 * A parser is a fold: push pieces, then flush. The parts depend only on the concatenated text, not on how it was cut.
 * Every character is read once, is held back only while it may belong to a tag, and counts towards a limit. `parse`
 * feeds the fold once, `stream` puts it into a pipeline.
 *
 * A `<` starts a tag only if a complete opening tag follows at exactly that place; otherwise it is text.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Block, isBlank, type Part } from "./Block.ts"
import { BlockFold } from "./kit/blockFold.ts"
import { foldPull } from "./kit/streams.ts"
import { LimitExceeded } from "./KernelError.ts"
import { defaults, Limits } from "./Limits.ts"

export type { Part } from "./Block.ts"

/**
 * The limits of a parser, in UTF-16 units: a longer reply fails, a longer opening tag is text, and deeper nesting of
 * blocks fails.
 *
 * @category models
 * @since 0.1.0
 */
export interface Bounds {
  readonly replyLength: number
  readonly tagLength: number
  readonly blockDepth: number
}

/**
 * A parser of one text. It is mutable: use one parser per reply.
 *
 * @category models
 * @since 0.1.0
 */
export interface BlockParser {
  /** The position in the text. */
  readonly state: "text" | "tag_open" | "block_content"
  /** The limit that was exceeded. Nothing more is read until `reset`. */
  readonly failure: LimitExceeded | undefined
  /** Reads one piece. Returns the parts that are now certain. */
  push(chunk: string): ReadonlyArray<Part>
  /** Reads several pieces as if they were one. */
  pushAll(chunks: ReadonlyArray<string>): ReadonlyArray<Part>
  /**
   * Ends the text and emits the characters still held back. Unless the parser failed, it can then read another text.
   */
  flush(): ReadonlyArray<Part>
  /** Discards everything and starts over. */
  reset(): void
}

/**
 * The result of parsing a whole text.
 *
 * @category models
 * @since 0.1.0
 */
export interface Parsed {
  readonly blocks: ReadonlyArray<Block>
  /** All text outside blocks. */
  readonly text: string
  /** The text outside blocks, one segment between two blocks; blank segments are left out. */
  readonly textSegments: ReadonlyArray<string>
  /** The block in which the text ended. */
  readonly unclosed: Block | undefined
  /** The limit that was exceeded. The rest of the text was not read. */
  readonly failure: LimitExceeded | undefined
}

/**
 * Creates a parser at the start of a text.
 *
 * @example
 * ```ts
 * import { BlockParser } from "kernai"
 *
 * const parser = BlockParser.make()
 * parser.push("Here: <fin") // text "Here: "
 * parser.push("al>42</final>") // block_start, block_content "42", block_complete
 * parser.flush() // nothing was held
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (bounds?: Partial<Bounds>): BlockParser =>
  new BlockFold({ replyLength: defaults.replyLength, ...bounds }, (excess) => new LimitExceeded(excess))

/**
 * Parses a whole text. Never throws: a limit that was exceeded is in `failure`.
 *
 * @category parsing
 * @since 0.1.0
 */
export const parse = (text: string, bounds?: Partial<Bounds>): Parsed => {
  const parser = make(bounds)
  const segments: Array<string> = []
  const blocks: Array<Block> = []
  let segment = ""
  let unclosed: Block | undefined
  for (const part of [...parser.push(text), ...parser.flush()]) {
    switch (part.type) {
      case "text_chunk":
        segment += part.text
        break
      case "block_start":
        segments.push(segment)
        segment = ""
        break
      case "block_complete":
        blocks.push(part.block)
        break
      case "block_unclosed":
        unclosed = { type: part.blockType, name: part.name, content: part.content }
        break
    }
  }
  segments.push(segment)
  return {
    blocks,
    text: segments.join(""),
    textSegments: segments.filter((text) => !isBlank(text)),
    unclosed,
    failure: parser.failure
  }
}

/**
 * Turns a stream of text into a stream of parts. Without `bounds`, the `Limits` of the context apply.
 *
 * Fails with `LimitExceeded` after the parts before it. Pieces that arrive together are read together. When the source
 * fails, the parser is not flushed.
 *
 * @example
 * ```ts
 * import { Stream } from "effect"
 * import { BlockParser } from "kernai"
 *
 * const parts = Stream.make("<fin", "al>42</final>").pipe(BlockParser.stream)
 * ```
 *
 * @category parsing
 * @since 0.1.0
 */
export const stream = <E, R>(
  self: Stream.Stream<string, E, R>,
  bounds?: Partial<Bounds>
): Stream.Stream<Part, E | LimitExceeded, R> =>
  Stream.transformPull(self, (pull) =>
    Effect.map(Limits, ({ replyLength }) => foldPull(pull, make({ replyLength, ...bounds })))
  )

/**
 * Reads blocks out of a stream of text (BP-1 to BP-29).
 *
 * One fold: push pieces, then flush. What it finds is a pure function of the
 * concatenated text, however it was cut (BP-15); every character is looked at
 * once, held back only while it may belong to a tag, and bounded (BP-26).
 * `parse` is the fold fed once, `stream` the fold in a pipeline.
 *
 * A `<` in text starts a tag only if a whole opening tag follows at exactly
 * that place; otherwise it is text, and reading goes on behind it.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Block, isBlank, type Part } from "./Block.ts"
import { BlockFold } from "./internal/words/blockFold.ts"
import { foldPull } from "./internal/base/streams.ts"
import type { LimitExceeded } from "./KernelError.ts"
import { defaults, Limits } from "./Limits.ts"

export type { Part } from "./Block.ts"

/**
 * The limits a parser keeps (BP-26): a reply of more UTF-16 units fails, an
 * opening tag of more is text, and blocks that nest deeper fail.
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
 * A parser between two pieces of text. It is mutable: one reply, one parser (BP-27).
 *
 * @category models
 * @since 0.1.0
 */
export interface BlockParser {
  /** Where the text stands (BP-17). */
  readonly state: "text" | "tag_open" | "block_content"
  /** The limit that was exceeded. From then on nothing is read until `reset`. */
  readonly failure: LimitExceeded | undefined
  /** Reads one piece and tells what became certain. */
  push(chunk: string): ReadonlyArray<Part>
  /** Reads several pieces as if they had come as one. */
  pushAll(chunks: ReadonlyArray<string>): ReadonlyArray<Part>
  /**
   * Ends the text: held characters are told as what they are now (BP-24, BP-25). The parser can read another one then,
   * unless it failed.
   */
  flush(): ReadonlyArray<Part>
  /** Forgets everything, silently (BP-23). */
  reset(): void
}

/**
 * A whole text, read.
 *
 * @category models
 * @since 0.1.0
 */
export interface Parsed {
  readonly blocks: ReadonlyArray<Block>
  /** All text outside blocks. */
  readonly text: string
  /** The same, one segment between two blocks, blank ones left out (BP-28). */
  readonly textSegments: ReadonlyArray<string>
  /** The block the text ended in. */
  readonly unclosed: Block | undefined
  /** The limit that was exceeded, if one was: the rest of the text was not read. */
  readonly failure: LimitExceeded | undefined
}

/**
 * A parser at the start of a text.
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
  new BlockFold({ replyLength: defaults.replyLength, ...bounds })

/**
 * Reads a whole text: the same fold, fed once (BP-29).
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
 * Turns a stream of text into a stream of parts, within the `Limits` in force
 * unless given others.
 *
 * Pieces that arrive together are read together. A failing source ends the
 * parts where they are: only a text that ended is flushed.
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

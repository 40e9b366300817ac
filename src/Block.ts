/**
 * The text unit a model speaks: a type, maybe a name, and a content (BP-1).
 *
 * A block is plain data; `BlockParser` reads it byte for byte. Going the other
 * way, into a conversation, `render` escapes what it is given, so that injected
 * text can neither close its own block nor open or forge another (BP-76, S-6).
 *
 * The escape is one rule: where a `<` would start or end a block, it becomes
 * `&lt;`. Everything else stays as it is, and `unescape` undoes it.
 *
 * @since 0.1.0
 */

import * as Texts from "./internal/base/text.ts"

/**
 * A type, a name and a content. No name is `null`; the empty name is a name (BP-5).
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
 * What a parser tells about a text, piece by piece and in its order (BP-17).
 *
 * The content of a `block_complete` is the concatenation of the
 * `block_content` pieces before it (BP-18). `block_unclosed` stands for a block
 * the text ended in: a cut reply, never to be acted on (BP-25).
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

/**
 * The types that have a meaning of their own and a shorthand `<type>…</type>` (BP-7).
 *
 * @category models
 * @since 0.1.0
 */
export type CoreType = (typeof coreTypes)[number]

/**
 * All core types (BP-7).
 *
 * @category models
 * @since 0.1.0
 */
export const coreTypes = ["command", "json", "final", "plan", "result", "error"] as const

/**
 * Is this type a core type? Case counts: `FINAL` is not (BP-6).
 *
 * @category guards
 * @since 0.1.0
 */
export const isCoreType = (type: string): type is CoreType => names.has(type)

/**
 * A block of any type.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (type: string, name: string | null, content: string): Block => ({ type, name, content })

/**
 * Asks for a skill or a built-in.
 *
 * @category constructors
 * @since 0.1.0
 */
export const command = (name: string | null, content: string): Block => make("command", name, content)

/**
 * Carries data that asks for nothing.
 *
 * @category constructors
 * @since 0.1.0
 */
export const json = (content: string): Block => make("json", null, content)

/**
 * Carries the answer of a run.
 *
 * @category constructors
 * @since 0.1.0
 */
export const final = (content: string): Block => make("final", null, content)

/**
 * Tells, or orders, what to do next.
 *
 * @category constructors
 * @since 0.1.0
 */
export const plan = (content: string): Block => make("plan", null, content)

/**
 * Carries what a call gave back.
 *
 * @category constructors
 * @since 0.1.0
 */
export const result = (name: string | null, content: string): Block => make("result", name, content)

/**
 * Tells the model what went wrong.
 *
 * @category constructors
 * @since 0.1.0
 */
export const error = (name: string | null, content: string): Block => make("error", name, content)

/**
 * Writes a block in canonical form, its attributes and content escaped (BP-76).
 *
 * The parser reads back exactly one block, whatever the parts hold, unless the
 * type is empty or the tag is longer than 4,096 characters: then it is text.
 *
 * @example
 * ```ts
 * import { Block } from "kernai"
 *
 * Block.render(Block.result("search", "42 hits")) // <block type="result" name="search">42 hits</block>
 * Block.render(Block.result("search", "</block>")) // <block type="result" name="search">&lt;/block></block>
 * ```
 *
 * @category rendering
 * @since 0.1.0
 */
export const render = (block: Block): string => {
  const name = block.name === null ? "" : ` name="${attribute(block.name)}"`
  return `<block type="${attribute(block.type)}"${name}>${escape(block.content)}</block>`
}

/**
 * Makes a text safe inside a block: no tag the parser accepts is left in it (BP-76).
 *
 * Only the `<` of `<block`, `</block` and of a shorthand tag becomes `&lt;`;
 * `a < b`, `<div>`, `Array<Error>` and JSON stay as they are. Escaping twice is
 * escaping once. Escape a text whole: two harmless halves can join into a tag.
 *
 * @category rendering
 * @since 0.1.0
 */
export const escape = (text: string): string => (text.indexOf("<") < 0 ? text : text.replace(tag, "&lt;"))

/**
 * Undoes `escape`.
 *
 * A text that held `&lt;block` from the start comes back as `<block`.
 *
 * @category rendering
 * @since 0.1.0
 */
export const unescape = (text: string): string => (text.indexOf("&lt;") < 0 ? text : text.replace(escaped, "<"))

/**
 * Makes a text safe as an attribute value: `escape`, and no quote is left (BP-76).
 *
 * @category rendering
 * @since 0.1.0
 */
export const attribute = (value: string): string => escape(value).replaceAll('"', "&quot;")

/**
 * Removes NUL, TAB, LF, VT, FF, CR and SPACE at both ends.
 *
 * Narrower than `trim`: U+00A0, U+FEFF and other Unicode space stay.
 *
 * @category text
 * @since 0.1.0
 */
export const strip: (text: string) => string = Texts.strip

/**
 * Is nothing left of this text after `strip`?
 *
 * @category text
 * @since 0.1.0
 */
export const isBlank = (text: string): boolean => strip(text) === ""

// ---------------------------------------------------------------- helpers

const names: ReadonlySet<string> = new Set(coreTypes)

// The end of a text counts as the end of a tag's name: what follows it is not ours to know.
const follows = `(?=/?(?:block|(?:${coreTypes.join("|")})(?:[\\t-\\r >]|$)))`

const tag = new RegExp(`<${follows}`, "g")

const escaped = new RegExp(`&lt;${follows}`, "g")

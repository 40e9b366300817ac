/**
 * The text unit a model speaks: a type, an optional name, and a content.
 *
 * A block is plain data; `BlockParser` reads it byte for byte. In the other direction, `render` escapes its input, so
 * that injected text can neither close its own block nor open or forge another.
 *
 * The escape is one rule: where a `<` would start or end a block, it becomes `&lt;`. Everything else stays as it is,
 * and `unescape` undoes it.
 *
 * @since 0.1.0
 */

import * as Texts from "./kit/text.ts"
import type { Block, Part } from "./kit/blockFold.ts"

export type { Block, Part }

/**
 * The types with a meaning of their own and a shorthand tag `<type>…</type>`.
 *
 * @category models
 * @since 0.1.0
 */
export type CoreType = (typeof coreTypes)[number]

/**
 * All core types.
 *
 * @category models
 * @since 0.1.0
 */
export const coreTypes = ["command", "json", "final", "plan", "result", "error"] as const

/**
 * Returns true for a core type. Case matters: `FINAL` is not one.
 *
 * @category guards
 * @since 0.1.0
 */
export const isCoreType = (type: string): type is CoreType => names.has(type)

/**
 * Creates a block of any type.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (type: string, name: string | null, content: string): Block => ({ type, name, content })

/**
 * Creates a call of a skill or a built-in.
 *
 * @category constructors
 * @since 0.1.0
 */
export const command = (name: string | null, content: string): Block => make("command", name, content)

/**
 * Creates a block of data that calls nothing.
 *
 * @category constructors
 * @since 0.1.0
 */
export const json = (content: string): Block => make("json", null, content)

/**
 * Creates the answer of a run.
 *
 * @category constructors
 * @since 0.1.0
 */
export const final = (content: string): Block => make("final", null, content)

/**
 * Creates a plan: notes for the next steps, or a workflow.
 *
 * @category constructors
 * @since 0.1.0
 */
export const plan = (content: string): Block => make("plan", null, content)

/**
 * Creates the result of a call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const result = (name: string | null, content: string): Block => make("result", name, content)

/**
 * Creates an error message for the model.
 *
 * @category constructors
 * @since 0.1.0
 */
export const error = (name: string | null, content: string): Block => make("error", name, content)

/**
 * Writes a block in canonical form, with its attributes and content escaped.
 *
 * The parser reads back exactly this one block, unless the type is empty or the tag is longer than 4,096 UTF-16 units:
 * then it reads text.
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
 * Makes a text safe inside a block: the parser finds no tag in it.
 *
 * Only the `<` of `<block`, `</block` and of shorthand tags becomes `&lt;`; `a < b`, `<div>`, `Array<Error>` and JSON
 * stay as they are. Escaping twice is escaping once. Escape a text as a whole, since two harmless halves can join into
 * a tag.
 *
 * @category rendering
 * @since 0.1.0
 */
export const escape = (text: string): string => (text.indexOf("<") < 0 ? text : text.replace(tag, "&lt;"))

/**
 * Undoes `escape`. A text that contained `&lt;block` before it was escaped comes back with `<block`.
 *
 * @category rendering
 * @since 0.1.0
 */
export const unescape = (text: string): string => (text.indexOf("&lt;") < 0 ? text : text.replace(escaped, "<"))

/**
 * Makes a text safe as an attribute value: `escape`, and quotes become `&quot;`.
 *
 * @category rendering
 * @since 0.1.0
 */
export const attribute = (value: string): string => escape(value).replaceAll('"', "&quot;")

/**
 * Removes NUL, TAB, LF, VT, FF, CR and SPACE from both ends.
 *
 * Narrower than `trim`: U+00A0, U+FEFF and other Unicode space stay.
 *
 * @category text
 * @since 0.1.0
 */
export const strip: (text: string) => string = Texts.strip

/**
 * Returns true if the text is empty after `strip`.
 *
 * @category text
 * @since 0.1.0
 */
export const isBlank = (text: string): boolean => strip(text) === ""

// ---------------------------------------------------------------- helpers

const names: ReadonlySet<string> = new Set(coreTypes)

// At the end of the text a tag name counts as complete, since more may follow in another text.
const follows = `(?=/?(?:block|(?:${coreTypes.join("|")})(?:[\\t-\\r >]|$)))`

const tag = new RegExp(`<${follows}`, "g")

const escaped = new RegExp(`&lt;${follows}`, "g")

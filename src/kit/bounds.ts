/**
 * Fixed bounds of formats.
 *
 * They are far above anything that a model, a server or a file legitimately sends, so a host has no reason to change
 * them. Configurable limits are in `Limits`.
 */

/** Length of one SSE event, NDJSON line or stdio message: UTF-16 units of text, or bytes where none is decoded. */
export const frameLength = 10 * 1024 * 1024

/** Length of one opening tag in UTF-16 units; a longer one is text. */
export const tagLength = 4 * 1024

/** Largest ratio of a body to its compressed form. */
export const decompressionRatio = 100

/** Nesting depth of blocks in a reply, and of contents. */
export const blockDepth = 32

/** Nesting depth of any other JSON. */
export const jsonDepth = 100

/** Objects and lists in one JSON value. */
export const jsonNodes = 1_000_000

/** Nodes of a YAML document with its aliases expanded. */
export const yamlNodes = 10_000

/** Bytes of the front matter of a skill pack. */
export const frontMatterBytes = 50_000

/** Bytes of a skill pack's body, and of one of its files. */
export const skillFileBytes = 200_000

/** Bytes of the text of a failure if no `Limits.resultBytes` applies. */
export const failureBytes = 200_000

/** Blocks or calls of one reply beyond `Limits.blocksPerReply` that still get an error result each. */
export const blocksBeyond = 1_000

/** Native calls of one reply beyond the limit that stay in the conversation. */
export const nativeCallsBeyond = 10_000

/** Sources that are kept of a reply. */
export const sourcesPerReply = 200

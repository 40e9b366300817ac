/**
 * Bounds that keep formats sane.
 *
 * They are far above anything a model, a server or a file sends in earnest, so a
 * host has no reason to set them; those it may want to set are in `Limits`.
 */

/** Length of one SSE event, NDJSON line or stdio message: UTF-16 units of text, or bytes where none is decoded. */
export const frameLength = 10 * 1024 * 1024

/** Length of one opening tag in UTF-16 units; a longer one is text. */
export const tagLength = 4 * 1024

/** How many times larger than its compressed form a body may be. */
export const decompressionRatio = 100

/** How deep blocks may nest in a reply, and contents in each other. */
export const blockDepth = 32

/** How deep any other JSON may nest. */
export const jsonDepth = 100

/** Objects and lists one JSON value may hold. */
export const jsonNodes = 1_000_000

/** Nodes of a YAML document with its aliases expanded. */
export const yamlNodes = 10_000

/** Bytes of the front matter of a skill pack. */
export const frontMatterBytes = 50_000

/** Bytes of a skill pack's body, and of one of its files. */
export const skillFileBytes = 200_000

/** Bytes of the text of a failure where no `Limits.resultBytes` applies. */
export const failureBytes = 200_000

/** Blocks or calls of one reply beyond `Limits.blocksPerReply` that are still read, so that each is answered. */
export const blocksBeyond = 1_000

/** Native calls of one reply beyond the limit that stay in the conversation. */
export const nativeCallsBeyond = 10_000

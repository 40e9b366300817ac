/** Feeding a block parser piece by piece, and what came of it; the parts, by short names. */
import * as Block from "../../src/Block.ts"
import * as BlockParser from "../../src/BlockParser.ts"

export const text = (value: string): BlockParser.Part => ({ type: "text_chunk", text: value })
export const start = (blockType: string, name: string | null = null): BlockParser.Part => ({
  type: "block_start",
  blockType,
  name
})
export const content = (value: string): BlockParser.Part => ({ type: "block_content", text: value })
export const complete = (type: string, value: string, name: string | null = null): BlockParser.Part => ({
  type: "block_complete",
  block: Block.make(type, name, value)
})
export const unclosed = (blockType: string, value: string, name: string | null = null): BlockParser.Part => ({
  type: "block_unclosed",
  blockType,
  name,
  content: value
})

/** All parts of a text that came in these pieces. */
export const feed = (pieces: Iterable<string>, bounds?: Partial<BlockParser.Bounds>) => {
  const parser = BlockParser.make(bounds)
  const parts: Array<BlockParser.Part> = []
  for (const piece of pieces) for (const part of parser.push(piece)) parts.push(part)
  for (const part of parser.flush()) parts.push(part)
  return { parts, failure: parser.failure }
}

/** Parts as `[kind, …]`, neighbouring text and content pieces merged: what does not depend on the cuts. */
export const merged = (parts: ReadonlyArray<BlockParser.Part>): ReadonlyArray<ReadonlyArray<string | null>> => {
  const events: Array<Array<string | null>> = []
  const grow = (kind: string, text: string) => {
    const last = events.at(-1)
    if (last?.[0] === kind) last[1] += text
    else events.push([kind, text])
  }
  for (const part of parts) {
    switch (part.type) {
      case "text_chunk":
        grow("text", part.text)
        break
      case "block_content":
        grow("content", part.text)
        break
      case "block_start":
        events.push(["start", part.blockType, part.name])
        break
      case "block_complete":
        events.push(["block", part.block.type, part.block.name, part.block.content])
        break
      case "block_unclosed":
        events.push(["unclosed", part.blockType, part.name, part.content])
        break
    }
  }
  return events
}

/** Blocks, text outside and the unclosed block, as a whole-text reader would tell them. */
export const reading = (parts: ReadonlyArray<BlockParser.Part>) => ({
  blocks: parts.flatMap((part) => (part.type === "block_complete" ? [part.block] : [])),
  text: parts.map((part) => (part.type === "text_chunk" ? part.text : "")).join(""),
  unclosed: parts
    .flatMap((part) =>
      part.type === "block_unclosed" ? [{ type: part.blockType, name: part.name, content: part.content }] : []
    )
    .at(0)
})

/** What is wrong with single pieces: empty, half a surrogate pair, or not the content they belong to. */
export const faults = (parts: ReadonlyArray<BlockParser.Part>): ReadonlyArray<string> => {
  const found: Array<string> = []
  let content = ""
  let before = ""
  for (const part of parts) {
    if (part.type === "text_chunk" || part.type === "block_content") {
      if (part.text === "") found.push(`an empty ${part.type}`)
      if (/[\uD800-\uDBFF]$/.test(before) && /^[\uDC00-\uDFFF]/.test(part.text)) found.push("a split surrogate pair")
      before = part.text
      if (part.type === "block_content") content += part.text
    } else {
      before = ""
      if (part.type === "block_complete" && part.block.content !== content) found.push(`pieces of ${part.block.type}`)
      if (part.type === "block_unclosed" && part.content !== content) found.push(`pieces of ${part.blockType}`)
      content = ""
    }
  }
  return found
}

/** How much there is of each. */
export const counted = (parts: ReadonlyArray<BlockParser.Part>) => {
  const read = reading(parts)
  return { blocks: read.blocks.length, text: read.text.length, unclosed: read.unclosed?.content.length }
}

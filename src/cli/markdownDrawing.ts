/** Draws Markdown while it streams: each block as soon as it is complete, and lists and code line by line. */

import { Lexer, type MarkedToken } from "marked"
import * as Result from "effect/Result"
import { visible } from "../kit/text.ts"
import { type Drawing, plain } from "./plainDrawing.ts"
import { blockLines, isOwn, listLines } from "./markdownLines.ts"
import type * as Text from "./terminalText.ts"

/** The most characters that are read as Markdown at once. Longer texts are drawn as they are. */
const most = 60_000

/** A text that is data and no prose, such as a typed answer. Its signs are no Markdown. */
const data = /^\s*(?:\{|\[\s*["{[])/

export class MarkdownDrawing implements Drawing {
  readonly #look: Text.Look
  /** The text from the first block that is not drawn whole. */
  #rest = ""
  /** The number of lines of that block that are drawn. */
  #shown = 0
  #isFirst = true
  #plain: Drawing | undefined

  constructor(look: Text.Look) {
    this.#look = look
  }

  push(piece: string): string {
    if (this.#plain !== undefined) return this.#plain.push(piece)
    this.#rest += piece
    return piece.includes("\n") ? this.#draw(this.#rest.lastIndexOf("\n") + 1, false) : ""
  }

  end(): string {
    const drawn = this.#rest === "" ? "" : this.#draw(this.#rest.length, true)
    const end = this.#plain?.end() ?? ""
    this.#plain = undefined
    this.#rest = ""
    this.#shown = 0
    this.#isFirst = true
    return drawn + end
  }

  #draw(end: number, isWhole: boolean): string {
    if (end > most || (this.#isFirst && data.test(this.#rest))) return this.#drawPlain()
    const text = this.#rest.slice(0, end).replaceAll("\r\n", "\n").replaceAll("\r", visible)
    this.#rest = text + this.#rest.slice(end)
    // Deeply nested blocks exceed the stack.
    const drawn = Result.try(() => this.#drawBlocks(Lexer.lex(text).filter(isOwn), isWhole))
    return Result.isSuccess(drawn) ? drawn.success : this.#drawPlain()
  }

  #drawPlain(): string {
    this.#plain = plain()
    const rest = this.#rest
    this.#rest = ""
    return this.#plain.push(rest)
  }

  #drawBlocks(tokens: ReadonlyArray<MarkedToken>, isWhole: boolean): string {
    const open = isWhole ? undefined : openOf(tokens)
    let drawn = ""
    let read = 0
    for (const token of tokens) {
      const lines = token === open ? steadyLines(token, this.#look) : blockLines(token, this.#look)
      const fresh = lines.slice(this.#shown)
      if (fresh.length > 0 && this.#shown === 0 && !this.#isFirst) drawn += "\n"
      if (fresh.length > 0) this.#isFirst = false
      for (const line of fresh) drawn += `${line}\n`
      this.#shown = token === open ? Math.max(this.#shown, lines.length) : 0
      if (token === open) break
      read += token.raw.length
    }
    this.#rest = this.#rest.slice(read)
    return drawn
  }
}

/** Returns the last block, unless nothing that follows can change it. */
const openOf = (tokens: ReadonlyArray<MarkedToken>): MarkedToken | undefined => {
  const index = tokens.findLastIndex(({ type }) => type !== "space")
  const token = tokens[index]
  const isFollowed = index + 1 < tokens.length
  switch (token?.type) {
    case "heading":
    case "hr":
      return undefined
    case "paragraph":
    case "def":
      return isFollowed ? undefined : token
    case "table":
      return isFollowed || token.raw.endsWith("\n\n") ? undefined : token
    case "code":
      return isFollowed && token.codeBlockStyle !== "indented" ? undefined : token
    default:
      return token
  }
}

/** Returns the lines of an open block that nothing that follows can change. */
const steadyLines = (token: MarkedToken, look: Text.Look): ReadonlyArray<string> => {
  if (token.type === "code" && token.codeBlockStyle !== "indented") return blockLines(token, look).slice(0, -1)
  return token.type === "list" ? listLines(token, token.items.slice(0, -1), look) : []
}

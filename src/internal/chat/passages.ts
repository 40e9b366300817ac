/**
 * Splits documents into passages along their structure: sections and blocks of Markdown, declarations of code,
 * paragraphs of text. Every passage knows its lines and its heading.
 */

import { isHighSurrogate } from "../../kit/text.ts"

/** A part of a document. */
export interface Split {
  /** The first and the last line, counted from 1. */
  readonly from: number
  readonly to: number
  /** The headings above it in Markdown, joined by ` > `; the name of its first declaration in code. */
  readonly heading: string
  readonly content: string
}

/** Lines that stay together where they fit. `to` is the line after the last one, both counted from 0. */
interface Unit {
  readonly from: number
  readonly to: number
  readonly heading: string
  /** Units of different sections are never in one passage. */
  readonly section: number
}

/** Splits a document by the kind that its name says: Markdown, text, or else code. */
export const split = (name: string, content: string, size: number): ReadonlyArray<Split> => {
  const lines = content.replace(/^\ufeff/, "").split(/\r\n|\n|\r/)
  const units = isMarkdown.test(name) ? markdown(lines) : isText.test(name) ? paragraphs(lines) : code(lines)
  return packed(lines, units, size).flatMap((unit) => cut(lines, unit, size))
}

const isMarkdown = /\.(?:md|mdx|markdown)$/i

const isText = /(?:^|[/\\])[^./\\]*$|\.(?:txt|text|rst|adoc|org|log)$/i

// ---------------------------------------------------------------- units

/** Blocks between blank lines. A fence is one block, and a heading begins a section, except right below another one. */
const markdown = (lines: ReadonlyArray<string>): ReadonlyArray<Unit> => {
  const units: Array<Unit> = []
  const headings: Array<string> = []
  let fence: string | undefined
  let from = 0
  let section = 0
  let hasBody = true
  const close = (to: number) => {
    if (to > from) units.push({ from, to, section, heading: headings.filter((text) => text !== "").join(" > ") })
    from = to
  }
  for (const [index, line] of lines.entries()) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence !== undefined) {
      if (mark?.startsWith(fence) === true && line.trim() === mark) fence = undefined
      continue
    }
    const level = /^ {0,3}(#{1,6})[ \t]/.exec(line)?.[1]?.length
    if (mark !== undefined) fence = mark
    else if (level !== undefined) {
      close(index)
      headings.length = Math.min(headings.length, level - 1)
      while (headings.length < level - 1) headings.push("")
      headings.push(titleOf(line))
      if (hasBody) section++
    } else if (line.trim() === "") close(index + 1)
    if (line.trim() !== "") hasBody = level === undefined
  }
  close(lines.length)
  return units
}

/** Returns the text of a heading line without its marks. */
const titleOf = (line: string): string => {
  const text = line.trim()
  let start = 0
  while (text[start] === "#") start++
  let end = text.length
  while (end > start && text[end - 1] === "#") end--
  return text.slice(start, end).trim().slice(0, longestHeading)
}

const paragraphs = (lines: ReadonlyArray<string>): ReadonlyArray<Unit> =>
  grouped(lines, (index) => lines[index - 1]?.trim() === "")

/** Declarations with the comments above them: each begins after a blank line, at a line that is not indented. */
const code = (lines: ReadonlyArray<string>): ReadonlyArray<Unit> =>
  grouped(lines, (index) => lines[index - 1]?.trim() === "" && /^[^\s)\]}]/.test(lines[index] ?? "")).map((unit) => ({
    ...unit,
    heading: nameIn(lines.slice(unit.from, unit.to))
  }))

const grouped = (lines: ReadonlyArray<string>, begins: (index: number) => boolean): ReadonlyArray<Unit> => {
  const starts = lines.flatMap((_, index) => (index === 0 || begins(index) ? [index] : []))
  return starts.map((from, index) => ({ from, to: starts[index + 1] ?? lines.length, heading: "", section: 0 }))
}

const nameIn = (lines: ReadonlyArray<string>): string => {
  for (const line of lines) {
    const name = declaration.exec(line.slice(0, longestHeading))?.[1]
    if (name !== undefined) return name
  }
  return ""
}

const declaration =
  /^(?:[a-z]+ ){0,4}(?:class|const|def|enum|fn|func|function|impl|interface|let|module|namespace|struct|trait|type|var)\*? ([\p{L}_$][\p{L}\p{N}_$]*)/u

const longestHeading = 200

// ---------------------------------------------------------------- passages

/** Joins units of a section while they fit. */
const packed = (lines: ReadonlyArray<string>, units: ReadonlyArray<Unit>, size: number): ReadonlyArray<Unit> => {
  const found: Array<Unit> = []
  let length = 0
  for (const unit of units) {
    const added = lines.slice(unit.from, unit.to).reduce((sum, line) => sum + line.length + 1, 0)
    const last = found.at(-1)
    if (last !== undefined && last.section === unit.section && length + added <= size) {
      const isDeeper = last.heading === "" || unit.heading.startsWith(`${last.heading} > `)
      found[found.length - 1] = { ...last, to: unit.to, heading: isDeeper ? unit.heading : last.heading }
      length += added
    } else {
      found.push(unit)
      length = added
    }
  }
  return found
}

/** Cuts a unit that is too long between lines, and a line that is too long between characters. */
const cut = (lines: ReadonlyArray<string>, { from, heading, to }: Unit, size: number): ReadonlyArray<Split> => {
  const found: Array<Split> = []
  let first = from
  let length = 0
  const close = (end: number) => {
    while (first < end && lines[first]?.trim() === "") first++
    let last = end
    while (last > first && lines[last - 1]?.trim() === "") last--
    if (last > first) {
      found.push({ from: first + 1, to: last, heading, content: lines.slice(first, last).join("\n") })
    }
    first = end
    length = 0
  }
  for (let index = from; index < to; index++) {
    const line = lines[index] ?? ""
    if (length > 0 && length + line.length > size) close(index)
    length += line.length + 1
    if (line.length <= size) continue
    found.push(...pieces(line, size).map((content) => ({ from: index + 1, to: index + 1, heading, content })))
    first = index + 1
    length = 0
  }
  close(to)
  return found
}

/** Cuts a line, at a space in the second half of a piece if there is one. */
const pieces = (line: string, size: number): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let start = 0; start < line.length;) {
    let end = Math.min(line.length, start + size)
    if (end < line.length) {
      const space = line.lastIndexOf(" ", end)
      if (space > start + size / 2) end = space + 1
      else if (isHighSurrogate(line.charCodeAt(end - 1))) end--
    }
    found.push(line.slice(start, end))
    start = end
  }
  return found.filter((piece) => piece.trim() !== "")
}

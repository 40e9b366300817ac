/**
 * The blocks of Markdown as lines for a terminal: the tokens of marked, without HTML. Links say where they lead, and
 * nothing of a text is left out but its marks. Without colors, the marks of emphasis stay.
 */

import type { MarkedToken, Token, Tokens } from "marked"
import { table } from "./table.ts"
import * as Text from "./terminalText.ts"

/** Whether a token is one of marked itself. Those of extensions do not occur. */
export const isOwn = (token: Token): token is MarkedToken => "raw" in token

/** The widest line of prose. */
const widest = 100

/** Draws a block as lines without line ends. */
export const blockLines = (token: MarkedToken, look: Text.Look): ReadonlyArray<string> => {
  switch (token.type) {
    case "space":
    case "checkbox":
      return []
    case "heading": {
      const marks = `${"#".repeat(token.depth)} `
      return hanging(Text.paint(marks, "quiet", look), proseLines(token.tokens, inside(look, marks), ["title"]))
    }
    case "paragraph":
      return proseLines(token.tokens, look)
    case "text":
      return token.tokens === undefined ? rawLines(token.text) : proseLines(token.tokens, look)
    case "code":
      return codeLines(token, look)
    case "blockquote": {
      const bar = "│ "
      const lines = blocksLines(token.tokens, inside(look, bar), [""])
      return lines.map((line) => `${Text.paint(bar, "quiet", look)}${line}`.trimEnd())
    }
    case "list":
      return listLines(token, token.items, look)
    case "table":
      return tableLines(token, look)
    case "hr":
      return [ruleOf(Math.min(look.columns, 40), look)]
    default:
      return rawLines(token.raw)
  }
}

/** Draws items of a list. */
export const listLines = (
  { ordered, start }: Tokens.List,
  items: ReadonlyArray<Tokens.ListItem>,
  look: Text.Look
): ReadonlyArray<string> =>
  items.flatMap(({ checked, task, tokens }, index) => {
    const bullet = ordered ? `${(start === "" ? 1 : start) + index}. ` : "• "
    const marker = task ? `${bullet}${checked === true ? "☑" : "☐"} ` : bullet
    return hanging(marker, blocksLines(tokens, inside(look, marker), []))
  })

const blocksLines = (
  tokens: ReadonlyArray<Token>,
  look: Text.Look,
  between: ReadonlyArray<string>
): ReadonlyArray<string> =>
  tokens
    .filter(isOwn)
    .map((token) => blockLines(token, look))
    .filter((lines) => lines.length > 0)
    .flatMap((lines, index) => (index === 0 ? lines : [...between, ...lines]))

/** Returns the look beside a margin. */
const inside = (look: Text.Look, margin: string): Text.Look => ({
  ...look,
  columns: Math.max(10, look.columns - Text.width(margin))
})

/** Puts a marker before the first line, and the others below that line's text. */
const hanging = (marker: string, [first = "", ...others]: ReadonlyArray<string>): ReadonlyArray<string> => {
  const margin = " ".repeat(Text.width(marker))
  return [`${marker}${first}`, ...others.map((line) => (line === "" ? "" : `${margin}${line}`))]
}

const rawLines = (text: string): ReadonlyArray<string> => Text.lines(text.trimEnd()).split("\n")

const ruleOf = (columns: number, look: Text.Look): string => Text.paint("─".repeat(columns), "quiet", look)

/** Keeps code as it is, between its fences, so that it can be copied. */
const codeLines = (token: Tokens.Code, look: Text.Look): ReadonlyArray<string> => {
  const fence = /^ *(`{3,}|~{3,})/.exec(token.raw)?.[1] ?? "```"
  const lines = token.codeBlockStyle === "indented" ? token.text.split("\n") : fencedLines(token.raw, fence)
  return [
    Text.paint(`${fence}${Text.flat(token.lang ?? "")}`, "quiet", look),
    ...lines.map(Text.lines),
    Text.paint(fence, "quiet", look)
  ]
}

/** Returns the lines between fences, of which the second may not be there yet. */
const fencedLines = (raw: string, fence: string): ReadonlyArray<string> => {
  const indent = new RegExp(`^ {0,${raw.search(/[^ ]/)}}`)
  const [, ...lines] = raw.replace(/\n$/, "").split("\n")
  const last = lines.at(-1)?.trim() ?? ""
  const isClosed = last.startsWith(fence) && last.replaceAll(fence.charAt(0), "") === ""
  return (isClosed ? lines.slice(0, -1) : lines).map((line) => line.replace(indent, ""))
}

/** Draws a table, or each of its rows as lines if the terminal is too narrow: no cell of an answer is cut. */
const tableLines = ({ header, rows }: Tokens.Table, look: Text.Look): ReadonlyArray<string> => {
  const titles = header.map(({ tokens }) => bare(tokens))
  const texts = rows.map((cells) => cells.map(({ tokens }) => bare(tokens)))
  const columns = titles.map((title, index) => ({
    title,
    cell: (row: ReadonlyArray<string>) => row[index] ?? ""
  }))
  const [first = "", ...others] = table(columns, texts, { ...look, columns: 60_000 })
    .trimEnd()
    .split("\n")
  const width = Math.max(...[first, ...others].map(Text.width))
  if (width <= look.columns) {
    return titles.some((title) => title !== "") ? [first, ruleOf(width, look), ...others] : [first, ...others]
  }
  return texts.flatMap((cells, row) => [
    ...(row === 0 ? [] : [""]),
    ...cells.flatMap((text, index) => {
      if (text === "") return []
      const title: Run = { text: `${titles[index] ?? ""}: `, tones: ["title"] }
      return wrapped(painted([title, { text, tones: [] }], look), look)
    })
  ])
}

// ---------------------------------------------------------------- prose

/** A part of prose, with its tones. */
interface Run {
  readonly text: string
  readonly tones: ReadonlyArray<Text.Tone>
}

const proseLines = (
  tokens: ReadonlyArray<Token>,
  look: Text.Look,
  tones: ReadonlyArray<Text.Tone> = []
): ReadonlyArray<string> => wrapped(painted(runsOf(tokens, look, tones), look), look)

/** Returns the text of a cell, without marks of emphasis. */
const bare = (tokens: ReadonlyArray<Token>): string =>
  runsOf(tokens, { columns: 0, colors: true }, [])
    .map(({ text }) => text)
    .join("")

const runsOf = (tokens: ReadonlyArray<Token>, look: Text.Look, tones: ReadonlyArray<Text.Tone>): ReadonlyArray<Run> =>
  tokens.filter(isOwn).flatMap((token) => runsOfToken(token, look, tones))

const runsOfToken = (token: MarkedToken, look: Text.Look, tones: ReadonlyArray<Text.Tone>): ReadonlyArray<Run> => {
  const marked = (inner: ReadonlyArray<Run>, mark: string): ReadonlyArray<Run> =>
    look.colors ? inner : [{ text: mark, tones }, ...inner, { text: mark, tones }]
  switch (token.type) {
    case "strong":
      return marked(runsOf(token.tokens, look, [...tones, "title"]), "**")
    case "em":
      return marked(runsOf(token.tokens, look, [...tones, "emphasis"]), "*")
    case "del":
      return marked(runsOf(token.tokens, look, [...tones, "struck"]), "~~")
    case "codespan":
      return marked([{ text: token.text, tones: [...tones, "label"] }], "`")
    case "br":
      return [{ text: "\n", tones }]
    case "link":
      return linked(runsOf(token.tokens, look, tones), token)
    case "image":
      return linked([{ text: token.text, tones }], token)
    case "checkbox":
      return []
    case "escape":
      return [{ text: token.text, tones }]
    case "text":
      return token.tokens === undefined ? [{ text: token.text, tones }] : runsOf(token.tokens, look, tones)
    default:
      return [{ text: token.raw, tones }]
  }
}

/** Adds the address of a link, unless its text is the address. */
const linked = (runs: ReadonlyArray<Run>, { href, text }: Tokens.Link | Tokens.Image): ReadonlyArray<Run> =>
  href === text || href === `mailto:${text}` ? runs : [...runs, { text: ` (${href})`, tones: ["quiet"] }]

/** Colors runs word by word, so that they can be wrapped. */
const painted = (runs: ReadonlyArray<Run>, look: Text.Look): string => {
  const texts = runs.map(({ text }) => Text.lines(text))
  const whole = Text.lines(runs.map(({ text }) => text).join(""))
  // Emphasis inside a word must not hide that the word imitates another one.
  if (texts.join("") !== whole) return whole
  return runs
    .map(({ tones }, index) => {
      const paint = (word: string) => tones.reduce((text, tone) => Text.paint(text, tone, look), word)
      return (texts[index] ?? "").replace(/[^ \t\n]+/g, paint)
    })
    .join("")
}

/** Breaks lines between words. A longer word stays whole, so that an address can be copied. */
const wrapped = (text: string, look: Text.Look): ReadonlyArray<string> =>
  text.split("\n").flatMap((line) => {
    const lines: Array<string> = []
    let room = 0
    for (const word of line.trim().split(/[ \t]+/)) {
      const width = Text.width(word)
      if (lines.length > 0 && width < room) {
        lines[lines.length - 1] += ` ${word}`
        room -= width + 1
      } else {
        lines.push(word)
        room = Math.min(look.columns, widest) - width
      }
    }
    return lines
  })

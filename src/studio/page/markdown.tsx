/**
 * Markdown as elements: the tokens of marked, drawn without HTML. HTML in a text stays text, pictures become links, and
 * links say where they lead.
 */

import { Lexer, type MarkedToken, type Token, type Tokens } from "marked"
import type { ComponentChild } from "preact"
import { useMemo, useRef } from "preact/hooks"
import { CodeText } from "./codeText.tsx"

/** The most characters that are read as Markdown. A longer text is shown as it is. */
const most = 60_000

export const Markdown = ({ text }: { text: string }) => {
  const before = useRef<Lexed>({ text: "", tokens: [] })
  const tokens = useMemo(
    () => (text.length > most ? undefined : (before.current = lexed(text, before.current)).tokens),
    [text]
  )
  return <div class="markdown">{tokens === undefined ? <pre>{text}</pre> : drawn(tokens)}</div>
}

interface Lexed {
  readonly text: string
  readonly tokens: ReadonlyArray<Token>
}

/** Reads a text. Of a text that grew, as one that streams, only the last block and what follows it are read again. */
const lexed = (given: string, before: Lexed): Lexed => {
  const text = given.replace(/\r\n?/g, "\n")
  const open = text.startsWith(before.text) ? before.tokens.findLastIndex(({ type }) => type !== "space") : 0
  const kept = before.tokens.slice(0, Math.max(open, 0))
  const from = kept.reduce((length, { raw }) => length + raw.length, 0)
  return { text, tokens: [...kept, ...Lexer.lex(text.slice(from))] }
}

const drawn = (tokens: ReadonlyArray<Token>): ReadonlyArray<ComponentChild> =>
  tokens.map((token, index) => (isOwn(token) ? draw(token, index) : token.raw))

/** Whether a token is one of marked itself. Those of extensions do not occur. */
const isOwn = (token: Token): token is MarkedToken => "raw" in token

const draw = (token: MarkedToken, index: number): ComponentChild => {
  switch (token.type) {
    case "paragraph":
      return <p key={index}>{drawn(token.tokens)}</p>
    case "heading":
      return <Heading key={index} token={token} />
    case "code":
      return <CodeText key={index} code={token.text} language={token.lang ?? ""} />
    case "blockquote":
      return <blockquote key={index}>{drawn(token.tokens)}</blockquote>
    case "list":
      return <List key={index} token={token} />
    case "table":
      return <Table key={index} token={token} />
    case "hr":
      return <hr key={index} />
    case "space":
    case "def":
      return null
    default:
      return drawInline(token, index)
  }
}

const drawInline = (token: MarkedToken, index: number): ComponentChild => {
  switch (token.type) {
    case "strong":
      return <strong key={index}>{drawn(token.tokens)}</strong>
    case "em":
      return <em key={index}>{drawn(token.tokens)}</em>
    case "del":
      return <del key={index}>{drawn(token.tokens)}</del>
    case "codespan":
      return <code key={index}>{token.text}</code>
    case "br":
      return <br key={index} />
    case "link":
      return <Link key={index} href={token.href} text={drawn(token.tokens)} />
    case "image":
      return <Link key={index} href={token.href} text={token.text} />
    case "checkbox":
      return token.checked ? "☑ " : "☐ "
    case "escape":
      return token.text
    case "text":
      return "tokens" in token && token.tokens !== undefined ? drawn(token.tokens) : decoded(token.text)
    default:
      return token.raw
  }
}

const names: { readonly [name: string]: string | undefined } = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  "#39": "'",
  nbsp: " "
}

const decoded = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (entity, name: string) => names[name] ?? entity)

/** Headings of a text stand below those of the page, on one level: a text may begin with any. */
const Heading = ({ token: { depth, tokens } }: { token: Tokens.Heading }) => (
  <p class={`heading-${Math.min(depth, 4)}`} role="heading" aria-level={3}>
    {drawn(tokens)}
  </p>
)

const List = ({ token: { items, ordered, start } }: { token: Tokens.List }) => {
  const lines = items.map(({ tokens }, index) => <li key={index}>{drawn(tokens)}</li>)
  return ordered ? <ol start={start === "" ? 1 : start}>{lines}</ol> : <ul class="dots">{lines}</ul>
}

const Table = ({ token: { align, header, rows } }: { token: Tokens.Table }) => {
  const classOf = (index: number) => (align[index] === "right" ? "number" : "")
  return (
    <div class="wide" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {header.map(({ tokens }, index) => (
              <th key={index} scope="col" class={classOf(index)}>
                {drawn(tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map(({ tokens }, index) => (
                <td key={index} class={classOf(index)}>
                  {drawn(tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** A link to another site with its host, unless its text is the address. Addresses of other kinds stay text. */
const Link = ({ href, text }: { href: string; text: ComponentChild }) => {
  const url = URL.canParse(href) ? new URL(href) : undefined
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    return (
      <span>
        {text} ({href})
      </span>
    )
  }
  return (
    <a href={url.href} target="_blank" rel="noopener noreferrer nofollow">
      {text} <small>{url.host}</small>
    </a>
  )
}

/** Code with colors, and a button that copies it. */

import { type ParseOptions, tokenize } from "sugar-high/core"
import * as css from "sugar-high/lang/css"
import * as jsonLanguage from "sugar-high/lang/json"
import * as python from "sugar-high/lang/python"
import * as shell from "sugar-high/lang/shell"
import * as sql from "sugar-high/lang/sql"
import * as typescript from "sugar-high/lang/typescript"
import * as yaml from "sugar-high/lang/yaml"
import { Icon } from "./icons.tsx"
import { say } from "./toasts.tsx"

/** The classes of the kinds of sugar-high's tokens, by their numbers. */
const classes: ReadonlyArray<string> = ["", "code-word", "code-text", "code-name", "", "code-name", "", "", "code-note"]

const languages: { readonly [name: string]: ParseOptions | undefined } = {
  css,
  json: jsonLanguage,
  py: python,
  python,
  sh: shell,
  bash: shell,
  shell,
  sql,
  yaml,
  yml: yaml
}

/** The most characters that get colors. */
const most = 20_000

/** Languages without colors. */
const plain = /^(?:|text|plain|plaintext|txt|log|diff)$/

export const CodeText = ({ code, language }: { code: string; language: string }) => (
  <div class="code">
    <p>
      <small>{language}</small>
      <button
        class="plain"
        aria-label="Copy the code"
        onClick={() => void navigator.clipboard?.writeText(code).then(() => say("Copied"))}
      >
        <Icon name="copy" />
      </button>
    </p>
    <pre tabIndex={0}>
      {plain.test(language) || code.length > most ? code : colored(code, languages[language] ?? typescript)}
    </pre>
  </div>
)

const colored = (code: string, language: ParseOptions) =>
  (language.tokenize ?? tokenize)(code, language).map(([kind, text], index) => shownToken(classes[kind], text, index))

const shownToken = (name: string | undefined, text: string, key: number) =>
  name === undefined || name === "" ? (
    text
  ) : (
    <span key={key} class={name}>
      {text}
    </span>
  )

/** Returns the lines of a program in TypeScript with colors. */
export const coloredLines = (code: string): ReadonlyArray<ReturnType<typeof colored>> => {
  if (code.length > most) return code.split("\n").map((line) => [line])
  const lines: Array<ReturnType<typeof colored>> = [[]]
  for (const [kind, text] of (typescript.tokenize ?? tokenize)(code, typescript)) {
    for (const [index, piece] of text.split("\n").entries()) {
      if (index > 0) lines.push([])
      const line = lines.at(-1) ?? []
      line.push(shownToken(classes[kind], piece, line.length))
    }
  }
  return lines
}

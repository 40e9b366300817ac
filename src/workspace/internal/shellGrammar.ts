/**
 * Reads a command line of the shell as simple commands, as POSIX defines them: words with quotes and escapes, joined by
 * `;`, `&&`, `||`, `|`, `&` and line ends.
 *
 * Whatever may run, assign or write something that the words do not show is not simple: expansions and substitutions,
 * groups, functions and loops, assignments, here-documents, and redirections to files.
 */

/** The words of one command, without their quotes. */
export type Words = ReadonlyArray<string>

/** Returns the simple commands of a line. Undefined if it has anything else. */
export const simpleCommands = (line: string): ReadonlyArray<Words> | undefined => {
  const tokens = tokensOf(line)
  if (tokens === undefined) return undefined
  const commands: Array<Words> = []
  let words: Array<Word> = []
  let needsMore = false
  for (const token of tokens) {
    if (token._tag === "Word") {
      words.push(token)
      needsMore = false
      continue
    }
    if (words.length === 0) {
      // Empty lines are fine, `;;` and a leading `&&` are not.
      if (token.text === "\n") continue
      return undefined
    }
    if (!isSimple(words)) return undefined
    commands.push(words.map(({ text }) => text))
    words = []
    needsMore = token.text === "&&" || token.text === "||" || token.text === "|"
  }
  if (words.length > 0) {
    if (!isSimple(words)) return undefined
    commands.push(words.map(({ text }) => text))
  }
  return needsMore || commands.length === 0 ? undefined : commands
}

interface Word {
  readonly _tag: "Word"
  readonly text: string
  readonly isQuoted: boolean
}

type Token = Word | { readonly _tag: "Operator"; readonly text: string }

const isSimple = ([first]: ReadonlyArray<Word>): boolean =>
  first !== undefined &&
  !(/^[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=/.test(first.text) || (!first.isQuoted && reserved.has(first.text)))

const reserved: ReadonlySet<string> = new Set(
  "! { } [[ case coproc do done elif else esac fi for function if in select then time until while".split(" ")
)

/** Redirections that write no file, at the start of the rest of a line. */
const harmless = /^(?:[012]?>&[12]|(?:[012]|&)?>[ \t]*\/dev\/null|0?<[ \t]*\/dev\/null)(?=$|[ \t\n;&|])/

const operator = /^(?:&&|\|\||\||;|&|\n)/

const tokensOf = (line: string): ReadonlyArray<Token> | undefined => {
  const tokens: Array<Token> = []
  let at = 0
  while (at < line.length) {
    const rest = line.slice(at)
    const space = /^(?:[ \t]|\\\n)+/.exec(rest) ?? /^#[^\n]*/.exec(rest) ?? harmless.exec(rest)
    if (space !== null) {
      at += space[0].length
      continue
    }
    const joined = operator.exec(rest)
    if (joined !== null) {
      tokens.push({ _tag: "Operator", text: joined[0] })
      at += joined[0].length
      continue
    }
    const word = wordAt(line, at)
    if (word === undefined) return undefined
    tokens.push({ _tag: "Word", text: word.text, isQuoted: word.isQuoted })
    at = word.end
  }
  return tokens
}

/** Reads a word. Undefined if it expands to something else, or its quotes do not end. */
const wordAt = (line: string, start: number): { text: string; isQuoted: boolean; end: number } | undefined => {
  let text = ""
  let isQuoted = false
  let at = start
  for (; at < line.length; at++) {
    const char = line.charAt(at)
    if (/[ \t\n;&|]/.test(char)) break
    if (/[$`<>()]|\s|\p{Cc}/u.test(char)) return undefined
    // `{a,b}` becomes several words, `~` becomes a folder.
    if (char === "{" && line.slice(at).includes("}") && line.charAt(at + 1) !== "}") return undefined
    if (char === "~" && at === start) return undefined
    if (char === "'" || char === '"') {
      const quoted = char === "'" ? /^'([^']*)'/.exec(line.slice(at)) : /^"((?:[^"\\$`]|\\[^])*)"/.exec(line.slice(at))
      if (quoted === null) return undefined
      text +=
        char === "'"
          ? quoted[1]
          : (quoted[1] ?? "").replace(/\\([$`"\\\n])/g, (_, escaped) => (escaped === "\n" ? "" : escaped))
      isQuoted = true
      at += quoted[0].length - 1
      continue
    }
    if (char === "\\") {
      at++
      if (at === line.length) return undefined
      text += line.charAt(at) === "\n" ? "" : line.charAt(at)
      isQuoted = true
      continue
    }
    text += char
  }
  return { text, isQuoted, end: at }
}

/** Returns whether a command begins with the words of a prefix. */
export const hasPrefix = (words: Words, prefix: Words): boolean =>
  prefix.length > 0 && prefix.every((word, index) => words[index] === word)

/** Returns the words by which a person would allow a command again: the program and its subcommand, or all of them. */
export const prefixOf = (words: Words): Words => {
  const [program = "", second] = words
  if (runners.has(program.slice(program.lastIndexOf("/") + 1))) return words
  return second === undefined || !/^[a-z][\w:-]*$/i.test(second) ? [program] : [program, second]
}

/** Programs that run what their other words say. */
const runners: ReadonlySet<string> = new Set(
  ". awk bash bun busybox command dash deno doas env eval exec find ksh make nice node nohup npx parallel perl php python python3 ruby setsid sh source ssh su sudo time timeout tsx uvx watch xargs zsh".split(
    " "
  )
)

/** Writes a word so that it is read as the same word again. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

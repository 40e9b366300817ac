/**
 * Splits a command line into words the way a POSIX shell would, and stops there:
 * no variable, no operator, no pattern means anything, so every word is an argument (S-1).
 */

/** The words of a command line, or undefined when a quote is never closed. */
export const split = (line: string): ReadonlyArray<string> | undefined => {
  const words: Array<string> = []
  let word: string | undefined
  let quote = ""
  for (let index = 0; index < line.length; index++) {
    const char = line.charAt(index)
    if (quote === "'") {
      if (char === "'") quote = ""
      else word += char
    } else if (quote === '"') {
      const next = line.charAt(index + 1)
      if (char === '"') quote = ""
      // Between double quotes a backslash escapes only what would be special there.
      else if (char === "\\" && next !== "" && '"\\$`\n'.includes(next)) {
        index++
        if (next !== "\n") word += next
      } else word += char
    } else if (char === "'" || char === '"') {
      quote = char
      word ??= ""
    } else if (char === "\\" && index + 1 < line.length) {
      const next = line.charAt(++index)
      if (next !== "\n") word = (word ?? "") + next
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else {
      word = (word ?? "") + char
    }
  }
  if (quote !== "") return undefined
  if (word !== undefined) words.push(word)
  return words
}

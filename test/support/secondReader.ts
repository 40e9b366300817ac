/**
 * A second reader of the block grammar, to check the parser against.
 *
 * Slow and plain on purpose: the whole text, one position after the other, by
 * the letter of BP-2, BP-7, BP-8, BP-10 and BP-11. It shares no code with the
 * parser and knows nothing of pieces.
 */
export interface Found {
  readonly type: string
  readonly name: string | null
  readonly content: string
}

export interface Reading {
  readonly blocks: ReadonlyArray<Found>
  readonly text: string
  readonly unclosed: Found | undefined
}

const canonical = /<block[\t\n\v\f\r ]+type="([^"]+)"(?:[\t\n\v\f\r ]+name="([^"]*)")?[\t\n\v\f\r ]*>/y
const shorthand = /<(command|json|final|plan|result|error)(?:[\t\n\v\f\r ]+name="([^"]*)")?[\t\n\v\f\r ]*>/y

const matchAt = (pattern: RegExp, text: string, at: number) => {
  pattern.lastIndex = at
  return pattern.exec(text)
}

/** Where the content that starts here ends, and where the text goes on. */
const findEnd = (text: string, start: number, closing: string): readonly [number, number] | undefined => {
  let level = 1
  for (let at = start; at < text.length; at++) {
    if (text.startsWith(closing, at)) {
      level -= 1
      if (level === 0) return [at, at + closing.length]
    }
    if (closing === "</block>" && /^<block[\t\n\v\f\r >]/.test(text.slice(at, at + 7))) level += 1
  }
  return undefined
}

export const read = (text: string, longestTag = 4096): Reading => {
  const blocks: Array<Found> = []
  let outside = ""
  let at = 0
  while (at < text.length) {
    const long = matchAt(canonical, text, at)
    const match = long ?? matchAt(shorthand, text, at)
    if (match === null || match[0].length > longestTag) {
      outside += text.charAt(at)
      at += 1
      continue
    }
    const block = { type: match[1] ?? "", name: match[2] ?? null }
    const start = at + match[0].length
    const end = findEnd(text, start, long === null ? `</${block.type}>` : "</block>")
    if (end === undefined) return { blocks, text: outside, unclosed: { ...block, content: text.slice(start) } }
    blocks.push({ ...block, content: text.slice(start, end[0]) })
    at = end[1]
  }
  return { blocks, text: outside, unclosed: undefined }
}

/**
 * Counts the pages of a PDF file without reading it whole.
 *
 * A file says its pages in the root of its page tree, or at its beginning if it is prepared for the web. Newer files may
 * compress the page tree, and then the number stays unknown.
 */

/** Returns the number of pages. Undefined if the file does not show it. */
export const pdfPages = (bytes: Uint8Array): number | undefined => {
  const head = latin.decode(bytes.subarray(0, headBytes))
  if (!head.includes("%PDF-")) return undefined
  const linear = /\/Linearized[^>]{0,500}?\/N\s{1,8}(\d{1,7})/.exec(head)?.[1]
  if (linear !== undefined) return Number(linear)
  const text = bytes.length <= headBytes ? head : latin.decode(bytes)
  let most: number | undefined
  let trees = 0
  for (const { index } of text.matchAll(/\/Type\s{0,8}\/Pages(?![A-Za-z])/g)) {
    if (++trees > maxTrees) break
    const count = Number(/\/Count\s{1,8}(\d{1,7})/.exec(dictionaryAt(text, index))?.[1] ?? NaN)
    if (count > (most ?? 0)) most = count
  }
  return most
}

const latin = new TextDecoder("latin1")

const headBytes = 2_048

/** The root of a page tree counts all pages. It may stand behind its branches. */
const maxTrees = 100_000

/** Returns the part of a dictionary around a place, as far as no other one begins or ends. */
const dictionaryAt = (text: string, at: number): string => {
  const before = text.slice(Math.max(0, at - 300), at)
  const after = text.slice(at, at + 300)
  const end = after.search(/<<|>>/)
  return (
    before.slice(Math.max(before.lastIndexOf("<<"), before.lastIndexOf(">>")) + 1) +
    (end < 0 ? after : after.slice(0, end))
  )
}

/**
 * Which functions of the sources run: counted by V8, as lines of code without comments and blanks.
 *
 * A function that is entered counts whole, without the functions inside it that are not entered; a module that is only
 * loaded counts nothing. Types are no code.
 */
import { readFileSync } from "node:fs"
import { type Profiler, Session } from "node:inspector"
import { stripTypeScriptTypes } from "node:module"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const src = join(import.meta.dirname, "../src")

/** Lines of entered functions by file of `src`. */
export type Entered = { readonly [file: string]: number }

/** Blanks out types and comments; every character keeps its place. */
const code = (text: string): string =>
  stripTypeScriptTypes(text, { mode: "strip" }).replace(/\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm, (comment) =>
    comment.replace(/[^\n]/g, " ")
  )

const linesOf = (path: string, functions: ReadonlyArray<Profiler.FunctionCoverage>): number => {
  const text = code(readFileSync(path, "utf8"))
  const ranges = functions.flatMap(({ functionName, ranges: [range] }) => {
    const isModule = functionName === "" && range?.startOffset === 0
    return range === undefined || isModule ? [] : [range]
  })
  // Functions inside others come after them.
  ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset)
  const isEntered = new Uint8Array(text.length)
  for (const { count, endOffset, startOffset } of ranges) isEntered.fill(count > 0 ? 1 : 0, startOffset, endOffset)
  let start = 0
  return text.split("\n").reduce((sum, line) => {
    const has = [...line].some((character, index) => character.trim() !== "" && isEntered[start + index] === 1)
    start += line.length + 1
    return has ? sum + 1 : sum
  }, 0)
}

/** Counts the calls between `begin` and `end`. */
export class Span {
  private readonly session = new Session()
  entered: Entered = {}

  constructor() {
    this.session.connect()
    this.session.post("Profiler.enable")
    this.session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false })
  }

  /** Forgets the calls before. */
  begin() {
    this.session.post("Profiler.takePreciseCoverage")
  }

  end() {
    this.session.post("Profiler.takePreciseCoverage", (error, coverage) => {
      if (error !== null) throw error
      const own = coverage.result.filter(({ url }) => url.startsWith("file:") && fileURLToPath(url).startsWith(src))
      const lines = own.map(({ functions, url }) => {
        const path = fileURLToPath(url)
        return [relative(src, path), linesOf(path, functions)] as const
      })
      this.entered = Object.fromEntries(lines.filter(([, count]) => count > 0))
    })
  }
}

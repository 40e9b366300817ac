/**
 * Globs over file paths, whose parts are separated by `/`.
 *
 * `**` matches any number of folders, including none. Within one part, `*`, `?`, `[a-z]` and `{a,b}` match as in other
 * globs, and never a `/`.
 */

import * as Result from "effect/Result"
import * as Pattern from "../../kit/pattern.ts"

/** The globs of a folder. */
interface FileGlobs {
  readonly matches: (path: string) => boolean
  /** True if files in subfolders may match. */
  readonly isDeep: boolean
}

/** Compiles globs. Fails with the first invalid glob and the reason. */
export const compile = (
  globs: ReadonlyArray<string>
): Result.Result<FileGlobs, { readonly glob: string; readonly reason: string }> => {
  const spend = Pattern.budget()
  return Result.map(
    Result.all(globs.map((glob) => Result.mapError(partsOf(glob, spend), (reason) => ({ glob, reason })))),
    (compiled) => ({
      matches: (path) => {
        const names = path.split("/")
        return compiled.some((parts) => fits(parts, names))
      },
      isDeep: compiled.some((parts) => parts.length > 1 || parts[0] === anyFolders)
    })
  )
}

const anyFolders = "**"

type Part = Pattern.Matcher | typeof anyFolders

const partsOf = (glob: string, spend: Pattern.Budget): Result.Result<ReadonlyArray<Part>, string> => {
  const parts = glob.replace(/^(?:\.\/)+/, "").split("/")
  if (parts.some((part) => part === "" || part === "." || part === "..")) {
    return Result.fail("a glob is a path below the folder, such as '**/*.ts'")
  }
  return Result.all(
    parts.map((part): Result.Result<Part, string> =>
      part === anyFolders ? Result.succeed(anyFolders) : Pattern.glob(part, spend)
    )
  )
}

/** Compares part by part. Tracks the set of positions in the glob, so that no glob is slow. */
const fits = (parts: ReadonlyArray<Part>, names: ReadonlyArray<string>): boolean => {
  let at = reach(parts, [0])
  for (const name of names) {
    const next: Array<number> = []
    for (const position of at) {
      const part = parts[position]
      if (part === anyFolders) next.push(position)
      else if (part?.(name) === true) next.push(position + 1)
    }
    at = reach(parts, next)
  }
  return at.has(parts.length)
}

/** Adds the positions after each `**`, which may match no folder. */
const reach = (parts: ReadonlyArray<Part>, positions: ReadonlyArray<number>): ReadonlySet<number> => {
  const reached = new Set<number>()
  for (let position of positions) {
    reached.add(position)
    while (parts[position] === anyFolders) reached.add(++position)
  }
  return reached
}

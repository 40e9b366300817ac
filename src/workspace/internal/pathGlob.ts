/**
 * Globs over the paths of a workspace. `**` matches any number of folders; a glob without `/` matches names anywhere.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { quote } from "../../kit/text.ts"
import * as Pattern from "../../kit/pattern.ts"
import { WorkspaceError } from "../WorkspaceError.ts"

/** Compiles a glob, which takes linear time for any path. */
export const compile = (glob: string): Effect.Effect<(path: string) => boolean, WorkspaceError> => {
  const deep = glob.includes("/") ? glob.replace(/^(?:\.?\/)+/, "") : `**/${glob}`
  const spend = Pattern.budget()
  const parts = Result.all(
    // A repeated `**` means the same as one.
    deep
      .split("/")
      .filter((part, index, all) => part !== "**" || all[index - 1] !== "**")
      .map((part): Result.Result<Pattern.Matcher | undefined, string> =>
        part === "**" ? Result.succeed(undefined) : Pattern.glob(part, spend)
      )
  )
  return Result.isFailure(parts)
    ? Effect.fail(
        new WorkspaceError({ reason: "invalid", detail: `the glob ${quote(glob.slice(0, 200))}: ${parts.failure}` })
      )
    : Effect.succeed((path) => fits(parts.success, path.split("/")))
}

/** Follows all positions in the glob at once, so that no glob is slow. */
const fits = (parts: ReadonlyArray<Pattern.Matcher | undefined>, names: ReadonlyArray<string>): boolean => {
  const reach = (positions: Iterable<number>) => {
    const all = new Set(positions)
    for (const position of all) if (position < parts.length && parts[position] === undefined) all.add(position + 1)
    return all
  }
  let at = reach([0])
  for (const name of names) {
    const next: Array<number> = []
    for (const position of at) {
      if (position === parts.length) continue
      const part = parts[position]
      if (part === undefined) next.push(position)
      else if (part(name)) next.push(position + 1)
    }
    at = reach(next)
  }
  return at.has(parts.length)
}

/**
 * Walks the folders of a backend, and searches its files by reading them.
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Backend, ContentLimits, Match, Search } from "../WorkspaceBackend.ts"
import { WorkspaceError } from "../WorkspaceError.ts"
import * as Glob from "./pathGlob.ts"
import * as Lines from "./lineMatcher.ts"
import { decode } from "./textFile.ts"
import { join, nameOf } from "./workspacePath.ts"

/** Folders that searches leave out, unless their path names one of them. */
export const skipped: ReadonlySet<string> = new Set([".git", "node_modules"])

const maxEntries = 200_000
/** Bytes of the largest file that is searched. */
export const maxFileBytes = 4 * 1024 * 1024

/** Emits the plain files below a path, in order of their names. Links are not followed. */
export const files = (backend: Pick<Backend, "entries">, path: string): Stream.Stream<string, WorkspaceError> => {
  let seen = 0
  const below = (folder: string): Stream.Stream<string, WorkspaceError> =>
    Stream.unwrap(
      Effect.map(backend.entries(folder), (entries) => {
        seen += entries.length
        if (seen > maxEntries)
          return Stream.fail(
            new WorkspaceError({ reason: "too_large", detail: `there are more than ${maxEntries} files` })
          )
        return Stream.concat(
          Stream.fromIterable(entries.flatMap(({ kind, name }) => (kind === "file" ? [join(folder, name)] : []))),
          Stream.flatMap(
            Stream.fromIterable(entries.filter(({ kind, name }) => kind === "folder" && !skipped.has(name))),
            ({ name }) => below(join(folder, name))
          )
        )
      })
    )
  return below(path)
}

/** Reads files one by one, as long as they fit. */
export const contents = Effect.fnUntraced(function* (
  backend: Backend,
  paths: ReadonlyArray<string>,
  { maxBytes, maxFileBytes }: ContentLimits
) {
  const found = new Map<string, Uint8Array>()
  let left = maxBytes
  for (const path of paths) {
    const bytes = yield* Effect.orElseSucceed(backend.read(path, Math.min(maxFileBytes, left)), () => undefined)
    if (bytes === undefined) continue
    found.set(path, bytes)
    left -= bytes.length
  }
  return found
})

/** Searches files by reading them. Files without text and large ones are left out. */
export const search = (backend: Backend, { glob, ignoreCase, path, pattern }: Search) =>
  Stream.unwrap(
    Effect.map(
      Effect.all([Lines.compile(pattern, ignoreCase), glob === undefined ? Effect.undefined : Glob.compile(glob)]),
      ([lines, fits]) =>
        Stream.catchIf(
          files(backend, path),
          ({ reason }) => reason === "not_a_folder",
          () => Stream.succeed(path)
        ).pipe(
          Stream.filter((file) => fits === undefined || fits(below(path, file))),
          Stream.flatMap((file) => matchesOf(backend, file, lines))
        )
    )
  )

/** Returns the path of a file as seen from where the search begins. */
const below = (start: string, file: string): string =>
  file === start ? nameOf(file) : start === "" ? file : file.slice(start.length + 1)

const matchesOf = (backend: Backend, path: string, lines: Lines.LineMatcher): Stream.Stream<Match, WorkspaceError> =>
  Stream.unwrap(
    Effect.match(backend.read(path, maxFileBytes), {
      onFailure: () => Stream.empty,
      onSuccess: (bytes) => {
        const text = decode(bytes)?.text
        return text === undefined
          ? Stream.empty
          : Stream.fromIterable(lines(text, Infinity).map((found): Match => ({ path, ...found })))
      }
    })
  )

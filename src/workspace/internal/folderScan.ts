/**
 * Walks and reads many files of a folder on disk, a slice at a time.
 *
 * Asking the event loop for each file would take several times as long. Links are not followed: a folder that is
 * replaced by one is left out.
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readlinkSync, readSync } from "node:fs"
import type { ContentLimits, Match, Search } from "../WorkspaceBackend.ts"
import { WorkspaceError } from "../WorkspaceError.ts"
import * as Glob from "./pathGlob.ts"
import * as Lines from "./lineMatcher.ts"
import { maxFileBytes, skipped } from "./readSearch.ts"
import { decode } from "./textFile.ts"
import { join } from "./workspacePath.ts"

/** Milliseconds after which other fibers run. */
const slice = 8

/** Emits the matches in a real folder, or in one file of it, whose paths begin with `prefix`. */
export const search = (
  where: { readonly folder: string; readonly file: string | undefined; readonly prefix: string },
  { glob, ignoreCase, pattern }: Search
): Stream.Stream<Match, WorkspaceError> =>
  Stream.unwrap(
    Effect.map(
      Effect.all([Lines.compile(pattern, ignoreCase), glob === undefined ? Effect.undefined : Glob.compile(glob)]),
      ([lines, fits]) => sliced(matches(where, lines, fits))
    )
  )

/** Returns the size and times of files below a real folder. */
export const signatures = (
  root: string,
  paths: ReadonlyArray<string>
): Effect.Effect<ReadonlyMap<string, string>, WorkspaceError> =>
  Effect.map(Stream.runCollect(sliced(stats(root, paths))), (all) => new Map(all))

/** Reads files below a real folder, as long as they fit. */
export const contents = (
  root: string,
  paths: ReadonlyArray<string>,
  limits: ContentLimits
): Effect.Effect<ReadonlyMap<string, Uint8Array>> =>
  Effect.map(Stream.runCollect(sliced(bytes(root, paths, limits))), (all) => new Map(all))

/** Emits the values of a generator, which runs in slices. Undefined values are left out. */
const sliced = <A>(values: Generator<A | undefined>): Stream.Stream<A> =>
  Stream.flattenIterable(
    Stream.fromEffectRepeat(Effect.void).pipe(
      Stream.mapEffect(() =>
        Effect.andThen(
          Effect.yieldNow,
          Effect.sync(() => take(values))
        )
      ),
      Stream.takeUntil(({ isDone }) => isDone),
      Stream.map(({ items }) => items)
    )
  )

const take = <A>(values: Generator<A | undefined>): { readonly items: ReadonlyArray<A>; readonly isDone: boolean } => {
  const items: Array<A> = []
  const end = performance.now() + slice
  while (performance.now() < end) {
    const { done, value } = values.next()
    if (done === true) return { items, isDone: true }
    if (value !== undefined) items.push(value)
  }
  return { items, isDone: false }
}

function* stats(root: string, paths: ReadonlyArray<string>): Generator<readonly [string, string] | undefined> {
  for (const path of paths) {
    const found = lstatSync(`${root}/${path}`, { bigint: true, throwIfNoEntry: false })
    yield found === undefined ? undefined : [path, `${found.size} ${found.mtimeNs} ${found.ctimeNs} ${found.ino}`]
  }
}

function* bytes(
  root: string,
  paths: ReadonlyArray<string>,
  { maxBytes, maxFileBytes }: ContentLimits
): Generator<readonly [string, Uint8Array] | undefined> {
  // One byte more tells a file that is too long.
  const buffer = new Uint8Array(maxFileBytes + 1)
  let left = maxBytes
  for (const path of paths) {
    const found = bytesOf(`${root}/${path}`, buffer)
    const fits = found !== undefined && found.length <= left
    if (fits) left -= found.length
    yield fits ? [path, found.slice()] : undefined
  }
}

function* matches(
  { file, folder, prefix }: { readonly folder: string; readonly file: string | undefined; readonly prefix: string },
  lines: Lines.LineMatcher,
  fits: ((path: string) => boolean) | undefined
): Generator<Match | undefined> {
  const buffer = new Uint8Array(maxFileBytes)
  for (const path of file === undefined ? files(folder, "") : [file]) {
    const isWanted = path !== undefined && (fits === undefined || fits(path))
    const read = isWanted ? bytesOf(`${folder}/${path}`, buffer) : undefined
    const text = read === undefined ? undefined : decode(read)?.text
    if (path === undefined || text === undefined) yield undefined
    else for (const found of lines(text, Infinity)) yield { path: join(prefix, path), ...found }
    yield undefined
  }
}

/** Emits the plain files below a folder, and undefined between them. */
function* files(root: string, folder: string): Generator<string | undefined> {
  for (const { kind, name } of entries(`${root}/${folder}`)) {
    const path = join(folder, name)
    if (kind === "file") yield path
    else if (kind === "folder" && !skipped.has(name)) yield* files(root, path)
  }
  yield undefined
}

const entries = (folder: string) => {
  try {
    return readdirSync(folder, { withFileTypes: true }).map((entry) => ({
      name: entry.name,
      kind: entry.isFile() ? "file" : entry.isDirectory() ? "folder" : "other"
    }))
  } catch {
    return []
  }
}

/** Reads a plain file into a buffer. Undefined for everything else, and for a file that is reached over a link. */
const bytesOf = (path: string, buffer: Uint8Array): Uint8Array | undefined => {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      return isReached(file, path) ? readBytes(file, buffer) : undefined
    } finally {
      closeSync(file)
    }
  } catch {
    return undefined
  }
}

const readBytes = (file: number, buffer: Uint8Array): Uint8Array | undefined => {
  let length = 0
  while (length < buffer.length) {
    const count = readSync(file, buffer, length, buffer.length - length, null)
    if (count === 0) return buffer.subarray(0, length)
    length += count
  }
  return undefined
}

/** Returns whether an open file is a plain one at this path, without a link on the way. */
const isReached = (file: number, path: string): boolean => {
  if (!fstatSync(file).isFile()) return false
  try {
    return readlinkSync(`/proc/self/fd/${file}`) === path
  } catch {
    // Only Linux shows the path of an open file.
    return true
  }
}

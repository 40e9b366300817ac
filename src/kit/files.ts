/**
 * Opens, reads and lists files, and writes files into folders that may not exist yet.
 *
 * A file that must be inside a folder is checked twice: its path before it is opened, and its descriptor before it is
 * read. Replacing a link between the two checks therefore cannot expose another file.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"

/** The reason why a file was not read: a text of ours, or an error of the file system. */
export type Refusal = string | PlatformError

/** An open file, and its size when it was opened. */
interface Opened {
  readonly file: FileSystem.File
  readonly size: number
}

/** Opens a plain file. With `folder`, a real path, fails for a file outside that folder. */
export const open = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  folder?: string
): Effect.fn.Return<Opened, Refusal, Scope.Scope> {
  const real = folder === undefined ? path : yield* realPathIn(files, path, folder)
  // Opening anything else, such as a pipe, may block forever.
  if ((yield* files.stat(real)).type !== "File") return yield* Effect.fail(notPlain)
  const file = yield* files.open(real, { flag: "r" })
  const { size, type } = yield* file.stat
  if (type !== "File") return yield* Effect.fail(notPlain)
  if (folder !== undefined) yield* requireInside(files, real, file, folder)
  return { file, size: Number(size) }
})

const notPlain = "not a plain file"

/** The reason for rejecting a file outside its folder. */
export const outside = "outside its folder"

/** Returns the first bytes of an open file, at most `length` of them. */
export const start = Effect.fnUntraced(function* (
  file: FileSystem.File,
  length: number
): Effect.fn.Return<Uint8Array, PlatformError> {
  let buffer = new Uint8Array(Math.min(length, firstBytes))
  let filled = 0
  while (filled < length) {
    if (filled === buffer.length) buffer = grown(buffer, Math.min(length, filled * 2))
    const count = yield* file.read(buffer.subarray(filled))
    if (count === 0) break
    filled += count
  }
  return buffer.subarray(0, filled)
})

const firstBytes = 64 * 1024

const grown = (bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> => {
  const longer = new Uint8Array(length)
  longer.set(bytes)
  return longer
}

/** Reads the bytes of a plain file of at most `maxBytes`. With `folder`, as `open`. */
export const bytes = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  maxBytes: number,
  folder?: string
): Effect.fn.Return<Uint8Array, Refusal, Scope.Scope> {
  const { file, size } = yield* open(files, path, folder)
  if (size > maxBytes) return yield* Effect.fail(tooLarge(maxBytes))
  // The file may grow in the meantime, and files in /proc report no size.
  const read = yield* start(file, maxBytes + 1)
  return read.length > maxBytes ? yield* Effect.fail(tooLarge(maxBytes)) : read
}, Effect.scoped)

/** Returns whether an error means that a path does not exist. */
export const isAbsent = ({ reason }: PlatformError): boolean => {
  if (reason._tag === "NotFound") return true
  const { cause } = reason
  return (
    cause instanceof Error &&
    "code" in cause &&
    (cause.code === "ENOTDIR" || cause.code === "ENAMETOOLONG" || cause.code === "ELOOP")
  )
}

/** Reads a plain file of at most `maxBytes` as UTF-8. With `folder`, as `open`. */
export const text = (
  files: FileSystem.FileSystem,
  path: string,
  maxBytes: number,
  folder?: string
): Effect.Effect<string, Refusal> =>
  Effect.map(bytes(files, path, maxBytes, folder), (read) => new TextDecoder().decode(read))

/** Returns the reason for rejecting a file of more than `maxBytes`. */
export const tooLarge = (maxBytes: number): string => `larger than ${maxBytes} bytes`

/** Lists a directory inside `folder`, a real path. */
export const list = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  folder: string
): Effect.fn.Return<ReadonlyArray<FileSystem.DirectoryEntry>, Refusal, Scope.Scope> {
  const real = yield* realPathIn(files, path, folder)
  const directory = yield* files.open(real, { flag: "r" })
  yield* requireInside(files, real, directory, folder)
  const link = linkOf(directory)
  const unlinked = files.readDirectoryEntries(real)
  return yield* link === undefined ? unlinked : Effect.catch(files.readDirectoryEntries(link), () => unlinked)
}, Effect.scoped)

/**
 * Returns the real path of a file, so that no file outside the folder is opened. A link may still change afterwards.
 */
const realPathIn = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  folder: string
): Effect.fn.Return<string, Refusal> {
  const real = yield* files.realPath(path)
  return isInside(folder, real) ? real : yield* Effect.fail(outside)
})

/** Checks the opened file, because links on its path may have changed in the meantime. */
const requireInside = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  file: FileSystem.File,
  folder: string
): Effect.fn.Return<void, Refusal> {
  if (!isInside(folder, yield* realPathOf(files, path, file))) return yield* Effect.fail(outside)
})

/** Returns whether a real path is inside a folder. */
export const isInside = (folder: string, real: string): boolean => {
  const separator = folder.startsWith("/") ? "/" : "\\"
  return real !== folder && real.startsWith(folder.endsWith(separator) ? folder : folder + separator)
}

/** Returns the real path of an open file: by its descriptor if the system exposes it, else by its identity. */
const realPathOf = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  file: FileSystem.File
): Effect.fn.Return<string, Refusal> {
  const link = linkOf(file)
  const shown = link === undefined ? undefined : yield* Effect.option(files.readLink(link))
  if (shown !== undefined && Option.isSome(shown)) return shown.value
  const real = yield* files.realPath(path)
  const [opened, found] = yield* Effect.all([file.stat, files.lstat(real)])
  return isSame(opened, found) ? real : yield* Effect.fail("replaced while it was opened")
})

const isSame = (one: FileSystem.File.Info, other: FileSystem.File.Info): boolean =>
  one.dev === other.dev && Option.getOrUndefined(one.ino) === Option.getOrUndefined(other.ino)

/** Returns the link that Linux keeps for an open file. */
const linkOf = (file: FileSystem.File): string | undefined =>
  "fd" in file && typeof file.fd === "number" ? `/proc/self/fd/${file.fd}` : undefined

/** Runs `write`, which opens or writes the file at `path`. If its folder is missing, creates it and runs `write` again. */
export const inMadeFolder = <A, R>(
  files: FileSystem.FileSystem,
  path: string,
  write: Effect.Effect<A, PlatformError, R>,
  options?: { readonly mode: number }
): Effect.Effect<A, PlatformError, R> =>
  Effect.catchIf(
    write,
    ({ reason }) => reason._tag === "NotFound",
    (error) => {
      const folder = path.replace(/[/\\][^/\\]*$/, "")
      return folder === "" || folder === path
        ? Effect.fail(error)
        : Effect.andThen(files.makeDirectory(folder, { recursive: true, ...options }), write)
    }
  )

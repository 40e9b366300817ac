/**
 * Files of a folder on disk. No link leads out of it, not even one that is replaced while a file is opened.
 *
 * A path is resolved once. Then its folder is opened and must be inside the root, and the file is reached through the
 * open folder (`/proc/self/fd/<n>/<name>`), which no later change of a link redirects. Systems without `/proc` check
 * the real path before and after.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import * as Files from "../../kit/files.ts"
import type { Backend, Entry } from "../WorkspaceBackend.ts"
import type { WorkspaceError } from "../WorkspaceError.ts"
import * as Problems from "./fileProblems.ts"
import { folderOf, nameOf } from "./workspacePath.ts"

/** Creates the file functions of a backend. The root is a real path. */
export const make = (
  fs: FileSystem.FileSystem,
  root: string,
  isWritable: (path: string) => boolean
): Pick<Backend, "entries" | "read" | "remove" | "write"> => {
  const folder = new Folder(fs, root, isWritable)
  return {
    read: (path, maxBytes) => Effect.scoped(read(folder, path, maxBytes)),
    write: (path, bytes) => Effect.scoped(write(folder, path, bytes)),
    remove: (path) => Effect.scoped(remove(folder, path)),
    entries: (path) => Effect.scoped(entries(folder, path))
  }
}

class Folder {
  readonly fs: FileSystem.FileSystem
  readonly root: string
  readonly #isWritable: (path: string) => boolean

  constructor(fs: FileSystem.FileSystem, root: string, isWritable: (path: string) => boolean) {
    this.fs = fs
    this.root = root
    this.#isWritable = isWritable
  }

  /** Returns the real path of a file or folder, which is inside the root. */
  real(path: string): Effect.Effect<string, WorkspaceError> {
    return Effect.flatMap(Effect.mapError(this.fs.realPath(`${this.root}/${path}`), problem(path)), (real) =>
      this.has(real) ? Effect.succeed(real) : Effect.fail(Problems.outside(path))
    )
  }

  has(real: string): boolean {
    return real === this.root || Files.isInside(this.root, real)
  }

  /** Fails if links lead to something that may not be written. */
  requireWritable(path: string, real: string): Effect.Effect<void, WorkspaceError> {
    return this.#isWritable(real.slice(this.root.length + 1)) ? Effect.void : Effect.fail(Problems.readOnly(path))
  }

  /** Opens a folder by its real path, and returns a path to it that stays the same folder. */
  open(path: string, real: string): Effect.Effect<string, WorkspaceError, Scope.Scope> {
    const { fs } = this
    return Effect.gen({ self: this }, function* () {
      // The slash refuses everything but a folder, such as a pipe that would block.
      const file = yield* Effect.mapError(fs.open(`${real}/`, { flag: "r" }), problem(path))
      const link = "fd" in file && typeof file.fd === "number" ? `/proc/self/fd/${file.fd}` : undefined
      const shown = link === undefined ? Option.none() : yield* Effect.option(fs.readLink(link))
      const found = Option.isSome(shown) ? shown.value : yield* Effect.mapError(fs.realPath(real), problem(path))
      if (!this.has(found)) return yield* Problems.outside(path)
      return link !== undefined && Option.isSome(shown) ? link : real
    })
  }
}

/** Returns where a plain file is: its folder, which stays the same, and its name. */
const place = Effect.fnUntraced(function* (folder: Folder, path: string) {
  const real = yield* folder.real(path)
  if (real === folder.root) return yield* Problems.notFile(path)
  const parent = yield* folder.open(path, folderOf(real) === "" ? "/" : folderOf(real))
  const file = `${parent}/${nameOf(real)}`
  const info = yield* Effect.mapError(folder.fs.lstat(file), problem(path))
  // Opening anything else, such as a pipe, may block forever.
  return info.type === "File" ? { file, info, real } : yield* Problems.notFile(path)
})

const read = Effect.fnUntraced(function* (folder: Folder, path: string, maxBytes: number) {
  const { file } = yield* place(folder, path)
  const opened = yield* Effect.mapError(folder.fs.open(file, { flag: "r", noFollow: true }), problem(path))
  const { size, type } = yield* Effect.mapError(opened.stat, problem(path))
  if (type !== "File") return yield* Problems.notFile(path)
  if (Number(size) > maxBytes) return yield* Problems.tooLarge(path, maxBytes)
  // The file may grow in the meantime.
  const bytes = yield* Effect.mapError(Files.start(opened, maxBytes + 1), problem(path))
  return bytes.length > maxBytes ? yield* Problems.tooLarge(path, maxBytes) : bytes
})

const write = Effect.fnUntraced(function* (folder: Folder, path: string, bytes: Uint8Array) {
  const { fs } = folder
  const there = yield* Effect.catchIf(
    place(folder, path),
    ({ reason }) => reason === "not_found",
    () => Effect.undefined
  )
  if (there !== undefined) {
    yield* folder.requireWritable(path, there.real)
    if ((there.info.mode & 0o200) === 0) return yield* Problems.readOnly(path)
  }
  const file = there?.file ?? `${yield* ownFolder(folder, path)}/${nameOf(path)}`
  const mode = there === undefined ? {} : { mode: there.info.mode & 0o777 }
  // Always the same name, so that a write that was cut off leaves nothing once it is repeated.
  const draft = `${folderOf(file)}/.${nameOf(file).slice(0, 60)}.kernai-draft`
  yield* Effect.ignore(fs.remove(draft))
  yield* Effect.gen(function* () {
    const opened = yield* fs.open(draft, { flag: "wx", noFollow: true, ...mode })
    yield* opened.writeAll(bytes)
    yield* fs.rename(draft, file)
  }).pipe(
    Effect.scoped,
    Effect.tapError(() => Effect.ignore(fs.remove(draft))),
    Effect.mapError(problem(path)),
    Effect.uninterruptible
  )
})

const remove = Effect.fnUntraced(function* (folder: Folder, path: string) {
  const { file, real } = yield* place(folder, path)
  yield* folder.requireWritable(path, real)
  yield* Effect.mapError(folder.fs.remove(file), problem(path))
})

const entries = Effect.fnUntraced(function* (folder: Folder, path: string) {
  const real = yield* folder.real(path)
  const opened = yield* folder.open(path, real)
  const found = yield* Effect.mapError(folder.fs.readDirectoryEntries(opened), problem(path))
  return found
    .map(({ name, type }): Entry => ({ name, kind: kinds.get(type) ?? "other" }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
})

const kinds: ReadonlyMap<FileSystem.File.Type, Entry["kind"]> = new Map([
  ["File", "file"],
  ["Directory", "folder"],
  ["SymbolicLink", "link"]
])

/** Opens the folder of a new file, and creates the folders that are missing. */
const ownFolder: (folder: Folder, path: string) => Effect.Effect<string, WorkspaceError, Scope.Scope> =
  Effect.fnUntraced(function* (folder, path) {
    const parent = folderOf(path)
    const real = yield* Effect.catchIf(
      folder.real(parent),
      ({ reason }) => reason === "not_found",
      () => Effect.undefined
    )
    if (real !== undefined) {
      yield* folder.requireWritable(path, `${real}/${nameOf(path)}`)
      return yield* folder.open(parent, real)
    }
    const above = yield* ownFolder(folder, parent)
    const made = `${above}/${nameOf(parent)}`
    yield* Effect.mapError(
      Effect.catchIf(
        folder.fs.makeDirectory(made),
        ({ reason }) => reason._tag === "AlreadyExists",
        () => Effect.void
      ),
      problem(parent)
    )
    return yield* folder.open(parent, yield* folder.real(parent))
  })

/** Converts an error of the file system. Its message has paths of the host. */
const problem =
  (path: string) =>
  (error: PlatformError): WorkspaceError => {
    const { cause, reason } = error
    const code = reasonCode(reason) ?? reasonCode(cause)
    if (code === "ENOTDIR") return Problems.notFolder(path)
    if (code === "ELOOP") return Problems.outside(path)
    if (code === "ENAMETOOLONG") return Problems.failed(path, "its name is too long")
    if (reason._tag === "NotFound") return Problems.absent(path)
    if (reason._tag === "PermissionDenied") return Problems.failed(path, "permission denied")
    return Problems.failed(path, code ?? reason._tag)
  }

const reasonCode = (value: unknown): string | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  if ("code" in value && typeof value.code === "string") return value.code
  return "cause" in value ? reasonCode(value.cause) : undefined
}

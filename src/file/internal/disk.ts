/**
 * File operations that every store on disk needs.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import * as Read from "../../kit/files.ts"
import { ConfigInvalid, StoreError } from "../../KernelError.ts"

/** Turns a failure of the disk into a failure of the store. */
export const failed =
  (operation: string) =>
  ({ cause, message, reason }: PlatformError): Effect.Effect<never, StoreError> => {
    // A full or read-only disk has no reason of its own in `PlatformError`.
    const detail = reason._tag === "Unknown" && cause instanceof Error ? `${message}: ${cause.message}` : message
    return Effect.fail(new StoreError({ operation, reason: "unavailable", detail }))
  }

/** Reads a text file of at most `maxBytes`, inside `folder` if it is given. Failures name the file as `what`. */
export const readText = Effect.fnUntraced(function* (
  path: string,
  what: string,
  maxBytes: number,
  folder?: string
): Effect.fn.Return<string, ConfigInvalid, FileSystem.FileSystem> {
  const files = yield* FileSystem.FileSystem
  const invalid = (reason: string) => new ConfigInvalid({ path: "", reason: `the ${what} '${path}' ${reason}` })
  return yield* Effect.mapError(Read.text(files, path, maxBytes, folder), (refusal) =>
    invalid(typeof refusal === "string" ? `is ${refusal}` : `cannot be read: ${refusal.message}`)
  )
})

/** Returns true for a failure of the file system with this reason. */
export const isTag = (tag: string) => (error: PlatformError) => error.reason._tag === tag

/** Opens a file of a store. Rejects a link in its place, which would lead out of the store. */
export const openOwn = (
  files: FileSystem.FileSystem,
  path: string,
  options: { readonly flag: "r" | "a"; readonly mode?: number }
): Effect.Effect<FileSystem.File, PlatformError, Scope.Scope> =>
  Effect.catchIf(
    files.open(path, { ...options, noFollow: true }),
    // Some systems cannot refuse links.
    isTag("BadArgument"),
    () => files.open(path, options)
  )

/** Returns the text of a file of a store, if it exists. */
export const readIfThere = (
  files: FileSystem.FileSystem,
  path: string
): Effect.Effect<string | undefined, PlatformError> =>
  openOwn(files, path, { flag: "r" }).pipe(
    Effect.flatMap((file) => Read.start(file, Number.MAX_SAFE_INTEGER)),
    Effect.map((bytes) => new TextDecoder().decode(bytes)),
    Effect.scoped,
    Effect.catchIf(isTag("NotFound"), () => Effect.undefined)
  )

/**
 * Syncs the directory of a new file, which makes the file durable. Does nothing if the system cannot sync directories.
 */
export const syncDirectory = (files: FileSystem.FileSystem, path: string) =>
  files.open(path.slice(0, path.lastIndexOf("/") + 1), { flag: "r" }).pipe(
    Effect.flatMap((directory) => directory.sync),
    Effect.scoped,
    Effect.ignore
  )

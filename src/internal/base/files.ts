/**
 * Reads whole files within a size limit, and writes files into folders that may not exist yet.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Stream from "effect/Stream"

/** Why a file was not read: a reason of ours, or an error of the file system. */
export type Refusal = string | PlatformError

/** Reads the bytes of a plain file of at most `maxBytes`. */
export const bytes = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  maxBytes: number
): Effect.fn.Return<Uint8Array, Refusal> {
  // Opening anything but a plain file, such as a pipe, may block forever.
  const { size, type } = yield* files.stat(path)
  if (type !== "File") return yield* Effect.fail("not a plain file")
  if (Number(size) > maxBytes) return yield* Effect.fail(tooLarge(maxBytes))
  // The file may grow meanwhile, and files of /proc report no size.
  const pieces = yield* Stream.runCollect(files.stream(path, { bytesToRead: maxBytes + 1 }))
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  if (length > maxBytes) return yield* Effect.fail(tooLarge(maxBytes))
  const whole = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
})

/** Reads a plain file of at most `maxBytes` as UTF-8. */
export const text = (files: FileSystem.FileSystem, path: string, maxBytes: number): Effect.Effect<string, Refusal> =>
  Effect.map(bytes(files, path, maxBytes), (read) => new TextDecoder().decode(read))

/** The refusal of a file of more than `maxBytes`. */
export const tooLarge = (maxBytes: number): string => `larger than ${maxBytes} bytes`

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

/**
 * Reads whole files that came from outside: never more than so many bytes of them.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Stream from "effect/Stream"

/** Why a file is not read: what it is instead, or what the file system said. */
export type Refusal = string | PlatformError

/** The bytes of a plain file of at most `maxBytes`. */
export const bytes = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  maxBytes: number
): Effect.fn.Return<Uint8Array, Refusal> {
  // What is no plain file may wait for ever when it is opened.
  const { size, type } = yield* files.stat(path)
  if (type !== "File") return yield* Effect.fail("not a plain file")
  if (Number(size) > maxBytes) return yield* Effect.fail(tooLarge(maxBytes))
  // It may grow meanwhile, and one that is made as it is read has no size.
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

/** The same as text. */
export const text = (files: FileSystem.FileSystem, path: string, maxBytes: number): Effect.Effect<string, Refusal> =>
  Effect.map(bytes(files, path, maxBytes), (read) => new TextDecoder().decode(read))

/** The refusal of a file of more bytes than these. */
export const tooLarge = (maxBytes: number): string => `larger than ${maxBytes} bytes`

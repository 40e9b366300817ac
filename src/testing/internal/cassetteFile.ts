/**
 * The file of a recording, to which exchanges are added one at a time.
 *
 * It is JSON for people. An exchange overwrites the end of the file and adds the end again, so earlier exchanges are
 * never written again.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import { inMadeFolder } from "../../internal/base/files.ts"
import type { Cassette, Exchange } from "../Cassette.ts"

/** The end of a file after its last exchange. */
export const tail = "\n  ]\n}\n"

/** Encodes a recording or an exchange. */
export const shown = (value: Cassette | Exchange): string => JSON.stringify(value, undefined, 2)

/** Returns the text that replaces the tail when an exchange is added. */
export const added = (exchange: Exchange): string => `,\n    ${shown(exchange).replaceAll("\n", "\n    ")}${tail}`

/** Returns the bytes of a file, or undefined if they are unknown. */
export const sizeOf = (files: FileSystem.FileSystem, file: string) =>
  Effect.orElseSucceed(
    Effect.map(files.stat(file), ({ size }) => Number(size)),
    () => undefined
  )

/**
 * Replaces a file through a temporary file, and creates its folder if necessary. An interrupted process leaves the old
 * file or the new one.
 */
export const replace = (files: FileSystem.FileSystem, file: string, bytes: Uint8Array) => {
  const draft = `${file}.tmp`
  return inMadeFolder(files, draft, files.writeFile(draft, bytes)).pipe(
    Effect.andThen(files.rename(draft, file)),
    Effect.onError(() => Effect.ignore(files.remove(draft)))
  )
}

/**
 * Writes bytes at a position and leaves everything before it unchanged. An interrupted process leaves a file that
 * `untilCut` can repair.
 */
export const writeAt = (files: FileSystem.FileSystem, file: string, at: number, bytes: Uint8Array) =>
  Effect.scoped(
    Effect.flatMap(files.open(file, { flag: "r+" }), (opened) =>
      Effect.andThen(opened.seek(BigInt(at), "start"), opened.writeAll(bytes))
    )
  )

/** Repairs a file that was cut off while an exchange was added, up to the last complete exchange. */
export const untilCut = (text: string): string => `${text.slice(0, text.lastIndexOf("\n    }") + 6)}${tail}`

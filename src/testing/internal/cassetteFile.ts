/**
 * The file of a recording, which grows by an exchange at a time.
 *
 * It is JSON that people read. An exchange is put in the place of its end, with
 * the end behind it: nothing that was written before is written again.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import { inMadeFolder } from "../../internal/base/files.ts"
import type { Cassette, Exchange } from "../Cassette.ts"

/** How a file ends behind its last exchange. */
export const tail = "\n  ]\n}\n"

/** A recording, or an exchange of one, as it is written. */
export const shown = (value: Cassette | Exchange): string => JSON.stringify(value, undefined, 2)

/** What stands in the place of the tail when an exchange is added. */
export const added = (exchange: Exchange): string => `,\n    ${shown(exchange).replaceAll("\n", "\n    ")}${tail}`

/** How many bytes a file has; undefined where it cannot be told. */
export const sizeOf = (files: FileSystem.FileSystem, file: string) =>
  Effect.orElseSucceed(
    Effect.map(files.stat(file), ({ size }) => Number(size)),
    () => undefined
  )

/**
 * In a folder that is made if it is not there, and beside it first: who is stopped meanwhile leaves the file of before,
 * or the new one.
 */
export const replace = (files: FileSystem.FileSystem, file: string, bytes: Uint8Array) => {
  const draft = `${file}.tmp`
  return inMadeFolder(files, draft, files.writeFile(draft, bytes)).pipe(
    Effect.andThen(files.rename(draft, file)),
    Effect.onError(() => Effect.ignore(files.remove(draft)))
  )
}

/** Nothing before that place is touched: who is stopped meanwhile leaves what `untilCut` reads. */
export const writeAt = (files: FileSystem.FileSystem, file: string, at: number, bytes: Uint8Array) =>
  Effect.scoped(
    Effect.flatMap(files.open(file, { flag: "r+" }), (opened) =>
      Effect.andThen(opened.seek(BigInt(at), "start"), opened.writeAll(bytes))
    )
  )

/** A file that was cut off while an exchange was added, up to the last one that is whole. */
export const untilCut = (text: string): string => `${text.slice(0, text.lastIndexOf("\n    }") + 6)}${tail}`

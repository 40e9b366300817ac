/** The SQLite extension that compares vectors, from the optional package `sqlite-vec`. */

import * as Effect from "effect/Effect"
import { DatabaseSync } from "node:sqlite"

/** Returns the path of the extension, or nothing if the package is not installed or does not load on this system. */
export const sqliteVec: Effect.Effect<ReadonlyArray<string>> = Effect.tryPromise(async () => {
  const { getLoadablePath } = await import("sqlite-vec")
  const path = getLoadablePath()
  const database = new DatabaseSync(":memory:", { allowExtension: true })
  try {
    database.loadExtension(path)
  } finally {
    database.close()
  }
  return [path]
}).pipe(Effect.orElseSucceed(() => []))

/** Checks that the files of an open database have not been removed or replaced. */

import { statSync } from "node:fs"
import { resolve } from "node:path"

/** Returns the first file of a database that was removed or replaced, if any. Writes to such a file are lost. */
export const watch = (filename: string): (() => string | undefined) => {
  // SQLite keeps the files even if this process changes its directory.
  const path = resolve(filename)
  // Commits are in the second file until they are copied, and the third coordinates writers.
  const opened = [path, `${path}-wal`, `${path}-shm`].flatMap((file) => {
    const identity = identityOf(file)
    return identity === undefined ? [] : [{ file, identity }]
  })
  let gone: string | undefined
  // Uses the real clock, since files are replaced outside a test's virtual time.
  let looked = performance.now()
  return () => {
    const now = performance.now()
    // The check costs as much as a statement that changes a row.
    if (now - looked > LOOK_EVERY) {
      looked = now
      gone = opened.find(({ file, identity }) => identityOf(file) !== identity)?.file
    }
    return gone
  }
}

/** Milliseconds between two checks. */
const LOOK_EVERY = 100

/** Identifies the file at a path. */
const identityOf = (path: string): string | undefined => {
  try {
    const { dev, ino } = statSync(path)
    return `${dev}/${ino}`
  } catch {
    return undefined
  }
}

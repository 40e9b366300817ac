/**
 * Checks that a database is still in the files it was opened in.
 */

import { statSync } from "node:fs"
import { resolve } from "node:path"

/**
 * Returns the file of a database that is not the original one, if any. Whatever is written to a file that was removed
 * or replaced is lost.
 */
export const watch = (filename: string): (() => string | undefined) => {
  // SQLite keeps the files, wherever this process changes its directory to.
  const path = resolve(filename)
  // Commits are in the second file until they are copied, and the third shows other writers.
  const opened = [path, `${path}-wal`, `${path}-shm`].flatMap((file) => {
    const identity = identityOf(file)
    return identity === undefined ? [] : [{ file, identity }]
  })
  let gone: string | undefined
  // Whoever replaces a file does not live in a test's virtual time.
  let looked = performance.now()
  return () => {
    const now = performance.now()
    // It costs as much as a statement that changes a row.
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

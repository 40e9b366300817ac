/**
 * Whether a database is still in the files it was opened in.
 */

import { statSync } from "node:fs"
import { resolve } from "node:path"

/**
 * Tells which file of a database is not the one it was, if any: one that was removed or replaced takes all that is
 * written to it, and nobody ever finds it again.
 */
export const watch = (filename: string): (() => string | undefined) => {
  // SQLite goes on with the files, wherever this process goes.
  const path = resolve(filename)
  // What is committed is in the second until it is copied, and who else writes is found by the third.
  const opened = [path, `${path}-wal`, `${path}-shm`].flatMap((file) => {
    const identity = identityOf(file)
    return identity === undefined ? [] : [{ file, identity }]
  })
  let gone: string | undefined
  // Who replaces a file does not live in a test's virtual time.
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

/** Milliseconds between two looks at which files they are. */
const LOOK_EVERY = 100

/** Which file a path leads to, as far as can be told. */
const identityOf = (path: string): string | undefined => {
  try {
    const { dev, ino } = statSync(path)
    return `${dev}/${ino}`
  } catch {
    return undefined
  }
}

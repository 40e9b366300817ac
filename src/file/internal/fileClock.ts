/** The clock of a file system, from the times it gives to files. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"

/** Returns the time of a file system, in milliseconds since the epoch. */
export type FileClock = Effect.Effect<number>

/**
 * Creates the clock of the file system that holds a directory: the time of a file that is written now. All processes
 * write the same file, which exists after the first time, so the directory itself does not change. If a file system
 * keeps no times or cannot be written, uses the clock of this process.
 */
export const make = (files: FileSystem.FileSystem, directory: string): FileClock => {
  const path = `${directory}/clock`
  return Effect.andThen(files.writeFileString(path, "\n", { mode: 0o600 }), files.stat(path)).pipe(
    Effect.map(({ mtime }) => Option.map(mtime, (time) => time.getTime())),
    Effect.orElseSucceed(() => Option.none<number>()),
    Effect.flatMap((time) => (Option.isSome(time) ? Effect.succeed(time.value) : Clock.currentTimeMillis))
  )
}

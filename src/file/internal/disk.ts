/**
 * What every store on a disk needs of it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"

/** Whether a file system failed in this way. */
export const isTag = (tag: string) => (error: PlatformError) => error.reason._tag === tag

/** A new file is only there for good when its directory says so. Where directories cannot be synced, it is as good as it gets. */
export const syncDirectory = (files: FileSystem.FileSystem, path: string) =>
  files.open(path.slice(0, path.lastIndexOf("/") + 1), { flag: "r" }).pipe(
    Effect.flatMap((directory) => directory.sync),
    Effect.scoped,
    Effect.ignore
  )

/** Folders for the time of a scope. */
import { Effect, type Scope } from "effect"
import { existsSync, mkdtempSync, rmSync, statfsSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const folderIn = (place: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(place, "kernai-test-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )

const inMemory = "/dev/shm"

/** Where folders for a short time are best: in memory where there is such a disk with that much room, in bytes. */
export const quickPlace = (room: number): string => {
  if (!existsSync(inMemory)) return tmpdir()
  const { bavail, bsize } = statfsSync(inMemory)
  return bavail * bsize >= room ? inMemory : tmpdir()
}

/** A new folder, in memory where there is such a disk: waiting for another proves nothing. */
export const folder = folderIn(quickPlace(0))

/** A new folder on a disk that is waited for. */
export const durableFolder = folderIn(tmpdir())

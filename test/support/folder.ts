/** Folders for the time of a scope. */
import { Effect, type Scope } from "effect"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const folderIn = (place: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(place, "kernai-test-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )

/** A new folder, in memory where there is such a disk: waiting for another proves nothing. */
export const folder = folderIn(existsSync("/dev/shm") ? "/dev/shm" : tmpdir())

/** A new folder on a disk that is waited for. */
export const durableFolder = folderIn(tmpdir())

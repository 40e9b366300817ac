/**
 * A folder on disk, with the commands of the host.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Stream from "effect/Stream"
import type { Backend, Match, Search } from "../WorkspaceBackend.ts"
import { WorkspaceError } from "../WorkspaceError.ts"
import * as Problems from "./fileProblems.ts"
import * as Files from "./folderFiles.ts"
import * as Scan from "./folderScan.ts"
import * as Host from "./hostCommand.ts"
import * as Lines from "./lineMatcher.ts"
import * as Ripgrep from "./ripgrep.ts"
import { folderOf, nameOf, writablePaths } from "./workspacePath.ts"

/** Creates a backend on a folder, whose commands run as `setting` says for its real path. */
export const localBackend = Effect.fnUntraced(function* (
  { root: given, writable }: { readonly root: string; readonly writable?: ReadonlyArray<string> | undefined },
  setting: (root: string) => Effect.Effect<Host.Setting, WorkspaceError>
): Effect.fn.Return<Backend, WorkspaceError, FileSystem.FileSystem | ChildProcessSpawner> {
  const fs = yield* FileSystem.FileSystem
  const spawner = yield* ChildProcessSpawner
  const root = yield* Effect.mapError(fs.realPath(given), () => Problems.absent(given))
  const info = yield* Effect.mapError(fs.stat(root), () => Problems.absent(given))
  if (info.type !== "Directory") return yield* Problems.notFolder(given)
  const host = yield* setting(root)
  return {
    root,
    ...Files.make(fs, root, writablePaths(writable)),
    signatures: (paths) => Scan.signatures(root, paths),
    contents: (paths, limits) => Scan.contents(root, paths, limits),
    search: (search) => searchIn(fs, spawner, root, search),
    spawn: (command) => Host.spawn(spawner, host, command)
  }
})

/** Searches with ripgrep, or by reading if it is not there or does not accept the expression. */
const searchIn = (
  fs: FileSystem.FileSystem,
  spawner: ChildProcessSpawner["Service"],
  root: string,
  search: Search
): Stream.Stream<Match, WorkspaceError> =>
  Stream.unwrap(
    Effect.gen(function* () {
      yield* Lines.compile(search.pattern, search.ignoreCase)
      const where = yield* whereIs(fs, root, search.path)
      return Stream.catchTag(Ripgrep.search(spawner, where, search), "CannotSearch", () => Scan.search(where, search))
    })
  )

/** Returns the real folder of a search, which is inside the root, and the file in it if the path is one. */
const whereIs = Effect.fnUntraced(function* (fs: FileSystem.FileSystem, root: string, path: string) {
  const real = yield* Effect.mapError(fs.realPath(`${root}/${path}`), () => Problems.absent(path))
  if (real !== root && !real.startsWith(root === "/" ? root : `${root}/`)) return yield* Problems.outside(path)
  const { type } = yield* Effect.mapError(fs.stat(real), () => Problems.absent(path))
  return type === "Directory"
    ? { folder: real, file: undefined, prefix: path }
    : { folder: folderOf(real), file: nameOf(real), prefix: folderOf(path) }
})

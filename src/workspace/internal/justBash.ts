/**
 * Runs commands on files in memory, with the package `just-bash`.
 */

import * as Effect from "effect/Effect"
import type { Bash } from "just-bash"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { messageOf } from "../../kit/foreignCode.ts"
import type { Process } from "../WorkspaceBackend.ts"
import { WorkspaceError } from "../WorkspaceError.ts"

/** Files that a command reads and changes. */
interface Files {
  readonly paths: ReadonlyArray<string>
  readonly get: (path: string) => Uint8Array | undefined
  readonly set: (path: string, bytes: Uint8Array) => void
  readonly delete: (path: string) => boolean
}

const load = Effect.tryPromise({
  try: () => import("just-bash"),
  catch: () =>
    new WorkspaceError({
      reason: "unavailable",
      detail: "commands are not available: the package 'just-bash' is not installed"
    })
})

/** Starts a command on a copy of the files, whose changes are taken over when it ends. */
export const spawnIn = Effect.fnUntraced(function* (
  root: string,
  files: Files,
  command: string
): Effect.fn.Return<Process, WorkspaceError, Scope.Scope> {
  const { Bash } = yield* load
  const before = new Map(files.paths.flatMap((path) => [[path, files.get(path)] as const]))
  const shell = new Bash({
    cwd: root,
    files: Object.fromEntries(
      [...before].flatMap(([path, bytes]) => (bytes === undefined ? [] : [[`${root}/${path}`, bytes]]))
    )
  })
  yield* Effect.promise(() => shell.fs.mkdir(root, { recursive: true }))
  const ran = yield* Effect.forkScoped(
    Effect.tryPromise({
      try: (signal) => shell.exec(command, { signal }),
      catch: (cause) => new WorkspaceError({ reason: "io", detail: `the shell failed: ${messageOf(cause)}` })
    }).pipe(Effect.tap(takeOver(shell.fs, root, files, before)))
  )
  const result = Fiber.join(ran)
  return {
    output: Stream.unwrap(
      Effect.map(result, ({ stderr, stdout }) => Stream.encodeText(Stream.fromIterable([stdout, stderr])))
    ),
    exitCode: Effect.map(result, ({ exitCode }) => exitCode)
  }
})

/** Applies what a command changed. A file that was changed elsewhere in the meantime is overwritten only if it was changed here. */
const takeOver = Effect.fnUntraced(function* (
  fs: Bash["fs"],
  root: string,
  files: Files,
  before: ReadonlyMap<string, Uint8Array | undefined>
) {
  const left = new Set(before.keys())
  for (const full of fs.getAllPaths()) {
    if (!full.startsWith(`${root}/`)) continue
    const path = full.slice(root.length + 1)
    const bytes = yield* Effect.promise(() => plainFile(fs, full))
    if (bytes === undefined) continue
    left.delete(path)
    const known = before.get(path)
    if (known === undefined || !isSame(known, bytes)) files.set(path, bytes)
  }
  for (const path of left) files.delete(path)
})

const plainFile = async (fs: Bash["fs"], path: string): Promise<Uint8Array | undefined> =>
  (await fs.lstat(path)).isFile ? fs.readFileBuffer(path) : undefined

const isSame = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index])

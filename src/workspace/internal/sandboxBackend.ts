/**
 * A folder on disk, whose commands run in a sandbox.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Stream from "effect/Stream"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { Backend } from "../WorkspaceBackend.ts"
import { WorkspaceError } from "../WorkspaceError.ts"
import { environmentOf } from "./commandEnvironment.ts"
import { textOf } from "./commandOutput.ts"
import * as Problems from "./fileProblems.ts"
import { localBackend } from "./localBackend.ts"
import { sandboxArguments } from "./sandboxCommand.ts"
import * as Paths from "./workspacePath.ts"

/** What commands of a sandbox may reach. */
export interface SandboxOptions {
  /** Whether commands reach the network, and with it services of this machine. Default: false. */
  readonly network?: boolean | undefined
  /** Paths inside the root that commands and skills may write. Default: all of it, but no hooks and config of Git. */
  readonly writable?: ReadonlyArray<string> | undefined
  /** Absolute paths that commands may read besides the programs of the system, such as a toolchain in the home folder. */
  readonly readable?: ReadonlyArray<string> | undefined
}

interface Options extends SandboxOptions {
  readonly root: string
  readonly environment?: { readonly [name: string]: string } | undefined
  readonly processes?: number | undefined
}

/** Creates a backend, and runs one command, which fails if sandboxes cannot be made here. */
export const sandboxBackend = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Backend, WorkspaceError, FileSystem.FileSystem | ChildProcessSpawner> {
  const fs = yield* FileSystem.FileSystem
  const real = (path: string) => Effect.mapError(fs.realPath(path), () => Problems.absent(path))
  const backend = yield* localBackend(
    options,
    Effect.fnUntraced(function* (root) {
      const inside = yield* Effect.forEach(options.writable ?? ["."], (path) => Paths.resolve(root, path))
      const writable = yield* Effect.forEach(inside, (path) => real(path === "" ? root : `${root}/${path}`))
      const outside = writable.find((path) => path !== root && !path.startsWith(`${root}/`))
      if (outside !== undefined) return yield* Problems.outside(outside)
      const readable = yield* Effect.forEach(options.readable ?? [], real)
      return {
        cwd: root,
        wrapper: sandboxArguments({ root, writable, readable, network: options.network === true }),
        environment: { ...environmentOf(process.env, options.environment), HOME: "/tmp/home", TMPDIR: "/tmp" },
        maxProcesses: options.processes ?? 256
      }
    })
  )
  yield* probe(backend)
  return backend
})

const probe = Effect.fnUntraced(function* ({ spawn }: Backend) {
  if (spawn === undefined) return
  const running = yield* spawn("echo ready")
  const output = yield* Stream.runCollect(running.output)
  if (!output.map(textOf).join("").includes("ready")) {
    return yield* new WorkspaceError({
      reason: "unavailable",
      detail: "bubblewrap cannot make a sandbox on this system"
    })
  }
}, Effect.scoped)

/**
 * A folder in which an agent reads, writes and searches files and runs commands.
 *
 * All paths are inside the root, whatever they look like. Files keep their encoding, byte order mark and line ends.
 * Commands have a timeout, bounded output, only the listed environment and no terminal, and end with everything that
 * they started.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as FileSystem from "effect/FileSystem"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { environmentOf } from "./internal/commandEnvironment.ts"
import { localBackend } from "./internal/localBackend.ts"
import { make as makeWorkspace } from "./internal/madeWorkspace.ts"
import { memoryBackend } from "./internal/memoryBackend.ts"
import { type SandboxOptions, sandboxBackend } from "./internal/sandboxBackend.ts"
import type { WorkspaceOptions, WorkspaceShape } from "./internal/workspaceType.ts"
import type { Backend } from "./WorkspaceBackend.ts"
import { WorkspaceError } from "./WorkspaceError.ts"

export { WorkspaceError }

// ---------------------------------------------------------------- models

export type {
  BeforeWrite,
  Change,
  CommandResult,
  Edit,
  FileContent,
  Listed,
  ProcessOutput,
  Snapshot,
  TextChange,
  WorkspaceOptions,
  WorkspaceShape
} from "./internal/workspaceType.ts"

export type { Backend, ContentLimits, Entry, Match, Process, Search } from "./WorkspaceBackend.ts"

/**
 * The workspace of an agent.
 *
 * @category services
 * @since 0.1.0
 */
export class Workspace extends Context.Service<Workspace, WorkspaceShape>()("kernai/Workspace") {}

// ---------------------------------------------------------------- constructors

/**
 * Creates a workspace on a backend. Background processes end with the scope.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: (backend: Backend, options?: WorkspaceOptions) => Effect.Effect<WorkspaceShape, never, Scope.Scope> =
  makeWorkspace

/**
 * Creates the backend of `layerLocal`, for one of your own that changes a part of it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const backendLocal = (
  options: LocalOptions
): Effect.Effect<Backend, WorkspaceError, FileSystem.FileSystem | ChildProcessSpawner> =>
  localBackend(options, (root) =>
    Effect.sync(() => ({
      cwd: root,
      wrapper: [],
      environment: environmentOf(process.env, options.environment),
      maxProcesses: options.processes ?? 256
    }))
  )

/**
 * Creates the backend of `layerSandboxed`, for one of your own that changes a part of it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const backendSandboxed: (
  options: SandboxOptions & LocalOptions
) => Effect.Effect<Backend, WorkspaceError, FileSystem.FileSystem | ChildProcessSpawner> = sandboxBackend

// ---------------------------------------------------------------- layers

/**
 * Provides a workspace on a backend.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E, R>(
  backend: Effect.Effect<Backend, E, R>,
  options?: WorkspaceOptions
): Layer.Layer<Workspace, E, Exclude<R, Scope.Scope>> =>
  Layer.effect(
    Workspace,
    Effect.flatMap(backend, (built) => make(built, options))
  )

/**
 * Provides a workspace in memory, whose root is `/workspace`.
 *
 * Commands are run by the package `just-bash`, a shell with its own grep, sed and awk that reaches neither the host nor
 * the network. Install it beside kernai; without it, commands fail as `unavailable`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory = (
  files: { readonly [path: string]: string | Uint8Array } = {},
  options?: WorkspaceOptions
): Layer.Layer<Workspace> =>
  layer(
    Effect.sync(() => memoryBackend(files)),
    options
  )

/**
 * Options of a folder.
 *
 * @category models
 * @since 0.1.0
 */
export interface LocalOptions extends WorkspaceOptions {
  /** The folder, which must exist. */
  readonly root: string
  /** Variables of commands, besides `PATH`, `HOME`, `LANG`, `LC_ALL` and `TMPDIR` of the host. Default: none. */
  readonly environment?: { readonly [name: string]: string } | undefined
  /** Processes that a command may have at once. More end it. Default: 256. */
  readonly processes?: number | undefined
}

/**
 * Provides a folder of the host, whose commands run with the rights of this process. This is no sandbox: a command may
 * read and write whatever the person may. Files cannot leave the root by links either.
 *
 * Commands are run by `bash` and end with everything they started, also if this process is killed. A process that
 * leaves its group and clears its environment survives; only a sandbox ends it.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerLocal = (
  options: LocalOptions
): Layer.Layer<Workspace, WorkspaceError, FileSystem.FileSystem | ChildProcessSpawner> =>
  layer(backendLocal(options), options)

export type { SandboxOptions }

/**
 * Provides a folder of the host, whose commands run in a sandbox of bubblewrap: without network, in namespaces of their
 * own, with the programs of the system read-only, an empty `/tmp`, and of the host's data nothing but the root. Linux
 * only; fails as `unavailable` without `bwrap`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSandboxed = (
  options: SandboxOptions & LocalOptions
): Layer.Layer<Workspace, WorkspaceError, FileSystem.FileSystem | ChildProcessSpawner> =>
  layer(backendSandboxed(options), options)

/**
 * The port behind a workspace: files and commands of one place.
 *
 * `Workspace.make` turns a backend into a workspace. Write one for containers or remote sandboxes, and prove it with
 * `WorkspaceSuite` of `kernai/testing`. Paths are relative to the root, with `/` between their parts; `""` is the root.
 * They are free of `..` already, but links in the folder are the backend's concern: none may lead out of the root.
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { WorkspaceError } from "./WorkspaceError.ts"

/**
 * An entry of a folder.
 *
 * @category models
 * @since 0.1.0
 */
export interface Entry {
  readonly name: string
  readonly kind: "file" | "folder" | "link" | "other"
}

/**
 * A search for a regular expression.
 *
 * @category models
 * @since 0.1.0
 */
export interface Search {
  readonly pattern: string
  readonly ignoreCase: boolean
  /** The file or folder to search in. */
  readonly path: string
  /** A glob for the names of files, or for their paths as seen from `path`. */
  readonly glob: string | undefined
}

/**
 * Bounds of reading many files: bytes of one of them, and of all. A file beyond them is left out.
 *
 * @category models
 * @since 0.1.0
 */
export interface ContentLimits {
  readonly maxFileBytes: number
  readonly maxBytes: number
}

/**
 * A line that matches.
 *
 * @category models
 * @since 0.1.0
 */
export interface Match {
  readonly path: string
  /** Counted from 1. */
  readonly line: number
  readonly text: string
}

/**
 * A running command. It ends with its scope, together with everything that it started.
 *
 * @category models
 * @since 0.1.0
 */
export interface Process {
  /** What it writes to its standard output and error, in the order of writing. */
  readonly output: Stream.Stream<Uint8Array, WorkspaceError>
  /** Its exit code, or 128 and the number of the signal that ended it. */
  readonly exitCode: Effect.Effect<number, WorkspaceError>
}

/**
 * Files and commands of one place.
 *
 * @category models
 * @since 0.1.0
 */
export interface Backend {
  /** The absolute path of the root, as commands see it. */
  readonly root: string
  /** Reads a plain file of at most `maxBytes`. */
  readonly read: (path: string, maxBytes: number) => Effect.Effect<Uint8Array, WorkspaceError>
  /** Writes a plain file at once, so that no reader sees a part of it. Creates its folders, keeps its mode. */
  readonly write: (path: string, bytes: Uint8Array) => Effect.Effect<void, WorkspaceError>
  /** Removes a plain file. */
  readonly remove: (path: string) => Effect.Effect<void, WorkspaceError>
  /** Lists a folder, links included and not followed. */
  readonly entries: (path: string) => Effect.Effect<ReadonlyArray<Entry>, WorkspaceError>
  /** Returns a text for each file that changes when its content does, such as its size and times. */
  readonly signatures: (paths: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, string>, WorkspaceError>
  /** Reads many plain files faster than one by one. Absent: they are read one by one. */
  readonly contents?: (
    paths: ReadonlyArray<string>,
    limits: ContentLimits
  ) => Effect.Effect<ReadonlyMap<string, Uint8Array>, WorkspaceError>
  /** Searches files faster than by reading them. Absent: they are read. */
  readonly search?: (search: Search) => Stream.Stream<Match, WorkspaceError>
  /** Starts a command. Absent: commands are not available. */
  readonly spawn?: (command: string) => Effect.Effect<Process, WorkspaceError, Scope.Scope>
}

/**
 * The types of a workspace.
 */

import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { ContentLimits, Entry, Match } from "../WorkspaceBackend.ts"
import type { WorkspaceError } from "../WorkspaceError.ts"

/** The content of a file: its text, or its bytes if it holds none. */
export type FileContent =
  | { readonly _tag: "Text"; readonly path: string; readonly text: string; readonly bytes: Uint8Array }
  | { readonly _tag: "Binary"; readonly path: string; readonly bytes: Uint8Array }

/** A change of one file, with its bytes before and after. Absent bytes: there is no file. */
export interface Change {
  readonly path: string
  readonly before: Uint8Array | undefined
  readonly after: Uint8Array | undefined
}

/**
 * A change of a text: how many places of the file changed, and the difference as lines that begin with a space, `-` or
 * `+`.
 */
export interface TextChange extends Change {
  readonly places: number
  readonly difference: string
}

/** Replaces a text that occurs once in a file, or everywhere with `all`. */
export interface Edit {
  readonly oldText: string
  readonly newText: string
  readonly all?: boolean | undefined
}

/** Receives a change before it is written. If it fails, nothing is written. */
export type BeforeWrite<out E = never, out R = never> = (change: Change) => Effect.Effect<void, E, R>

/** A part of a list, and whether more was left out. */
export interface Listed<out A> {
  readonly items: ReadonlyArray<A>
  readonly isCut: boolean
}

/** The end of a command. Of a long output, the head and the tail are kept. */
export interface CommandResult {
  readonly output: string
  /** Absent if the command was ended by its timeout. */
  readonly exitCode?: number
}

/** Output of a background process from an offset in bytes. */
export interface ProcessOutput {
  readonly text: string
  /** The offset of the text. Greater than the one asked for if earlier output was dropped. */
  readonly from: number
  /** The offset to read from next. */
  readonly next: number
  /** Absent while the process runs. */
  readonly exitCode?: number
}

/** Options of a workspace. */
export interface WorkspaceOptions {
  /** Bytes of the largest file that is read or written. Default: 10 MiB. */
  readonly maxFileBytes?: number | undefined
  /** Time after which a command is ended, unless it is given another. Default: 2 minutes. */
  readonly timeout?: Duration.Input | undefined
  /** Background processes that run at once. Default: 8. */
  readonly maxProcesses?: number | undefined
  /** Folders and files that `write` and `edit` may change. Default: all but those of `.git`. */
  readonly writable?: ReadonlyArray<string> | undefined
}

/** A workspace. */
export interface WorkspaceShape {
  /** The absolute path of the root, as commands see it. */
  readonly root: string
  readonly read: (path: string) => Effect.Effect<FileContent, WorkspaceError>
  /** Replaces the content of a file, or creates it. */
  readonly write: <E = never, R = never>(
    path: string,
    content: string | Uint8Array,
    before?: BeforeWrite<E, R>
  ) => Effect.Effect<TextChange, WorkspaceError | E, R>
  /** Replaces a text in a file, which keeps its encoding and line ends. */
  readonly edit: <E = never, R = never>(
    path: string,
    edit: Edit,
    before?: BeforeWrite<E, R>
  ) => Effect.Effect<TextChange, WorkspaceError | E, R>
  /** Lists a folder. */
  readonly list: (path: string) => Effect.Effect<ReadonlyArray<Entry>, WorkspaceError>
  /** Finds files by a glob. Searches leave out `.git` and `node_modules`, unless `path` leads into them. */
  readonly glob: (
    pattern: string,
    options?: { readonly path?: string | undefined; readonly limit?: number | undefined }
  ) => Effect.Effect<Listed<string>, WorkspaceError>
  /** Finds lines by a regular expression, which has no lookaround and no backreferences. */
  readonly grep: (
    pattern: string,
    options?: {
      readonly path?: string | undefined
      readonly glob?: string | undefined
      readonly ignoreCase?: boolean | undefined
      readonly limit?: number | undefined
    }
  ) => Effect.Effect<Listed<Match>, WorkspaceError>
  /** Runs a command in the root, with `bash`. */
  readonly run: (
    command: string,
    options?: { readonly timeout?: Duration.Input | undefined }
  ) => Effect.Effect<CommandResult, WorkspaceError>
  /** Starts a background process and returns its id. It ends with the workspace. */
  readonly start: (command: string) => Effect.Effect<string, WorkspaceError>
  /** Returns the output of a background process from an offset on, at most its last MiB. */
  readonly output: (id: string, offset?: number) => Effect.Effect<ProcessOutput, WorkspaceError>
  /** Ends a background process. */
  readonly stop: (id: string) => Effect.Effect<void, WorkspaceError>
  /** Returns the files of the workspace, each with a text that changes when its content does. */
  readonly snapshot: Effect.Effect<Snapshot, WorkspaceError>
  /** Reads many files. Those that are not there, or beyond the limits, are left out. */
  readonly contents: (
    paths: ReadonlyArray<string>,
    limits: ContentLimits
  ) => Effect.Effect<ReadonlyMap<string, Uint8Array>, WorkspaceError>
  /** Gives files the content that they had, and removes those without one. */
  readonly restore: (files: ReadonlyMap<string, Uint8Array | undefined>) => Effect.Effect<void, WorkspaceError>
}

/** The files of a workspace by their paths, with a signature of their content. */
export type Snapshot = ReadonlyMap<string, string>

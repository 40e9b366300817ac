/**
 * Types of skill packs, shared by the public module and the store that reads them.
 */

import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type {
  FileTooLarge,
  InvalidSkillPath,
  SkillFileNotFound,
  SkillPackInvalid,
  SkillPackNotFound
} from "../../KernelError.ts"
import type { Media } from "../../Media.ts"

/** A skill pack, as described by its front matter. */
export interface SkillPack {
  readonly name: string
  readonly description: string
  readonly license?: string
  readonly compatibility?: string
  readonly metadata: ReadonlyMap<string, string>
  /** Tools the pack asks for. The list grants nothing. */
  readonly allowedTools: ReadonlyArray<string>
  /** `<root>/<folder>`, for display. */
  readonly location: string
}

/** A loaded skill pack: its body, cut at the limit, and the names of its files. */
export interface LoadedPack extends SkillPack {
  readonly body: string
  readonly bodyTruncated: boolean
  /** Paths from the folder of the pack, sorted. */
  readonly files: {
    readonly scripts: ReadonlyArray<string>
    readonly references: ReadonlyArray<string>
    readonly assets: ReadonlyArray<string>
  }
}

/** The reason why a folder is not a valid skill pack. */
export interface Problem {
  readonly dir: string
  readonly code:
    | "invalid_front_matter"
    | "invalid_name"
    | "name_mismatch"
    | "invalid_description"
    | "duplicate_name"
    | "invalid_path"
    | "unreadable"
  readonly reason: string
}

/** An unknown field. Strict stores fail with it. */
export interface Warning {
  readonly dir: string
  readonly code: "unknown_field"
  readonly field: string
}

/** All skill packs by name, and the problems of other folders. */
export interface Listing {
  readonly skills: ReadonlyArray<SkillPack>
  readonly problems: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<Warning>
}

/** The service of `SkillPackStore`. */
export interface SkillPackStoreShape {
  /** Lists all packs, sorted by name. An invalid folder does not hide the others; strict stores fail with it. */
  readonly list: Effect.Effect<Listing, SkillPackInvalid>
  /** Loads a pack: its body, cut at 200,000 bytes, and the names of its files, at most 1,000 of each folder. */
  readonly load: (name: string) => Effect.Effect<LoadedPack, SkillPackNotFound | SkillPackInvalid | InvalidSkillPath>
  /** Reads a file of a pack: text, or a medium. A file over 200,000 bytes fails with `FileTooLarge`. */
  readonly readFile: (
    name: string,
    path: string
  ) => Effect.Effect<
    string | Media,
    SkillPackNotFound | SkillPackInvalid | InvalidSkillPath | SkillFileNotFound | FileTooLarge
  >
}

/**
 * The files of a store. An implementation only ensures that nothing outside its roots is read; names and front matter
 * are checked by the store.
 */
export interface Files {
  /** If two packs have the same name, the one in the first root wins. */
  readonly roots: ReadonlyArray<string>
  /** Returns the names of the folders in a root. Fails with the reason. */
  readonly folders: (root: string) => Effect.Effect<ReadonlyArray<string>, string>
  /**
   * Reads the first bytes of a plain file, and its size. A path that leaves the folder fails before anything is opened.
   */
  readonly read: (
    folder: Folder,
    path: string,
    bytes: number
  ) => Effect.Effect<Option.Option<{ readonly bytes: Uint8Array; readonly size: number }>, InvalidSkillPath>
  /** Returns the paths of at most `limit` plain files in a subfolder, relative to the folder. */
  readonly index: (folder: Folder, under: string, limit: number) => Effect.Effect<ReadonlyArray<string>>
}

/** A folder in a root. */
export interface Folder {
  readonly root: string
  readonly name: string
}

/** Options of a store. */
export interface Options {
  /** Fail with `SkillPackInvalid` instead of reporting problems and warnings. Default: false. */
  readonly strict?: boolean | undefined
}

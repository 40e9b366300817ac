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

/** What the front matter of a skill says. */
export interface SkillPack {
  readonly name: string
  readonly description: string
  readonly license?: string
  readonly compatibility?: string
  readonly metadata: ReadonlyMap<string, string>
  /** What the skill would like to use. It grants nothing. */
  readonly allowedTools: ReadonlyArray<string>
  /** `<root>/<folder>`, for people. */
  readonly location: string
}

/** A skill that was loaded: its body, cut at the limit, and the files it has. */
export interface LoadedPack extends SkillPack {
  readonly body: string
  readonly bodyTruncated: boolean
  /** Paths from the skill's folder, sorted. */
  readonly files: {
    readonly scripts: ReadonlyArray<string>
    readonly references: ReadonlyArray<string>
    readonly assets: ReadonlyArray<string>
  }
}

/** Why a folder is no skill. */
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

/** A field nobody knows. A strict store fails for it. */
export interface Warning {
  readonly dir: string
  readonly code: "unknown_field"
  readonly field: string
}

/** All skills by name, and what is wrong with other folders. */
export interface Listing {
  readonly skills: ReadonlyArray<SkillPack>
  readonly problems: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<Warning>
}

/** The verbs of a store. */
export interface SkillPackStoreShape {
  /** All skills, sorted by name. One bad folder never hides the others; a strict store fails for it. */
  readonly list: Effect.Effect<Listing, SkillPackInvalid>
  /** A skill with its body, cut at 200,000 bytes, and the names of its files, 1,000 of each folder at most. */
  readonly load: (name: string) => Effect.Effect<LoadedPack, SkillPackNotFound | SkillPackInvalid | InvalidSkillPath>
  /** A file of a skill: text, or a medium. One over 200,000 bytes fails with `FileTooLarge`. */
  readonly readFile: (
    name: string,
    path: string
  ) => Effect.Effect<
    string | Media,
    SkillPackNotFound | SkillPackInvalid | InvalidSkillPath | SkillFileNotFound | FileTooLarge
  >
}

/**
 * Where the files of skills are: what a store is made of. Nothing here judges
 * names or front matter; an implementation only keeps inside its roots.
 */
export interface Files {
  /** The first of two skills of one name is in the first root. */
  readonly roots: ReadonlyArray<string>
  /** The names of the folders in a root, or why they cannot be read. */
  readonly folders: (root: string) => Effect.Effect<ReadonlyArray<string>, string>
  /** The first bytes of a plain file, and its size. A path that leaves the folder fails before anything is opened. */
  readonly read: (
    folder: Folder,
    path: string,
    bytes: number
  ) => Effect.Effect<Option.Option<{ readonly bytes: Uint8Array; readonly size: number }>, InvalidSkillPath>
  /** Paths from the folder of the plain files under one of its folders; no more than `limit`. */
  readonly index: (folder: Folder, under: string, limit: number) => Effect.Effect<ReadonlyArray<string>>
}

/** A folder in a root. */
export interface Folder {
  readonly root: string
  readonly name: string
}

/** How a store reads. */
export interface Options {
  /** Fail with `SkillPackInvalid` where a problem or a warning would be told. */
  readonly strict?: boolean | undefined
}

/**
 * Media by id: what a run was given or made, kept until its root run ends (BP-119, CP-11).
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { Content, MediaContent } from "./Content.ts"
import type { LimitExceeded, MediaConflict, MediaNotFound, MediaUnreadable } from "./KernelError.ts"
import type { Media } from "./Media.ts"

/** A medium that has its id. */
export interface StoredMedia extends Media {
  readonly id: string
}

/**
 * What a media store does.
 *
 * @category models
 * @since 0.1.0
 */
export interface Shape {
  /** Stores a medium under its id (BP-116). The same medium again is no change. */
  readonly put: (media: Media) => Effect.Effect<StoredMedia, MediaConflict | LimitExceeded>
  /** The medium of an id, if the store has it. */
  readonly get: (id: string) => Effect.Effect<Option.Option<StoredMedia>>
  /** The bytes of a medium. URLs are never fetched (CP-11). */
  readonly bytes: (id: string) => Effect.Effect<Uint8Array, MediaNotFound | MediaUnreadable>
  /** The content that names a stored medium by `fileId`. */
  readonly content: (id: string) => Effect.Effect<MediaContent, MediaNotFound>
  /** Stores the media and inline bytes among `parts`, at any depth, and gives the parts with references instead. */
  readonly admit: (
    parts: ReadonlyArray<string | Media | Content>
  ) => Effect.Effect<ReadonlyArray<Content>, MediaConflict | LimitExceeded>
  /** Everything stored, oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<StoredMedia>>
  /** How many media are stored. */
  readonly size: Effect.Effect<number>
  /** The store of one root run: shared by the whole tree, released when the last holder's scope closes. */
  readonly run: (rootRunId: string) => Effect.Effect<Shape, never, Scope.Scope>
}

/**
 * Keeps media for one root run, or for the application.
 *
 * @category services
 * @since 0.1.0
 */
export class MediaStore extends Context.Service<MediaStore, Shape>()("kernai/MediaStore") {}

/**
 * The types of a store of media.
 */

import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type * as Content from "../../Content.ts"
import type { LimitExceeded, MediaConflict, MediaNotFound, MediaUnreadable, StoreError } from "../../KernelError.ts"
import type * as Media from "../../Media.ts"

/**
 * A medium that has its id.
 *
 * @category models
 * @since 0.1.0
 */
export interface StoredMedia extends Media.Media {
  readonly id: string
}

/**
 * The operations of a media store.
 *
 * @category models
 * @since 0.1.0
 */
export interface MediaStoreShape {
  /**
   * Stores a medium under its id, and gives it one if it has none. Storing the same medium again changes nothing; another
   * medium of the same id fails with `MediaConflict`.
   */
  readonly put: (media: Media.Media) => Effect.Effect<StoredMedia, MediaConflict | LimitExceeded | StoreError>
  /** Returns the medium of an id, if the store has it. */
  readonly get: (id: string) => Effect.Effect<Option.Option<StoredMedia>, StoreError>
  /** Returns the bytes of a medium. A file is read now; a URL is never fetched and fails with `MediaUnreadable`. */
  readonly bytes: (id: string) => Effect.Effect<Uint8Array, MediaNotFound | MediaUnreadable | StoreError>
  /** Returns the content that names a stored medium by `fileId`. */
  readonly content: (id: string) => Effect.Effect<Content.MediaContent, MediaNotFound | StoreError>
  /** Stores the media and inline bytes among `parts`, at any depth, and returns the parts with references instead. */
  readonly admit: (
    parts: ReadonlyArray<string | Media.Media | Content.Content>
  ) => Effect.Effect<ReadonlyArray<Content.Content>, MediaConflict | LimitExceeded | StoreError>
  /** Returns everything put into this store, oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<StoredMedia>, StoreError>
  /** Returns how many media were put into this store. */
  readonly size: Effect.Effect<number, StoreError>
  /**
   * Opens the store of a root run, shared by all runs of its tree. A store in memory is emptied when the last scope that
   * holds it closes. It also sees the media of `origins`: root runs it was forked from.
   */
  readonly run: (
    rootRunId: string,
    origins?: ReadonlyArray<string>
  ) => Effect.Effect<MediaStoreShape, never, Scope.Scope>
  /** Deletes the media of root runs that will not continue. Ignores unknown ids. */
  readonly release: (rootRunIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
}

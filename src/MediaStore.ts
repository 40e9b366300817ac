/**
 * Media by id: what a run was given or made, kept as long as its root run may go on (BP-119, CP-11).
 *
 * Messages and journals name media by `fileId`; the bytes are here, once. The
 * store of a root run is shared by its whole tree and bounded; it sees the
 * application's own media, and keeps its own from others. In memory it is
 * released when the run stops in this process. A durable store (`FileMediaStore`,
 * `SqlMediaStore`) keeps it for whoever goes on with the run, until `release`.
 * A path is read when its bytes are asked for; a URL is never fetched.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Shelf from "./internal/store/mediaScope.ts"
import type { MediaStoreShape, StoredMedia } from "./internal/store/mediaStoreTypes.ts"
import { MediaConflict, MediaNotFound, MediaUnreadable } from "./KernelError.ts"
import * as Media from "./Media.ts"

export { MediaConflict, MediaNotFound, MediaUnreadable }
export type { MediaStoreShape, StoredMedia } from "./internal/store/mediaStoreTypes.ts"

/**
 * Keeps media for the application, and for each root run.
 *
 * A run provides its own store to the skills it runs, so a skill just asks for `MediaStore`.
 *
 * @category services
 * @since 0.1.0
 */
export class MediaStore extends Context.Service<MediaStore, MediaStoreShape>()("kernai/MediaStore") {}

/**
 * A stored medium by its id: what a skill input asks for when it takes a medium (W-21).
 *
 * @example
 * const ocr = Skill.make("ocr", {
 *   description: "Reads the text in a picture",
 *   input: Schema.Struct({ image: MediaStore.Reference }),
 *   execute: ({ image }) => MediaStore.MediaStore.use((store) => store.bytes(image.id))
 * })
 *
 * @category schemas
 * @since 0.1.0
 */
export const Reference: Schema.Codec<StoredMedia, string, MediaStore> = (() =>
  Schema.String.annotate({ description: "The id of a medium in this conversation, such as media_0123456789ab" }).pipe(
    Schema.decodeTo(Schema.declare(isStored, { expected: "a stored medium" }), {
      decode: SchemaGetter.transformEffect((id: string) =>
        Effect.flatMap(
          Effect.mapError(
            MediaStore.use((store) => store.get(id)),
            () => new SchemaIssue.InvalidValue({ message: "the media store cannot be read now" })
          ),
          Option.match({
            onNone: () =>
              Effect.fail(new SchemaIssue.InvalidValue({ message: `no media with id '${id.slice(0, 64)}'` })),
            onSome: Effect.succeed
          })
        )
      ),
      encode: SchemaGetter.transform((media: StoredMedia) => media.id)
    })
  ))()

/**
 * Keeps media in this process.
 *
 * Media in files can be read where the layer is built on a `FileSystem` and a `Path`, and only inside `root` (S-4).
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemoryWith = (options: { readonly root: string }): Layer.Layer<MediaStore> =>
  Layer.effect(
    MediaStore,
    Effect.suspend(() => Shelf.store(Shelf.memory(), options.root))
  )

/**
 * Keeps media in this process, and reads files inside the current folder.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<MediaStore> = layerMemoryWith({ root: "." })

// A declaration, not a constant: the schema above is made before the constants down here are.
function isStored(value: unknown): value is StoredMedia {
  return Media.isMedia(value) && value.id !== undefined
}

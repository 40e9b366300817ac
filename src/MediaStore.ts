/**
 * Keeps media by id, for as long as their root run may continue.
 *
 * Messages and journals refer to media by `fileId`; the bytes are stored once, here. All runs of a tree share the
 * bounded store of their root run. It also sees the application's own media, but not those of other trees. In memory,
 * the media of a tree are released when its root run stops in this process, those of a submitted run when it has
 * ended. A durable store (`FileMediaStore`,
 * `SqlMediaStore`) keeps them until `release`. Files are read when their bytes are requested; URLs are never fetched.
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
import { mediaId } from "./kit/jsonSchema.ts"
import * as MediaScope from "./store-kit/MediaScope.ts"
import type { MediaStoreShape, StoredMedia } from "./store-kit/MediaScope.ts"
import { MediaConflict, MediaNotFound, MediaUnreadable } from "./KernelError.ts"
import * as Media from "./Media.ts"

export { MediaConflict, MediaNotFound, MediaUnreadable }
export type { MediaStoreShape, StoredMedia } from "./store-kit/MediaScope.ts"

/**
 * Keeps media for the application and for each root run.
 *
 * Skills use the store of their run: `MediaStore` inside a skill is always that of the run.
 *
 * @category services
 * @since 0.1.0
 */
export class MediaStore extends Context.Service<MediaStore, MediaStoreShape>()("kernai/MediaStore") {}

/**
 * Decodes the id of a stored medium. Use it in the input of a skill that takes a medium.
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
  Schema.String.annotate({
    title: mediaId,
    description: "The id of a medium in this conversation, such as media_0123456789ab"
  }).pipe(
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
 * A medium in the input of an agent or a program: `Kernel.run` stores it with the run, and the run has its id, kind and
 * MIME type. The message of the run has the medium, too, so that a model sees it.
 *
 * @example
 * const invoices = Program.make("invoices", {
 *   input: Schema.Struct({ pdf: MediaStore.Medium }),
 *   agents: [extractor],
 *   run: ({ pdf }) => Program.ask(extractor, { pdf })
 * })
 * const result = yield* Kernel.run(invoices, { pdf: Media.fromPath("invoice.pdf") })
 *
 * @category schemas
 * @since 0.1.0
 */
export const Medium: Schema.Codec<StoredMedia, StoredMediumFields> = (() =>
  Schema.Struct({ id: Schema.String, kind: Media.Kind, mimeType: Schema.String }).pipe(
    Schema.decodeTo(Schema.declare(isStored, { expected: "a stored medium" }), {
      // The store has the data of a stored medium, by its id.
      decode: SchemaGetter.transform((fields: StoredMediumFields): StoredMedia => ({
        ...fields,
        metadata: {},
        source: { _tag: "Url", url: fields.id }
      })),
      encode: SchemaGetter.transform(({ id, kind, mimeType }: StoredMedia): StoredMediumFields => ({
        id,
        kind,
        mimeType
      }))
    })
  ))()

/** The JSON form of a stored medium, as an upload returns it. */
type StoredMediumFields = Pick<StoredMedia, "id" | "kind" | "mimeType">

/**
 * Keeps media in this process.
 *
 * Media in files can be read if the layer is built on a `FileSystem` and a `Path`, and only inside `root`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemoryWith = (options: { readonly root: string }): Layer.Layer<MediaStore> =>
  Layer.effect(
    MediaStore,
    Effect.suspend(() => MediaScope.store(MediaScope.memory(), options.root))
  )

/**
 * Keeps media in this process, and reads files inside the current folder.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<MediaStore> = layerMemoryWith({ root: "." })

// Declared as a function, because the schema above needs it while the module loads.
function isStored(value: unknown): value is StoredMedia {
  return Media.isMedia(value) && value.id !== undefined
}

/**
 * Payload parts: what messages, skill results and answers are made of (CP-1).
 *
 * A content is a plain frozen object, told apart by `type` and compared by
 * value; a change makes a new one. Constructors only build objects, so they are
 * safe on the path of a token: they freeze what they are given and copy bytes.
 * `decode` and `encode` are the wire form, and lose nothing that a newer or
 * foreign peer wrote (CP-2, CP-3, CP-7).
 *
 * @since 0.1.0
 */

import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { defineBytes } from "./internal/base/snapshot.ts"
import * as Codec from "./internal/words/contentCodec.ts"
import * as Text from "./internal/words/contentText.ts"
import type * as Type from "./internal/words/contentType.ts"
import type { Json, JsonObject } from "./internal/base/json.ts"
import * as Snapshot from "./internal/base/snapshot.ts"
import { BlockValidationError } from "./KernelError.ts"

export type {
  Audio,
  Code,
  Custom,
  Data,
  Document,
  ErrorContent,
  Image,
  MediaContent,
  MediaFields,
  Text,
  Thinking,
  ToolResult,
  ToolUse,
  UiResource,
  Unknown,
  Video
} from "./internal/words/contentType.ts"
export type { Json, JsonObject } from "./internal/base/json.ts"
export { BlockValidationError }

/**
 * One part of a message.
 *
 * @category models
 * @since 0.1.0
 */
export type Content = Type.Content

/**
 * The codec: wire JSON to content and back. Types registered in `BlockTypes` stay unknown here, and lose nothing.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Content: Schema.Codec<Content, Json> = Codec.schema(() => undefined)

/**
 * Exactly one source of a medium.
 *
 * @category models
 * @since 0.1.0
 */
export type OneSource = { readonly mediaType?: string } & (
  | { readonly url: string; readonly data?: never; readonly fileId?: never }
  | { readonly data: Uint8Array; readonly url?: never; readonly fileId?: never }
  | { readonly fileId: string; readonly url?: never; readonly data?: never }
)

/**
 * At least one source of a medium.
 *
 * @category models
 * @since 0.1.0
 */
export type SomeSource = Type.MediaFields &
  ({ readonly url: string } | { readonly data: Uint8Array } | { readonly fileId: string })

/**
 * Plain text.
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (text: string): Type.Text => Object.freeze<Type.Text>({ type: "text", text })

/**
 * Source code.
 *
 * @category constructors
 * @since 0.1.0
 */
export const code = (code: string, language?: string): Type.Code =>
  Object.freeze<Type.Code>({ type: "code", code, ...(language === undefined ? {} : { language }) })

/**
 * A JSON object, with the name of its schema if it has one.
 *
 * @category constructors
 * @since 0.1.0
 */
export const data = (data: JsonObject, schemaId?: string): Type.Data =>
  Snapshot.freeze<Type.Data>({ type: "data", data, ...(schemaId === undefined ? {} : { schemaId }) })

/**
 * What went wrong, told to the model or the user.
 *
 * @category constructors
 * @since 0.1.0
 */
export const error = (
  errorType: string,
  message: string,
  options?: { readonly recoverable?: boolean; readonly details?: JsonObject }
): Type.ErrorContent =>
  Snapshot.freeze<Type.ErrorContent>({ type: "error", errorType, message, recoverable: true, ...options })

/**
 * A picture.
 *
 * @category constructors
 * @since 0.1.0
 */
export const image = (source: OneSource): Type.Image => sealed<Type.Image>({ type: "image", ...source })

/**
 * A sound.
 *
 * @category constructors
 * @since 0.1.0
 */
export const audio = (source: SomeSource & { readonly transcript?: string }): Type.Audio =>
  sealed<Type.Audio>({ type: "audio", ...source })

/**
 * A film.
 *
 * @category constructors
 * @since 0.1.0
 */
export const video = (source: SomeSource): Type.Video => sealed<Type.Video>({ type: "video", ...source })

/**
 * A file.
 *
 * @category constructors
 * @since 0.1.0
 */
export const document = (source: OneSource & { readonly filename?: string }): Type.Document =>
  sealed<Type.Document>({ type: "document", ...source })

/**
 * A stored medium, by the id `MediaStore.put` gave it (CP-11).
 *
 * @category constructors
 * @since 0.1.0
 */
export const reference = (media: {
  readonly kind: Type.MediaContent["type"]
  readonly id: string
  readonly mimeType: string
}): Type.MediaContent => Object.freeze({ type: media.kind, fileId: media.id, mediaType: media.mimeType })

/**
 * A call the model makes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const toolUse = (callId: string, name: string, args: JsonObject = {}): Type.ToolUse =>
  Snapshot.freeze<Type.ToolUse>({ type: "tool_use", callId, name, input: args })

/**
 * What a call gave. A string becomes one text part.
 *
 * @category constructors
 * @since 0.1.0
 */
export const toolResult = (
  callId: string,
  content: string | ReadonlyArray<Content>,
  options?: { readonly isError?: boolean | undefined }
): Type.ToolResult =>
  Object.freeze<Type.ToolResult>({
    type: "tool_result",
    callId,
    content: Object.freeze(typeof content === "string" ? [text(content)] : content.slice()),
    isError: options?.isError ?? false
  })

/**
 * What the model thought, with what its provider needs to see it again (CP-9).
 *
 * @category constructors
 * @since 0.1.0
 */
export const thinking = (
  content: string,
  options?: { readonly redacted?: boolean; readonly origin?: Json; readonly signature?: Json }
): Type.Thinking => Snapshot.freeze<Type.Thinking>({ type: "thinking", content, redacted: false, ...options })

/**
 * An interactive page: `uri` is `ui://` and a name (CP-5).
 *
 * @category constructors
 * @since 0.1.0
 */
export const uiResource = (
  uri: string,
  options?: Partial<Pick<Type.UiResource, "renderMode" | "text" | "structuredContent" | "mimeType">>
): Type.UiResource =>
  Snapshot.freeze<Type.UiResource>({ type: "ui_resource", uri, renderMode: "inline", text: "", ...options })

/**
 * Reads a wire form. A known type with a bad field fails; a type nobody knows is kept verbatim (CP-2, CP-7).
 *
 * @category codecs
 * @since 0.1.0
 */
export const decode = (input: unknown): Result.Result<Content, BlockValidationError> =>
  Codec.decode(input, () => undefined)

/**
 * Writes the wire form.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encode: (content: Content) => JsonObject = Codec.encode

/**
 * Any value as frozen JSON, or where it stops being JSON.
 *
 * @category codecs
 * @since 0.1.0
 */
export const json = (value: unknown): Result.Result<Json, BlockValidationError> =>
  Result.mapError(Snapshot.take(value), (fault) => new BlockValidationError(fault))

/**
 * The text form (CP-10).
 *
 * @category combinators
 * @since 0.1.0
 */
export const toText: (content: Content) => string = Text.toText

/**
 * What stands for a medium the model cannot take: `[image unavailable: image/png]` (BP-105).
 *
 * @category combinators
 * @since 0.1.0
 */
export const placeholder: (content: Type.MediaContent) => string = Text.placeholder

/**
 * The content as a person or an export sees it: without what the provider hid (CP-9).
 *
 * @category combinators
 * @since 0.1.0
 */
export const uiForm: (content: Content) => Content = Text.uiForm

/**
 * The fields a content carries beyond those of its type, under their wire names (CP-3).
 *
 * @category combinators
 * @since 0.1.0
 */
export const extras: (content: Content) => JsonObject = Codec.extras

/**
 * The same result with other parts.
 *
 * @category combinators
 * @since 0.1.0
 */
export const withContent = (result: Type.ToolResult, content: ReadonlyArray<Content>): Type.ToolResult =>
  Object.freeze({ ...result, content: Object.freeze(content.slice()) })

/**
 * The same medium, named by its id in a store instead of carrying its bytes (CP-11).
 *
 * @category combinators
 * @since 0.1.0
 */
export const withReference = (content: Type.MediaContent, fileId: string): Type.MediaContent => {
  const { data: _bytes, ...rest } = content
  return Object.freeze({ ...rest, fileId })
}

/**
 * Tells a content from any other value by its `type`; its fields were checked where it was made.
 *
 * @category guards
 * @since 0.1.0
 */
export const isContent: (value: unknown) => value is Content = Codec.isContent

/**
 * Is this an image, audio, video or document?
 *
 * @category guards
 * @since 0.1.0
 */
export const isMedia = (content: Content): content is Type.MediaContent =>
  content.type === "image" || content.type === "audio" || content.type === "video" || content.type === "document"

// Bytes cannot be frozen, so they are copied in and out.
const sealed = <A extends Type.MediaFields>(content: A): A => {
  if (content.data !== undefined) defineBytes(content, "data", content.data)
  return Object.freeze(content)
}

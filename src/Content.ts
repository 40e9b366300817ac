/**
 * The parts of messages, skill results and answers.
 *
 * A content is a plain frozen object, distinguished by `type` and compared by value. Constructors freeze their input
 * and copy bytes; they are cheap enough to be called for every token. `decode` and `encode` are the wire form, and keep
 * everything a newer or foreign peer wrote.
 *
 * @since 0.1.0
 */

import { dual } from "effect/Function"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { defineBytes } from "./kit/snapshot.ts"
import * as Codec from "./internal/words/contentCodec.ts"
import * as Text from "./internal/words/contentText.ts"
import type * as Type from "./ContentModel.ts"
import type { Json, JsonObject } from "./kit/json.ts"
import * as Snapshot from "./kit/snapshot.ts"
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
  Source,
  Text,
  Thinking,
  ToolResult,
  ToolUse,
  UiResource,
  Unknown,
  Video
} from "./ContentModel.ts"
export type { Json, JsonObject } from "./kit/json.ts"
export { BlockValidationError }

/**
 * One part of a message.
 *
 * @category models
 * @since 0.1.0
 */
export type Content = Type.Content

/**
 * The codec between wire JSON and contents. Types registered in `BlockTypes` decode to `Unknown` here, and lose
 * nothing.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Content: Schema.Codec<Content, Json> = /* @__PURE__ */ Codec.schema(() => undefined)

/**
 * Exactly one source of a medium: a URL, bytes, or the id of a stored medium.
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
 * At least one source of a medium: a URL, bytes, or the id of a stored medium.
 *
 * @category models
 * @since 0.1.0
 */
export type SomeSource = Type.MediaFields &
  ({ readonly url: string } | { readonly data: Uint8Array } | { readonly fileId: string })

/**
 * Creates plain text.
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (text: string): Type.Text => Object.freeze<Type.Text>({ type: "text", text })

/**
 * Creates source code.
 *
 * @category constructors
 * @since 0.1.0
 */
export const code = (code: string, language?: string): Type.Code =>
  Object.freeze<Type.Code>({ type: "code", code, ...(language === undefined ? {} : { language }) })

/**
 * Creates data: a JSON object, optionally with the name of its schema.
 *
 * @category constructors
 * @since 0.1.0
 */
export const data = (data: JsonObject, schemaId?: string): Type.Data =>
  Snapshot.freeze<Type.Data>({ type: "data", data, ...(schemaId === undefined ? {} : { schemaId }) })

/**
 * Creates an error for the model or the user.
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
 * Creates an image.
 *
 * @category constructors
 * @since 0.1.0
 */
export const image = (source: OneSource): Type.Image => sealed<Type.Image>({ type: "image", ...source })

/**
 * Creates audio.
 *
 * @category constructors
 * @since 0.1.0
 */
export const audio = (source: SomeSource & { readonly transcript?: string }): Type.Audio =>
  sealed<Type.Audio>({ type: "audio", ...source })

/**
 * Creates a video.
 *
 * @category constructors
 * @since 0.1.0
 */
export const video = (source: SomeSource): Type.Video => sealed<Type.Video>({ type: "video", ...source })

/**
 * Creates a document.
 *
 * @category constructors
 * @since 0.1.0
 */
export const document = (source: OneSource & { readonly filename?: string }): Type.Document =>
  sealed<Type.Document>({ type: "document", ...source })

/**
 * Creates a reference to a stored medium, by the id returned by `MediaStore.put`.
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
 * Creates a call made by the model.
 *
 * @category constructors
 * @since 0.1.0
 */
export const toolUse = (callId: string, name: string, args: JsonObject = {}): Type.ToolUse =>
  Snapshot.freeze<Type.ToolUse>({ type: "tool_use", callId, name, input: args })

/**
 * Creates the result of a call. A string becomes one text part.
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
 * Creates reasoning, with the data its provider needs to receive it again.
 *
 * @category constructors
 * @since 0.1.0
 */
export const thinking = (
  content: string,
  options?: { readonly redacted?: boolean; readonly origin?: Json; readonly signature?: Json }
): Type.Thinking => Snapshot.freeze<Type.Thinking>({ type: "thinking", content, redacted: false, ...options })

/**
 * Creates an interactive page. `uri` is `ui://` followed by a name.
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
 * Creates a source that a reply names: a page by its address, or a document by its title.
 *
 * @category constructors
 * @since 0.1.0
 */
export const source = (
  source: { readonly quote?: string } & (
    | { readonly url: string; readonly title?: string }
    | { readonly url?: string; readonly title: string }
  )
): Type.Source => Object.freeze<Type.Source>({ type: "source", ...source })

/**
 * Decodes a wire form. A known type with a wrong field fails with `BlockValidationError`; an unknown type is kept
 * verbatim.
 *
 * @category codecs
 * @since 0.1.0
 */
export const decode = (input: unknown): Result.Result<Content, BlockValidationError> =>
  Codec.decode(input, () => undefined)

/**
 * Encodes the wire form.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encode: (content: Content) => JsonObject = Codec.encode

/**
 * Copies any value as frozen JSON. Fails with the place where it stops being JSON.
 *
 * @category codecs
 * @since 0.1.0
 */
export const json = (value: unknown): Result.Result<Json, BlockValidationError> =>
  Result.mapError(Snapshot.take(value), (fault) => new BlockValidationError(fault))

/**
 * Returns the text form. Escape it before putting it into a prompt.
 *
 * @category rendering
 * @since 0.1.0
 */
export const toText: (content: Content) => string = Text.toText

/**
 * Returns the text that replaces a medium the model cannot take: `[image unavailable: image/png]`.
 *
 * @category rendering
 * @since 0.1.0
 */
export const placeholder: (content: Type.MediaContent) => string = Text.placeholder

/**
 * Returns a content as it is shown to people and in exports: without redacted thinking.
 *
 * @category rendering
 * @since 0.1.0
 */
export const uiForm: (content: Content) => Content = Text.uiForm

/**
 * Returns the fields of a content that its type does not declare, under their wire names.
 *
 * @category getters
 * @since 0.1.0
 */
export const extras: (content: Content) => JsonObject = Codec.extras

/**
 * Replaces the parts of a result.
 *
 * @category combinators
 * @since 0.1.0
 */
export const withContent: {
  (content: ReadonlyArray<Content>): (result: Type.ToolResult) => Type.ToolResult
  (result: Type.ToolResult, content: ReadonlyArray<Content>): Type.ToolResult
} = /* @__PURE__ */ dual(2, (result: Type.ToolResult, content: ReadonlyArray<Content>): Type.ToolResult =>
  Object.freeze({ ...result, content: Object.freeze(content.slice()) })
)

/**
 * Replaces the bytes of a medium by its id in a store.
 *
 * @category combinators
 * @since 0.1.0
 */
export const withReference: {
  (fileId: string): (content: Type.MediaContent) => Type.MediaContent
  (content: Type.MediaContent, fileId: string): Type.MediaContent
} = /* @__PURE__ */ dual(2, (content: Type.MediaContent, fileId: string): Type.MediaContent => {
  const { data: _bytes, ...rest } = content
  return Object.freeze({ ...rest, fileId })
})

/**
 * Returns true for a content. Only its `type` is checked; the fields were checked when it was created.
 *
 * @category guards
 * @since 0.1.0
 */
export const isContent: (value: unknown) => value is Content = Codec.isContent

/**
 * Returns true for an image, audio, video or document.
 *
 * @category guards
 * @since 0.1.0
 */
export const isMedia = (content: Content): content is Type.MediaContent =>
  content.type === "image" || content.type === "audio" || content.type === "video" || content.type === "document"

// Bytes cannot be frozen, so they are copied on the way in and out.
const sealed = <A extends Type.MediaFields>(content: A): A => {
  if (content.data !== undefined) defineBytes(content, "data", content.data)
  return Object.freeze(content)
}

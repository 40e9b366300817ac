/**
 * The types of contents, a union by `type`.
 *
 * `Content.ts` creates, decodes and encodes them. Fields added by a newer peer are kept on the object and written back,
 * but do not appear in the types, so a `switch` on `type` stays complete. `Content.extras` returns them.
 *
 * @since 0.1.0
 */

import type { Json, JsonObject } from "./kit/json.ts"

/**
 * One part of a message.
 *
 * @category models
 * @since 0.1.0
 */
export type Content =
  | Text
  | Code
  | Data
  | ErrorContent
  | Image
  | Audio
  | Video
  | Document
  | ToolUse
  | ToolResult
  | Thinking
  | UiResource
  | Source
  | Custom
  | Unknown

/**
 * Plain text.
 *
 * @category models
 * @since 0.1.0
 */
export interface Text {
  readonly type: "text"
  readonly text: string
}

/**
 * Source code.
 *
 * @category models
 * @since 0.1.0
 */
export interface Code {
  readonly type: "code"
  readonly code: string
  readonly language?: string
}

/**
 * A JSON object, optionally with the name of its schema.
 *
 * @category models
 * @since 0.1.0
 */
export interface Data {
  readonly type: "data"
  readonly data: JsonObject
  readonly schemaId?: string
}

/**
 * An error shown to the model or the user.
 *
 * @category models
 * @since 0.1.0
 */
export interface ErrorContent {
  readonly type: "error"
  readonly errorType: string
  readonly message: string
  readonly recoverable: boolean
  readonly details?: JsonObject
}

/**
 * The source of a medium. Reading `data` returns a copy each time.
 *
 * @category models
 * @since 0.1.0
 */
export interface MediaFields {
  readonly url?: string
  readonly data?: Uint8Array
  /** The id returned by `MediaStore.put`. */
  readonly fileId?: string
  readonly mediaType?: string
}

/**
 * An image with exactly one source.
 *
 * @category models
 * @since 0.1.0
 */
export interface Image extends MediaFields {
  readonly type: "image"
}

/**
 * Audio with at least one source.
 *
 * @category models
 * @since 0.1.0
 */
export interface Audio extends MediaFields {
  readonly type: "audio"
  readonly transcript?: string
}

/**
 * A video with at least one source.
 *
 * @category models
 * @since 0.1.0
 */
export interface Video extends MediaFields {
  readonly type: "video"
}

/**
 * A document with exactly one source.
 *
 * @category models
 * @since 0.1.0
 */
export interface Document extends MediaFields {
  readonly type: "document"
  readonly filename?: string
}

/**
 * The contents that carry a medium.
 *
 * @category models
 * @since 0.1.0
 */
export type MediaContent = Image | Audio | Video | Document

/**
 * A call made by the model. The keys of `input` are the model's own and never renamed.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolUse {
  readonly type: "tool_use"
  readonly callId: string
  readonly name: string
  readonly input: JsonObject
}

/**
 * The result of a call.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolResult {
  readonly type: "tool_result"
  readonly callId: string
  readonly content: ReadonlyArray<Content>
  readonly isError: boolean
}

/**
 * The reasoning of a model. `origin` and `signature` belong to its provider and are sent back to it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Thinking {
  readonly type: "thinking"
  readonly content: string
  readonly redacted: boolean
  /** The provider that produced the reasoning. It is sent to no other provider. */
  readonly origin?: Json
  readonly signature?: Json
}

/**
 * An interactive page. Models and the text form see only `text`.
 *
 * @category models
 * @since 0.1.0
 */
export interface UiResource {
  readonly type: "ui_resource"
  /** `ui://` followed by a name. */
  readonly uri: string
  /** Known modes: inline, panel, fullscreen. Other modes are kept and displayed inline. */
  readonly renderMode: string
  readonly text: string
  readonly structuredContent?: JsonObject
  readonly mimeType?: string
}

/**
 * A source that a reply names: a page that a vendor's search found, or a passage that the reply cites. It has an address
 * or a title, and comes from outside. It is shown to people; models and the text form do not see it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Source {
  readonly type: "source"
  readonly url?: string
  readonly title?: string
  /** The cited words. */
  readonly quote?: string
}

/**
 * A content of a type registered in `BlockTypes`, kept verbatim and decoded by its schema.
 *
 * @category models
 * @since 0.1.0
 */
export interface Custom {
  readonly type: "custom"
  readonly wireType: string
  readonly raw: JsonObject
  /** The value decoded by the schema. Narrow it with `Schema.is`. */
  readonly value: unknown
}

/**
 * A content of an unregistered type, kept verbatim.
 *
 * @category models
 * @since 0.1.0
 */
export interface Unknown {
  readonly type: "unknown"
  readonly wireType: string
  readonly raw: JsonObject
}

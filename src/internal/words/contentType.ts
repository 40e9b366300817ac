/**
 * The payload parts a message is made of (CP-1): one plain object per part, told apart by `type`.
 *
 * These are the TypeScript shapes; `Content.ts` makes, reads and writes them. Fields a
 * newer peer added are kept on the object and written back (CP-3), but the types do not
 * show them, so a `switch` on `type` stays complete. Use `Content.extras` to see them.
 */

import type { Json, JsonObject } from "../base/json.ts"

/** One part of a message. */
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
  | Custom
  | Unknown

/** Plain text. */
export interface Text {
  readonly type: "text"
  readonly text: string
}

/** Source code. */
export interface Code {
  readonly type: "code"
  readonly code: string
  readonly language?: string
}

/** A JSON object, with the name of its schema if it has one. */
export interface Data {
  readonly type: "data"
  readonly data: JsonObject
  readonly schemaId?: string
}

/** What went wrong, told to the model or the user. */
export interface ErrorContent {
  readonly type: "error"
  readonly errorType: string
  readonly message: string
  readonly recoverable: boolean
  readonly details?: JsonObject
}

/** Where a medium comes from. Reading `data` gives a copy each time (CP-4). */
export interface MediaFields {
  readonly url?: string
  readonly data?: Uint8Array
  /** The id `MediaStore.put` gave (CP-11). */
  readonly fileId?: string
  readonly mediaType?: string
}

/** A picture, with exactly one source. */
export interface Image extends MediaFields {
  readonly type: "image"
}

/** A sound, with at least one source. */
export interface Audio extends MediaFields {
  readonly type: "audio"
  readonly transcript?: string
}

/** A film, with at least one source. */
export interface Video extends MediaFields {
  readonly type: "video"
}

/** A file, with exactly one source. */
export interface Document extends MediaFields {
  readonly type: "document"
  readonly filename?: string
}

/** The four parts that carry a medium. */
export type MediaContent = Image | Audio | Video | Document

/** A call the model makes. `arguments` is the model's own data, never renamed (CP-17). */
export interface ToolUse {
  readonly type: "tool_use"
  readonly callId: string
  readonly name: string
  readonly input: JsonObject
}

/** What a call gave. */
export interface ToolResult {
  readonly type: "tool_result"
  readonly callId: string
  readonly content: ReadonlyArray<Content>
  readonly isError: boolean
}

/** What the model thought (CP-9). `origin` and `signature` are the provider's own, kept for replay to it. */
export interface Thinking {
  readonly type: "thinking"
  readonly content: string
  readonly redacted: boolean
  /** The provider that thought. Another one never sees it. */
  readonly origin?: Json
  readonly signature?: Json
}

/** An interactive page (CP-5). Model and text form see only `text`. */
export interface UiResource {
  readonly type: "ui_resource"
  /** `ui://` and a name. */
  readonly uri: string
  /** Known: inline, panel, fullscreen. Others are kept and shown inline. */
  readonly renderMode: string
  readonly text: string
  readonly structuredContent?: JsonObject
  readonly mimeType?: string
}

/** A part of a type registered in `BlockTypes` (CP-8): kept verbatim, and read by its schema. */
export interface Custom {
  readonly type: "custom"
  readonly wireType: string
  readonly raw: JsonObject
  /** What the schema decoded; narrow it with `Schema.is`. */
  readonly value: unknown
}

/** A part of a type nobody registered, kept verbatim (CP-7). */
export interface Unknown {
  readonly type: "unknown"
  readonly wireType: string
  readonly raw: JsonObject
}

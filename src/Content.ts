/**
 * Payload parts: what messages, skill results and answers are made of (CP-1 to CP-11).
 *
 * @since 0.1.0
 */
import type { Content } from "./internal/contentType.ts"

export type {
  Audio,
  Code,
  Content,
  Custom,
  Data,
  Document,
  ErrorContent,
  Image,
  Json,
  JsonObject,
  MediaContent,
  MediaFields,
  Text,
  Thinking,
  ToolResult,
  ToolUse,
  UiResource,
  Unknown,
  Video
} from "./internal/contentType.ts"

/** Plain text. */
export const text = (text: string): Content => Object.freeze({ type: "text", text })

/**
 * Messages in the format of OpenTelemetry's conventions, for spans that capture contents.
 *
 * Media are named, not included. Thinking that a provider redacted stays hidden.
 */

import * as Content from "../../Content.ts"
import type { Message } from "../../Message.ts"

/** A message with its parts. */
export const messageOf = (message: Message): object => ({ role: message.role, parts: message.content.map(partOf) })

/** One part. */
export const partOf = (content: Content.Content): object => {
  switch (content.type) {
    case "text":
      return { type: "text", content: content.text }
    case "thinking":
      return { type: "reasoning", content: content.redacted ? "" : content.content }
    case "tool_use":
      return { type: "tool_call", id: content.callId, name: content.name, arguments: content.input }
    case "tool_result":
      return { type: "tool_call_response", id: content.callId, result: content.content.map(partOf) }
    case "image":
    case "audio":
    case "video":
    case "document":
      return {
        type: "media",
        modality: content.type,
        mime_type: content.mediaType,
        id: content.fileId,
        uri: content.url
      }
    default:
      return { type: content.type, content: Content.toText(content) }
  }
}

/**
 * Converts contents to text, and to the form shown to people.
 *
 * The text form is for reading, not parsing. Escape it before putting it into a prompt.
 */

import type { Content, Document, MediaContent, ToolResult } from "../../ContentModel.ts"

/** Returns the text form. */
export const toText = (content: Content): string => {
  switch (content.type) {
    case "text":
      return content.text
    case "code":
      return fenced(content.code, content.language ?? "")
    case "data":
      return JSON.stringify(content.data)
    case "error":
      return `[${content.errorType}]: ${content.message}`
    case "image":
      return bracket("Image", refOf(content))
    case "video":
      return bracket("Video", refOf(content))
    case "audio":
      return content.transcript === undefined
        ? bracket("Audio", refOf(content))
        : bracket("Audio transcript", content.transcript)
    case "document":
      return bracket("Document", documentRef(content))
    case "tool_use":
      return `[ToolCall: ${content.name}(${content.callId})]`
    case "tool_result":
      return toolResultText(content)
    case "thinking":
      return content.redacted ? "[Thinking: redacted]" : `[Thinking] ${content.content}`
    case "ui_resource":
      return content.text === "" ? `[interactive UI: ${content.uri}]` : content.text
    case "source":
      return ""
    case "custom":
    case "unknown":
      return `[UnknownBlock: ${content.wireType}]`
  }
}

/** Returns the text that replaces a medium the model cannot take. */
export const placeholder = (content: MediaContent): string =>
  `[${content.type} unavailable: ${content.mediaType ?? "application/octet-stream"}]`

/** Returns the form of a content for people and exports, without redacted thinking. */
export const uiForm = (content: Content): Content => {
  switch (content.type) {
    case "thinking":
      return content.redacted ? Object.freeze({ ...content, content: "" }) : content
    case "tool_result":
      return Object.freeze({ ...content, content: Object.freeze(content.content.map(uiForm)) })
    default:
      return content
  }
}

const toolResultText = (content: ToolResult): string => {
  const inner = content.content.map(toText).join("\n")
  return `[${content.isError ? "ToolError" : "ToolResult"}: ${content.callId}] ${inner === "" ? "(empty)" : inner}`
}

const refOf = (content: MediaContent): string | undefined =>
  content.url ?? (content.fileId === undefined ? content.mediaType : `file:${content.fileId}`)

const documentRef = (content: Document): string | undefined =>
  content.filename ?? content.url ?? content.mediaType ?? refOf(content)

const bracket = (kind: string, ref: string | undefined): string =>
  ref === undefined ? `[${kind}]` : `[${kind}: ${ref}]`

// The fence is longer than any run of backticks inside, so the code cannot close it.
const fenced = (code: string, language: string): string => {
  let longest = 2
  for (const [run] of code.matchAll(/`{3,}/g)) longest = Math.max(longest, run.length)
  const fence = "`".repeat(longest + 1)
  return `${fence}${language}\n${code}\n${fence}`
}

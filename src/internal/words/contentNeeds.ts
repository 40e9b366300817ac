/**
 * Recognises contents among values returned by skills and other untyped code.
 *
 * Foreign values may have a `type` of `data` or `error` too, and may be frozen. Only the fields a content cannot lack
 * are checked; the codec checks everything.
 */

import { isJsonObject } from "../base/json.ts"
import type { Content } from "../../ContentModel.ts"

/** Is this a content, and not another value with a `type` of the same name? */
export const isWhole = (value: unknown): value is Content =>
  typeof value === "object" &&
  value !== null &&
  "type" in value &&
  typeof value.type === "string" &&
  (needs.get(value.type)?.(value) ?? false)

type Fields = { readonly [field: string]: unknown }
type Fits = (value: Fields) => boolean

const texts =
  (...fields: ReadonlyArray<string>): Fits =>
  (value) =>
    fields.every((field) => typeof value[field] === "string")

// Bytes are checked last, since every read copies them.
const hasSource: Fits = (value) => texts("url")(value) || texts("fileId")(value) || value["data"] instanceof Uint8Array

const needs: ReadonlyMap<string, Fits> = new Map<Content["type"], Fits>([
  ["text", texts("text")],
  ["code", texts("code")],
  ["data", ({ data }) => isJsonObject(data)],
  ["error", texts("errorType", "message")],
  ["image", hasSource],
  ["audio", hasSource],
  ["video", hasSource],
  ["document", hasSource],
  ["tool_use", (value) => texts("callId", "name")(value) && isJsonObject(value["input"])],
  [
    "tool_result",
    ({ callId, content }) => typeof callId === "string" && Array.isArray(content) && content.every(isWhole)
  ],
  ["thinking", texts("content")],
  ["ui_resource", texts("uri", "renderMode", "text")],
  ["custom", ({ raw, wireType }) => typeof wireType === "string" && isJsonObject(raw)],
  ["unknown", ({ raw, wireType }) => typeof wireType === "string" && isJsonObject(raw)]
])

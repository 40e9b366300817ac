/** What the vectors say, in our words. */
import { InstructionBuilder } from "kernai"
import type { Json } from "../../../src/Content.ts"
import { ourListing } from "../skillSpec.ts"
import { isObject } from "./script.ts"

/** A text of the vectors in our words, where a null default is written out. */
export const written = (text: string): string => ourListing(text).replace(/ default: (?=,|\n|$|<)/g, " default: null")

/** A hint may follow the reminder of a misfit (W-36). */
export const withoutHint = (text: string): string => text.replace(/\n\nHint: [\s\S]*$/, "")

export const translate = (value: Json): Json => {
  if (typeof value === "string") return written(value)
  if (Array.isArray(value)) return value.map(translate)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, translate(item)]))
}

/** The documentation of workflows is in our own words. */
export const documented = (result: Json): Json =>
  result === InstructionBuilder.workflowDocumentation ? "(workflow documentation)" : result

/** A recorded medium is told by kind and type; its bytes are in the media store. */
export const withoutIds = (data: Json): Json => {
  if (Array.isArray(data)) return data.map(withoutIds)
  if (!isObject(data)) return data
  const mime = data["mime"] ?? data["mimeType"]
  if (typeof data["kind"] === "string" && typeof mime === "string") return { kind: data["kind"], mime }
  return Object.fromEntries(Object.entries(data).map(([key, item]) => [key, withoutIds(item)]))
}

export const withoutDurations = (data: Json): Json => {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return data
  return Object.fromEntries(Object.entries(data).filter(([key]) => key !== "duration_ms" && key !== "latency_ms"))
}

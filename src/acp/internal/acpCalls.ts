/** Shows calls to a client: their titles, kinds, places and differences. */

import type { Call, CallOutcome } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import { isJsonObject, type Json, type JsonObject } from "../../kit/json.ts"
import { clip, flat, shorten } from "../../kit/text.ts"

/** The kinds of tools that clients have icons for. */
type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "other"

/** Words in the names of skills and tools. The first word of a name that is listed decides. */
const kinds: ReadonlyMap<string, ToolKind> = new Map<string, ToolKind>([
  ["read", "read"],
  ["view", "read"],
  ["write", "edit"],
  ["edit", "edit"],
  ["delete", "delete"],
  ["remove", "delete"],
  ["move", "move"],
  ["rename", "move"],
  ["list", "search"],
  ["glob", "search"],
  ["grep", "search"],
  ["search", "search"],
  ["find", "search"],
  ["shell", "execute"],
  ["bash", "execute"],
  ["run", "execute"],
  ["execute", "execute"],
  ["process", "execute"],
  ["todo", "think"],
  ["think", "think"],
  ["fetch", "fetch"]
])

/** Returns the kind of a call. The work of another agent is its thinking. */
export const kindOf = ({ kind, name }: Pick<Call, "kind" | "name">): ToolKind => {
  if (kind === "agent" || kind === "task") return "think"
  const words = (name ?? "").toLowerCase().split(/[^a-z]+/)
  return words.map((word) => kinds.get(word)).find((found) => found !== undefined) ?? "other"
}

/** Returns the fields of a call that is shown for the first time. */
export const shown = (call: Pick<Call, "callId" | "input" | "kind" | "name">, cwd: string): JsonObject => {
  const kind = kindOf(call)
  const input = isJsonObject(call.input) ? call.input : {}
  const path = fileOf(input, kind, cwd)
  return {
    toolCallId: call.callId,
    title: titleOf(call.name ?? call.kind, kind, input),
    kind,
    rawInput: call.input,
    ...(path === undefined ? {} : { locations: [{ path, ...lineOf(input) }] }),
    ...(path === undefined || kind !== "edit" ? {} : { content: differenceOf(path, input) })
  }
}

/** Returns the fields of a call that has ended. A difference that is shown stays. */
export const ended = (call: Pick<Call, "callId" | "input" | "kind" | "name">, outcome: CallOutcome): JsonObject => {
  const input = isJsonObject(call.input) ? call.input : {}
  const isDifference = outcome.error === undefined && kindOf(call) === "edit" && differenceOf("", input).length > 0
  const text = clip(outcome.error?.message ?? Calls.textOf(outcome), maxShown)
  return {
    toolCallId: call.callId,
    status: outcome.error === undefined ? "completed" : "failed",
    ...(isDifference || text === "" ? {} : { content: [textContent(text)] })
  }
}

/** Bytes of a result that are sent to a client. */
const maxShown = 100_000

export const textContent = (text: string): JsonObject => ({ type: "content", content: { type: "text", text } })

const titleOf = (name: string, kind: ToolKind, input: JsonObject): string => {
  const subject = ["command", "file_path", "path", "pattern", "query", "url"].map((key) => textOf(input[key]))
  const first = subject.find((text) => text !== undefined)
  const title = kind === "execute" && textOf(input["command"]) !== undefined ? "" : `${name} `
  return shorten(flat(first === undefined ? name : `${title}${first}`), 200)
}

const textOf = (value: Json | undefined): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

const fileOf = (input: JsonObject, kind: ToolKind, cwd: string): string | undefined => {
  if (kind === "other" || kind === "execute" || kind === "think" || kind === "fetch") return undefined
  const path = textOf(input["file_path"]) ?? textOf(input["path"])
  if (path === undefined || path.length > 4_096) return undefined
  return isAbsolute(path) ? path : `${cwd.replace(/[\\/]$/, "")}/${path.replace(/^\.\//, "")}`
}

const isAbsolute = (path: string): boolean => /^(?:\/|[A-Za-z]:[\\/]|\\\\)/.test(path)

const lineOf = ({ line, offset }: JsonObject): JsonObject => {
  const first = line ?? offset
  return typeof first === "number" && Number.isInteger(first) && first > 0 && first < 2 ** 32 ? { line: first } : {}
}

/** Returns the difference that an edit asks for, by the names that models know for its texts. */
const differenceOf = (path: string, input: JsonObject): ReadonlyArray<JsonObject> => {
  const oldText = input["old_string"]
  const newText = input["new_string"] ?? input["content"]
  if (typeof newText !== "string") return []
  return [{ type: "diff", path, oldText: typeof oldText === "string" ? oldText : null, newText }]
}

/**
 * Reads calls that a model writes in the tool formats of other systems.
 *
 * Models fall back into the format they were trained on. Each reader scans a whole reply for one format, from mark to
 * mark, and removes what it reads from the text. JSON inside is parsed strictly and once. Unreadable calls stay in the
 * text.
 */

import * as Result from "effect/Result"
import type { Block } from "../../Block.ts"
import * as Blocks from "../../Block.ts"
import { isRecord, own, parseJson, textOf } from "../../kit/json.ts"

/** The formats that can be read besides blocks and native calls. */
export type Markup = "tool_call" | "function" | "invoke" | "bracket" | "fenced" | "json"

/** One call found in the text. */
interface FoundCall {
  readonly name: string
  /** An object, or text that was not JSON. */
  readonly params: unknown
}

/** The calls found, and the text without them. */
interface Reading {
  readonly calls: ReadonlyArray<FoundCall>
  /** Blocks other than commands. Only the JSON format can express them. */
  readonly blocks: ReadonlyArray<Block>
  readonly rest: string
}

/** Reads the first of `markups` that occurs in the text. */
export const read = (text: string, markups: ReadonlyArray<Markup>, depth: number): Reading | undefined => {
  for (const markup of markups) {
    const reading = readers[markup](text, depth)
    if (reading !== undefined && reading.calls.length + reading.blocks.length > 0) return reading
  }
  return undefined
}

type Reader = (text: string, depth: number) => Reading | undefined

// ---------------------------------------------------------------- spans

// A reply with more calls than this would never be run, and each unreadable call costs time.
const maxSpans = 256

/** Removes every span from `open` to `close` and reads it. Unreadable spans stay in the text. */
const spans = (
  text: string,
  open: string,
  close: string,
  take: (inner: string) => ReadonlyArray<FoundCall>
): Reading | undefined => {
  let start = text.indexOf(open)
  if (start === -1) return undefined
  let calls: ReadonlyArray<FoundCall> = []
  const rest: Array<string> = []
  let at = 0
  for (let count = 0; start !== -1 && count < maxSpans; count++) {
    const inner = start + open.length
    const end = text.indexOf(close, inner)
    if (end === -1) break
    const found = take(text.slice(inner, end))
    if (found.length > 0) {
      // Not `push`: a list may be longer than the number of arguments a call can take.
      calls = calls.concat(found)
      rest.push(text.slice(at, start))
      at = end + close.length
    }
    start = text.indexOf(open, end + close.length)
  }
  rest.push(text.slice(at))
  return { calls, blocks: [], rest: rest.join("") }
}

/**
 * Reads the format of Hermes and Qwen: `<tool_call>{"name": …, "arguments": …}</tool_call>`, or a function tag instead
 * of the JSON.
 */
const toolCall: Reader = (text, depth) =>
  spans(text, "<tool_call>", "</tool_call>", (inner) => {
    const fromJson = callsOf(json(inner, depth), depth)
    return fromJson.length > 0 ? fromJson : (functionTag(inner, depth)?.calls ?? [])
  })

/** Reads the format of Llama and Qwen: `<function=name>{…}</function>`, or parameters as tags. */
const functionTag: Reader = (text, depth) =>
  spans(text, "<function=", "</function>", (inner) => {
    const end = inner.indexOf(">")
    const name = Blocks.strip(inner.slice(0, Math.max(end, 0)))
    if (name === "") return []
    const body = inner.slice(end + 1)
    const tags = parameters(body, "<parameter=", ">", depth)
    return [{ name, params: tags ?? params(Blocks.strip(body), depth) }]
  })

/** Reads an older format of Claude: `<invoke name="…"><parameter name="…">…</parameter></invoke>`. */
const invoke: Reader = (text, depth) => {
  const plain = text.replaceAll("antml:", "")
  const reading = spans(plain, '<invoke name="', "</invoke>", (inner) => {
    const end = inner.indexOf('">')
    if (end < 1) return []
    return [{ name: inner.slice(0, end), params: parameters(inner.slice(end), '<parameter name="', '">', depth) ?? {} }]
  })
  if (reading === undefined) return undefined
  const rest = reading.rest.replaceAll("<function_calls>", "").replaceAll("</function_calls>", "")
  return { ...reading, rest }
}

/** Reads parameters written as tags, as text or JSON. Undefined when there are none. */
const parameters = (
  text: string,
  open: string,
  mark: string,
  depth: number
): { [name: string]: unknown } | undefined => {
  const found = new Map<string, unknown>()
  let start = text.indexOf(open)
  for (let count = 0; start !== -1 && count < maxSpans; count++) {
    const named = text.indexOf(mark, start + open.length)
    const end = text.indexOf("</parameter>", start)
    if (named === -1 || end === -1 || named > end) break
    const value = trimLine(text.slice(named + mark.length, end))
    const parsed = json(value, depth)
    // Numbers, lists and objects are read as JSON; a word stays a string.
    found.set(
      text.slice(start + open.length, named),
      parsed === undefined || typeof parsed === "string" ? value : parsed
    )
    start = text.indexOf(open, end)
  }
  return found.size === 0 ? undefined : Object.fromEntries(found)
}

const trimLine = (text: string): string => {
  const start = text.startsWith("\n") ? 1 : 0
  return text.slice(start, text.endsWith("\n") && text.length > start ? -1 : undefined)
}

/** Reads the format of Mistral: `[TOOL_CALLS] [{"name": …, "arguments": …}]`, or `[TOOL_CALLS]name[ARGS]{…}`. */
const bracket: Reader = (text, depth) => {
  const mark = "[TOOL_CALLS]"
  const [before = "", ...segments] = text.split(mark, maxSpans)
  const calls = segments.flatMap((part): ReadonlyArray<FoundCall> => {
    const args = part.indexOf("[ARGS]")
    if (args === -1) return callsOf(json(part, depth), depth)
    return [{ name: Blocks.strip(part.slice(0, args)), params: params(Blocks.strip(part.slice(args + 6)), depth) }]
  })
  return segments.length === 0 ? undefined : { calls, blocks: [], rest: before }
}

/** Reads code fences that contain a call: a name and its arguments, under any of the usual keys. */
const fenced: Reader = (text, depth) =>
  spans(text, "```", "```", (inner) => {
    const line = inner.indexOf("\n")
    return line === -1 ? [] : callsOf(json(inner.slice(line + 1), depth), depth)
  })

/** Reads a reply that is only JSON: calls, or `{"blocks": […]}`, the JSON form of blocks. */
const whole: Reader = (text, depth) => {
  const value = json(text, depth)
  const listed = isRecord(value) ? own(value, "blocks") : undefined
  if (!Array.isArray(listed)) {
    const calls = callsOf(value, depth)
    return calls.length === 0 ? undefined : { calls, blocks: [], rest: "" }
  }
  const blocks: Array<Block> = []
  for (const item of listed) {
    if (!isRecord(item)) continue
    const type = own(item, "type")
    const name = own(item, "name")
    const content = own(item, "content")
    if (typeof type !== "string" || type === "") continue
    blocks.push({ type, name: typeof name === "string" ? name : null, content: textOf(content ?? null) })
  }
  return { calls: [], blocks, rest: "" }
}

const readers: { readonly [M in Markup]: Reader } = {
  tool_call: toolCall,
  function: functionTag,
  invoke,
  bracket,
  fenced,
  json: whole
}

// ---------------------------------------------------------------- JSON

const json = (text: string, depth: number): unknown => {
  const parsed = parseJson(Blocks.strip(text), depth)
  return Result.isSuccess(parsed) ? parsed.success : undefined
}

const params = (text: string, depth: number): unknown => (text === "" ? {} : (json(text, depth) ?? text))

const names = ["name", "tool", "tool_name", "function", "action"]
const inputs = ["arguments", "parameters", "params", "input", "args", "action_input"]

/** Returns the calls in a JSON value: an object with a name and arguments, or a list of such objects. */
const callsOf = (value: unknown, depth: number): ReadonlyArray<FoundCall> => {
  if (Array.isArray(value)) {
    const calls = value.flatMap((item) => callOf(item, depth) ?? [])
    return calls.length === value.length ? calls : []
  }
  const call = callOf(value, depth)
  return call === undefined ? [] : [call]
}

const callOf = (value: unknown, depth: number): FoundCall | undefined => {
  if (!isRecord(value)) return undefined
  const inner = own(value, "function")
  // The wrapper of OpenAI.
  if (isRecord(inner)) return callOf(inner, depth)
  const name = names.map((key) => own(value, key)).find((found) => typeof found === "string" && found !== "")
  const key = inputs.find((key) => Object.hasOwn(value, key))
  if (typeof name !== "string" || key === undefined) return undefined
  const input = own(value, key)
  return { name, params: typeof input === "string" ? params(input, depth) : (input ?? {}) }
}

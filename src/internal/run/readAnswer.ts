/**
 * Reads a typed answer from the text of a reply.
 *
 * Models wrap their JSON: in a code fence, behind a sentence, after their thinking. The whole text is read first, then
 * the JSON inside of it, the last one first, then the text as a string without quotes.
 */

import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Bounds from "../../kit/bounds.ts"
import { isRecord, parseJson } from "../../kit/json.ts"
import { perObject } from "../../kit/perObject.ts"
import { fences, jsonSpans } from "../words/jsonSpans.ts"
import type { Agent } from "../../Agent.ts"
import type { AnySkill } from "../../Skill.ts"

/** An answer: its value, and the text that the schema decodes to it, with or without its quotes. */
export interface Answer {
  readonly output: unknown
  readonly text: string
}

/** An agent whose answer is read. */
type Answering = Agent<unknown, AnySkill<unknown>, unknown, unknown>

/** Reads an answer with the agent's output schema. Fails with a sentence that describes the mismatch. */
export const readAnswer = (agent: Answering, text: string): Result.Result<Answer, string> =>
  agent.typed ? readerOf(agent)(text) : Result.succeed({ output: text, text })

const readerOf = perObject((agent: Answering) => {
  const decode = Schema.decodeUnknownResult(agent.output)

  const decoded = (json: string): Result.Result<unknown, Mismatch> =>
    Result.flatMap(
      // Decoding deeply nested text with a recursive schema may overflow the stack.
      Result.try({ try: () => decode(json, { errors: "all" }), catch: () => tooDeep }),
      Result.mapError(({ issue, message }): Mismatch => ({ message, paths: () => pathsOf(issue) }))
    )

  const ofJson = (json: string): Result.Result<Answer, string> => {
    const read = decoded(json)
    if (Result.isSuccess(read)) return Result.succeed({ output: read.success, text: json })
    const { message, paths } = read.failure
    const shorter = withoutNulls(json, paths())
    const again = shorter === undefined ? read : decoded(shorter)
    return Result.isSuccess(again)
      ? Result.succeed({ output: again.success, text: shorter ?? json })
      : Result.fail(message)
  }

  const ofWords = (words: string): Result.Result<Answer, string> =>
    Result.mapBoth(decoded(JSON.stringify(words)), {
      onSuccess: (output) => ({ output, text: words }),
      onFailure: ({ message }) => message
    })

  return (reply: string): Result.Result<Answer, string> => {
    const text = withoutThinking(reply.trim())
    const whole = ofJson(text)
    if (Result.isSuccess(whole)) return whole
    const isText = agent.outputJsonSchema?.()["type"] === "string"
    const inside = isText ? none : jsonSpans(text, Bounds.jsonDepth).map(ofJson)
    // Any text is a string, but a text that begins like JSON is a broken answer of another type.
    const words = isText || !startsLikeJson(text) ? [ofWords(text)] : none
    const fenced = fences(text).flatMap((fence) => [ofWords(fence), ofJson(fence)])
    const read = [...fenced, ...words, ...inside].findLast(Result.isSuccess)
    if (read !== undefined) return read
    return inside.at(-1) ?? Result.mapError(whole, (message) => brokenJson(text) ?? message)
  }
})

const none: ReadonlyArray<never> = []

interface Mismatch {
  readonly message: string
  /** The paths of the values that do not fit. */
  readonly paths: () => ReadonlyArray<ReadonlyArray<PropertyKey>>
}

const tooDeep: Mismatch = { message: "It cannot be read: it nests too deeply.", paths: () => none }

const formatted = SchemaIssue.makeFormatterStandardSchemaV1()

const pathsOf = (issue: SchemaIssue.Issue): ReadonlyArray<ReadonlyArray<PropertyKey>> =>
  formatted(issue).issues.map(({ path = none }) => path.map((part) => (typeof part === "object" ? part.key : part)))

/** Removes keys that are null where the schema takes no null. Undefined if there is none, or the text is not JSON. */
const withoutNulls = (json: string, paths: ReadonlyArray<ReadonlyArray<PropertyKey>>): string | undefined => {
  const value = Result.getOrUndefined(parseJson(json, Bounds.jsonDepth))
  let isShorter = false
  for (const path of paths) {
    const key = path.at(-1)
    let parent = value
    for (const part of path.slice(0, -1)) parent = isObject(parent) ? Reflect.get(parent, part) : undefined
    if (key === undefined || !isRecord(parent) || Reflect.get(parent, key) !== null) continue
    Reflect.deleteProperty(parent, key)
    isShorter = true
  }
  return isShorter ? JSON.stringify(value) : undefined
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

const startsLikeJson = (text: string): boolean => /^["{[]/.test(text)

/** Says what is wrong with a text that is not JSON. Undefined for JSON. */
const brokenJson = (text: string): string | undefined => {
  const parsed = parseJson(text, Bounds.jsonDepth)
  if (Result.isSuccess(parsed)) return undefined
  return startsLikeJson(text) ? `It is no valid JSON: ${parsed.failure}` : "It holds no JSON"
}

/** Drops the thinking that some models write before their answer. */
const withoutThinking = (text: string): string => {
  const end = text.startsWith("<think>") ? text.indexOf("</think>") : -1
  return end === -1 ? text : text.slice(end + "</think>".length).trim()
}

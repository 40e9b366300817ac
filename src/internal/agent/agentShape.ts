/**
 * Checks the types of an agent's settings, for callers without static types.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { attempt, field } from "../../kit/foreignCode.ts"

/** A setting of the wrong type. */
interface Misshapen {
  readonly path: string
  readonly reason: string
}

type Test = (value: unknown) => boolean

/** Returns the first setting of the wrong type. Undefined if there is none. */
export const misshapen = (agent: unknown): Misshapen | undefined => {
  if (!isObject(agent)) return { path: "", reason: "is not an agent" }
  for (const [path, expected, test] of settings) {
    const value = attempt(() => path.split(".").reduce<unknown>(field, agent), undefined)
    if (!attempt(() => test(value), false)) return { path, reason: `expected ${expected}, got ${kindOf(value)}` }
  }
  return undefined
}

const isObject: Test = (value) => typeof value === "object" && value !== null && !Array.isArray(value)
const isText: Test = (value) => typeof value === "string"
const isNumber: Test = (value) => typeof value === "number"
const isFlag: Test = (value) => typeof value === "boolean"
const optional =
  (test: Test): Test =>
  (value) =>
    value === undefined || test(value)
const list =
  (test: Test): Test =>
  (value) =>
    Array.isArray(value) && value.every(test)
const word =
  (...words: ReadonlyArray<unknown>): Test =>
  (value) =>
    words.includes(value)

/** Returns whether a value is a name or has one. */
const isNamed: Test = (skill) => isText(skill) || isText(field(skill, "name"))
const isModel: Test = (model) => isText(model) || isText(field(model, "id"))

const texts = optional(list(isText))
const number = optional(isNumber)

const settings: ReadonlyArray<readonly [path: string, expected: string, test: Test]> = [
  ["name", "a text", isText],
  ["aliases", "a list of names", list(isText)],
  ["version", "a text", optional(isText)],
  ["description", "a text", optional(isText)],
  ["instructions", "a text or an Effect", (value) => isText(value) || Effect.isEffect(value)],
  ["model", "a name or a model", isModel],
  ["provider", "an Effect", optional(Effect.isEffect)],
  ["skills", '"all" or a list of skills', optional((value) => value === "all" || list(isNamed)(value))],
  ["protocols", "a list of names", texts],
  ["agents", "a list of agents", list(isNamed)],
  ["handoffs", "a list of agents", list(isNamed)],
  ["until", "a function", optional((value) => typeof value === "function")],
  ["input", "a Schema", optional(Schema.isSchema)],
  ["context", "a Schema", optional(Schema.isSchema)],
  ["gate", '"dispatch" or "listing"', word("dispatch", "listing")],
  ["prose", '"auto", "final" or "corrective"', word("auto", "final", "corrective")],
  ["dialect", '"blocks", "tools" or "auto"', word("blocks", "tools", "auto")],
  ["markups", "a list of markups", list(word("tool_call", "function", "invoke", "bracket", "fenced", "json"))],
  ["grammar", "true or false", isFlag],
  ["maxSteps", "a number", isNumber],
  ["concurrency", "a number", isNumber],
  ["taskConcurrency", "a number", isNumber],
  ["background", "true or false", isFlag],
  ["maxRepeats", "a number", number],
  ["contextWindow", "a number", number],
  ["reservedOutputTokens", "a number", isNumber],
  ["generation", "an object", isObject],
  ["generation.maxTokens", "a number", number],
  ["generation.seed", "a number", number],
  ["generation.stopSequences", "a list of texts", texts],
  ["generation.temperature", "a number", number],
  ["generation.topP", "a number", number],
  ["generation.thinking", "an object", optional(isObject)],
  ["budget", "an object", isObject],
  ["budget.maxTokens", "a number", number],
  ["budget.maxCostUsd", "a number", number],
  ["spawn", "an object", optional(isObject)],
  ["spawn.maxAgents", "a number", number],
  ["spawn.maxConcurrent", "a number", number],
  ["spawn.maxDepth", "a number", number],
  ["output", "a Schema", Schema.isSchema]
]

const kindOf = (value: unknown): string => attempt(() => kindOfReadable(value), "what cannot be read")

const kindOfReadable = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "a list" : value === undefined ? "nothing" : `a ${typeof value}`

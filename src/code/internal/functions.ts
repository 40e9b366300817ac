/**
 * The functions of a program: the skills and agents that it may call, as a model sees them.
 */

import * as Schema from "effect/Schema"
import type { Agent } from "../../Agent.ts"
import { field } from "../../kit/foreignCode.ts"
import { isRecord, type JsonObject, jsonObject } from "../../kit/json.ts"
import { valueSchema } from "../../kit/jsonSchema.ts"
import { shorten, wordsOf } from "../../kit/text.ts"
import type { AnySkill } from "../../Skill.ts"
import { comment, typeText } from "./typeText.ts"

/** An agent, whatever its types. */
export type AnyAgent = Agent<unknown, AnySkill<unknown>, unknown, unknown>

/** A function of a program. */
export interface CodeFunction {
  /** Its name in programs. */
  readonly name: string
  readonly target:
    | { readonly _tag: "Skill"; readonly skill: AnySkill<unknown> }
    | { readonly _tag: "Agent"; readonly agent: AnyAgent }
  /** Its comment and its signature. */
  readonly declaration: string
  readonly words: ReadonlySet<string>
}

/** Returns the functions for skills and agents, and the name of the one that searches them. */
export const functionsOf = (
  skills: ReadonlyArray<AnySkill<unknown>>,
  agents: ReadonlyArray<AnyAgent>
): { readonly all: ReadonlyMap<string, CodeFunction>; readonly finder: string } => {
  const all = new Map<string, CodeFunction>()
  const add = (own: string, description: string, target: CodeFunction["target"]) => {
    const name = freeName(own, all)
    const declaration = `${comment(shorten(description, longestDescription))}\n${signature(name, target)}`
    all.set(name, {
      name,
      target,
      declaration,
      words: new Set(wordsOf(`${own.replaceAll(/[_.-]/g, " ")} ${description}`))
    })
  }
  for (const skill of skills) add(skill.name, skill.description, { _tag: "Skill", skill })
  for (const agent of agents) add(agent.name, agent.description ?? "", { _tag: "Agent", agent })
  return { all, finder: freeName("search", all) }
}

/** Returns the declarations of the functions that a text asks for, the best first. */
export const found = (functions: Iterable<CodeFunction>, text: string): string => {
  const asked = wordsOf(text, mostWords)
  const scored = [...functions].map((one) => ({ one, score: asked.filter((word) => one.words.has(word)).length }))
  const best = scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score)
  return best
    .slice(0, mostFound)
    .map(({ one }) => one.declaration)
    .join("\n")
}

/** Returns as many declarations as the tokens allow, in order, and how many are left out. */
export const listing = (
  functions: Iterable<CodeFunction>,
  tokens: number
): { readonly text: string; readonly left: number } => {
  const listed: Array<string> = []
  let length = 0
  let left = 0
  for (const { declaration } of functions) {
    length += declaration.length + 1
    if (left > 0 || length > tokens * lettersPerToken) left++
    else listed.push(declaration)
  }
  return { text: listed.join("\n"), left }
}

/** Letters of code in a token, as vendors count it, at least. */
const lettersPerToken = 3

const longestDescription = 500
const mostWords = 20
const mostFound = 10

const signature = (name: string, target: CodeFunction["target"]): string => {
  const { input, output } = target._tag === "Skill" ? typesOfSkill(target.skill) : typesOfAgent(target.agent)
  return `declare function ${name}(${input === "{}" ? "" : `input: ${input}`}): Promise<${output}>`
}

const typesOfSkill = (skill: AnySkill<unknown>) => {
  const output = field(skill, "output")
  return { input: typeText(skill.inputSchema), output: Schema.isSchema(output) ? typeOfSchema(output) : "any" }
}

const typesOfAgent = ({ input, output }: AnyAgent) => ({
  input: input === undefined ? "string" : typeOfSchema(input),
  output: output === undefined ? "string" : typeOfSchema(output)
})

const typeOfSchema = (schema: Schema.Constraint): string => typeText(objectFrom(valueSchema(schema)))

const objectFrom = (schema: Record<string, unknown>): JsonObject => jsonObject(isRecord(schema) ? schema : {})

/** Returns a name that is an identifier and that nothing else has. */
const freeName = (own: string, taken: ReadonlyMap<string, unknown>): string => {
  const plain = own.replaceAll(/[^\w$]/g, "_").replace(/^(?=\d)/, "_")
  let name = reserved.has(plain) ? `${plain}_` : plain
  for (let count = 2; taken.has(name); count++) name = `${plain}${count}`
  return name
}

/** Words of the language, and globals that a program uses. */
const reserved = new Set(
  [
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends",
    "false finally for function if implements import in instanceof interface let new null package private protected",
    "public return static super switch this throw true try typeof undefined var void while with yield",
    "Array BigInt Boolean Date Error Infinity JSON Map Math NaN Number Object Promise Proxy Reflect RegExp Set String",
    "Symbol WeakMap WeakSet console globalThis isFinite isNaN parseFloat parseInt"
  ].flatMap((words) => words.split(" "))
)

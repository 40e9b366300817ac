/**
 * The skills that a model is shown: all of few, or a search among many and what it found.
 */

import * as Option from "effect/Option"
import type { Json } from "effect/Schema"
import type { PromptContext } from "../../PromptPipeline.ts"
import type { ToolDefinition } from "../../Provider.ts"
import type { AnySkill } from "../../Skill.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import { isJsonObject, type JsonObject } from "../base/json.ts"
import { ofText } from "../prompt/tokenEstimate.ts"
import { turnLog } from "../state/state.ts"
import type { Run } from "../run/run.ts"

/** The native tool that searches skills. */
const searchTool = "search_skills"

/** Is this native call the search, and no skill or agent of that name? */
export const isSearch = (run: Run, name: string): boolean =>
  name === searchTool && Option.isNone(run.skills.find(name)) && !run.callables.has(name)

/** The native tools of skills: all of them, or the search and the skills that were found last. */
export const toolsOf = (run: Run, skills: ReadonlyArray<AnySkill>): ReadonlyArray<ToolDefinition> => {
  const { nativeSkills } = run.limits
  if (skills.length <= nativeSkills || !isSearch(run, searchTool)) return skills.map(toolOf)
  const byName = new Map(skills.map((skill) => [skill.name, skill]))
  const called = skills.filter(({ name }) => run.callables.has(name))
  const found = foundBefore(run, skills)
    .flatMap((name) => byName.get(name) ?? [])
    .filter((skill) => !called.includes(skill))
  return [searchDefinition(skills.length), ...[...called, ...found.slice(-nativeSkills)].map(toolOf)]
}

/** The names that the last turn was offered, in their order, and after them those that its searches found. */
const foundBefore = (run: Run, skills: ReadonlyArray<AnySkill>): ReadonlyArray<string> => {
  const turn = turnLog(run.state).last()
  const searches = turn?.completed.filter(({ kind, name }) => kind === "builtin" && name === searchTool) ?? []
  const found = searches.flatMap(({ input }) => SkillRegistry.search(skills, wordsIn(input)))
  return [...new Set([...(turn?.tools ?? []), ...found.map(({ name }) => name)])]
}

const toolOf = ({ description, inputSchema, name }: AnySkill): ToolDefinition => ({ name, description, inputSchema })

const searchDefinition = (count: number): ToolDefinition => ({
  name: searchTool,
  description: `Finds skills by words. There are ${count}, more than are shown at once: those it finds can be called from the next reply on.`,
  inputSchema
})

const inputSchema: JsonObject = {
  type: "object",
  properties: {
    words: { type: "string", description: "Words of what the skill does, such as: create calendar event" }
  },
  required: ["words"],
  additionalProperties: false
}

/** The listing for a prompt of blocks. Undefined where the model asks for it, as agents of a fixed dialect do. */
export const listingOf = (run: Run, skills: ReadonlyArray<AnySkill>): PromptContext["listing"] => {
  if (!run.isListed || run.agent.dialect === "tools" || run.agent.skills === undefined) return undefined
  const text = SkillRegistry.listing(skills)
  if (!isLong(run, text)) return { _tag: "Whole", text }
  // A grammar leaves no room for words in the command.
  return run.agent.grammar ? undefined : { _tag: "Searched", count: skills.length }
}

/** The answer to `/skills`: the listing, or of a long one what words find in it. */
export const answerSkills = (run: Run, skills: ReadonlyArray<AnySkill>, input: Json): string => {
  const words = wordsIn(input).trim()
  const listing = SkillRegistry.listing(skills)
  if (words === "" || !isLong(run, listing)) return listing
  return withHits(skills, words, SkillRegistry.listing)
}

/** The answer to a native search. What it found is offered on the next turn, with its input. */
export const answerSearch = (skills: ReadonlyArray<AnySkill>, input: Json): string =>
  withHits(skills, wordsIn(input), (found) =>
    found.map(({ description, name }) => (description === "" ? `- ${name}` : `- ${name}: ${description}`)).join("\n")
  )

const withHits = (
  skills: ReadonlyArray<AnySkill>,
  words: string,
  write: (found: ReadonlyArray<AnySkill>) => string
): string => {
  const found = SkillRegistry.search(skills, words)
  return found.length === 0 ? `None of ${skills.length} skills matches these words. Try other words.` : write(found)
}

const isLong = (run: Run, listing: string): boolean => ofText(listing) > run.limits.listedTokens

/** The words of a command, or of a native call. */
const wordsIn = (input: Json): string => {
  const words = isJsonObject(input) ? (input["words"] ?? "") : input
  return typeof words === "string" ? words : JSON.stringify(words)
}

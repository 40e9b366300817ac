/**
 * Finds skills by words.
 *
 * A word counts by how rare it is among the skills, and by where it stands: in the name, in the description, or among
 * the names of the inputs. Words are compared without their endings.
 */

import type { AnySkill } from "../../Skill.ts"
import { jsonObject } from "../base/json.ts"
import { wordsOf } from "../base/text.ts"

/** How many skills a search returns unless it is asked for fewer. */
export const usualHits = 8

/** The skills that match words best, best first; none when no word matches. */
export const search = (
  skills: ReadonlyArray<AnySkill>,
  words: string,
  limit: number = usualHits
): ReadonlyArray<AnySkill> => {
  const asked = termsOf(words)
  const indexed = skills.map((skill) => ({ skill, terms: indexOf(skill) }))
  const weights = asked.map((term) => {
    const found = indexed.filter(({ terms }) => terms.has(term)).length
    return [term, Math.log(1 + (skills.length - found + 0.5) / (found + 0.5))] as const
  })
  return indexed
    .map(({ skill, terms }) => ({
      skill,
      score: weights.reduce((score, [term, weight]) => score + weight * (terms.get(term) ?? 0), 0)
    }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ skill }) => skill)
}

/** The terms of a skill and their weight. Skills do not change, so each is read once. */
const indexOf = (skill: AnySkill): ReadonlyMap<string, number> => {
  let terms = indexes.get(skill)
  if (terms === undefined) indexes.set(skill, (terms = weigh(skill)))
  return terms
}

const indexes = new WeakMap<AnySkill, ReadonlyMap<string, number>>()

const weigh = ({ description, inputSchema, name }: AnySkill): ReadonlyMap<string, number> => {
  const terms = new Map<string, number>()
  const add = (text: string, weight: number) => {
    for (const term of termsOf(text)) terms.set(term, Math.max(weight, terms.get(term) ?? 0))
  }
  add(Object.keys(jsonObject(inputSchema["properties"])).join(" "), 0.5)
  add(description, 1)
  add(name, 2)
  return terms
}

/** The terms of a text, without endings. `createIssue` and `create_issue` are two words. */
const termsOf = (text: string): ReadonlyArray<string> => [
  ...new Set(wordsOf(text.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2"), maxTerms).map(stem))
]

const maxTerms = 1_000

/** A word without the common endings of English; other words stay as they are. */
const stem = (word: string): string => {
  for (const [ending, instead] of endings) {
    if (word.length > ending.length + 2 && word.endsWith(ending)) return word.slice(0, -ending.length) + instead
  }
  return word
}

const endings = [
  ["ies", "y"],
  ["ing", ""],
  ["ed", ""],
  ["es", ""],
  ["s", ""],
  ["e", ""]
] as const

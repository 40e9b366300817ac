/** Runs side by side: their facts, their texts, and what happened in each turn. */

import type { CallResult } from "../../Call.ts"
import { answer, type RunState, type Turn } from "../../RunState.ts"
import { statusOf } from "../../store-kit/StoreRules.ts"
import { wordsOf } from "../internal/runTitle.ts"
import { cost, duration, json, named, sentence } from "./format.ts"
import { saidIn } from "../internal/saidIn.ts"

/** A part of each run, in the order of the runs. A run that ended before has none. */
export interface Section {
  readonly title: string
  readonly texts: ReadonlyArray<string | undefined>
}

/** A fact about each run. `changes` are the distances of a number from that of the first run, empty for the same one. */
export interface Fact extends Section {
  readonly changes?: ReadonlyArray<string>
}

/** Returns whether a part is the same in all runs. */
export const isSame = ({ texts }: Section): boolean => texts.every((text) => text === texts[0])

/** Returns the facts of runs: how they ended, with what settings, what they called and what they used. */
export const factsOf = (states: ReadonlyArray<RunState>): ReadonlyArray<Fact> => [
  fact("Status", states, ({ status }) => sentence(named(statusOf(status).type))),
  fact("Agent", states, ({ agent, version }) => (version === undefined ? agent : `${agent} v${version}`)),
  fact("Model", states, (state) => modelsOf(turnsOf(state))),
  fact("Settings", states, (state) => distinct(turnsOf(state).map(settingsOf)) || "as the agent"),
  fact("Calls", states, (state) => counted(turnsOf(state).flatMap(({ completed }) => completed)) || "none"),
  figure("Turns", states, (state) => turnsOf(state).length, String),
  figure("Tokens", states, ({ usage }) => usage.inputTokens + usage.outputTokens, inGroups),
  figure("Cost", states, ({ costUsd }) => costUsd, cost),
  figure("Took", states, ({ createdAt, updatedAt }) => updatedAt - createdAt, duration)
]

/** Returns the question, the instructions and the answer of runs. */
export const textsOf = (states: ReadonlyArray<RunState>): ReadonlyArray<Section> => [
  ...askedOf(states),
  fact("Answer", states, answer)
]

/** Returns the question and the instructions of runs, and what happened in each turn. */
export const sectionsOf = (states: ReadonlyArray<RunState>): ReadonlyArray<Section> => {
  const count = Math.max(...states.map((state) => turnsOf(state).length))
  const turns = Array.from({ length: count }, (_, index) =>
    fact(`Turn ${index + 1}`, states, (state) => happenedIn(turnsOf(state)[index]))
  )
  return [...askedOf(states), ...turns]
}

const askedOf = (states: ReadonlyArray<RunState>): ReadonlyArray<Section> => [
  fact("Question", states, ({ input }) => input.map(wordsOf).join("\n\n")),
  fact("Instructions", states, ({ system }) => system ?? "")
]

const fact = (
  title: string,
  states: ReadonlyArray<RunState>,
  textIn: (state: RunState) => string | undefined
): Section => ({ title, texts: states.map(textIn) })

const figure = (
  title: string,
  states: ReadonlyArray<RunState>,
  countIn: (state: RunState) => number | undefined,
  shown: (count: number) => string
): Fact => {
  const [first, ...others] = states.map(countIn)
  return {
    title,
    texts: [first, ...others].map((count) => (count === undefined ? "unknown" : shown(count))),
    changes: [first, ...others].map((count) =>
      first === undefined || count === undefined || count === first
        ? ""
        : `${count > first ? "+" : "−"}${shown(Math.abs(count - first))}`
    )
  }
}

export const turnsOf = ({ currentTurn, turns }: RunState): ReadonlyArray<Turn> =>
  currentTurn === undefined ? turns : [...turns, currentTurn]

/** Returns the names of the models of turns. */
export const modelsOf = (turns: ReadonlyArray<Turn>): string => distinct(turns.map(({ model }) => model ?? ""))

const inGroups = (count: number): string => count.toLocaleString("en")

const distinct = (texts: ReadonlyArray<string>): string => [...new Set(texts.filter((text) => text !== ""))].join(", ")

/** Returns the options of a turn that differ from those of its agent. */
const settingsOf = ({ args }: Turn): string =>
  Object.entries(args?.generation ?? {})
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ")

/** Returns the names of calls with their counts. */
const counted = (calls: ReadonlyArray<CallResult>): string => {
  const counts = new Map<string, number>()
  for (const { kind, name } of calls) counts.set(name ?? kind, (counts.get(name ?? kind) ?? 0) + 1)
  return Array.from(counts, ([name, count]) => (count === 1 ? name : `${name} × ${count}`)).join(", ")
}

/** Returns what a turn said and did, as text. */
const happenedIn = (turn: Turn | undefined): string | undefined => {
  if (turn === undefined) return undefined
  const said = turn.message === undefined ? "" : saidIn(turn.message).trim()
  return [...(said === "" ? [] : [said]), ...turn.completed.map(callText)].join("\n\n")
}

const callText = ({ error, input, kind, name, output = [] }: CallResult): string => {
  const result = error?.message ?? output.map((part) => (part.type === "text" ? part.text : json(part))).join("\n")
  return `${name ?? kind} ${JSON.stringify(input)}\n→ ${result}`
}

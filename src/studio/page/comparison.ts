/** Two runs as sections that stand side by side: question, instructions, and each turn. */

import type { CallResult } from "../../Call.ts"
import { statusOf } from "../../store-kit/StoreRules.ts"
import type { RunState, Turn } from "../../RunState.ts"
import { cost, duration, json, named, sentence, wordsOf } from "./format.ts"
import { saidIn } from "../internal/saidIn.ts"

/** A part of both runs. A run that ended before has none. */
export interface Section {
  readonly title: string
  readonly left: string | undefined
  readonly right: string | undefined
}

/** Returns the facts of two runs, side by side. */
export const factsOf = (left: RunState, right: RunState): ReadonlyArray<Section> => {
  const [ours, theirs] = [factsIn(left), factsIn(right)]
  return ours.map(([title, value], index) => ({ title, left: value, right: theirs[index]?.[1] }))
}

const factsIn = (state: RunState): ReadonlyArray<readonly [title: string, value: string]> => {
  const { agent, costUsd, createdAt, status, updatedAt, usage, version } = state
  const turns = turnsOf(state)
  return [
    ["Status", sentence(named(statusOf(status).type))],
    ["Agent", version === undefined ? agent : `${agent} v${version}`],
    ["Model", [...new Set(turns.flatMap(({ model }) => model ?? []))].join(", ")],
    ["Turns", String(turns.length)],
    ["Tokens", (usage.inputTokens + usage.outputTokens).toLocaleString("en")],
    ["Cost", costUsd === undefined ? "unknown" : cost(costUsd)],
    ["Took", duration(updatedAt - createdAt)]
  ]
}

/** Returns what was asked, how the agents were instructed, and what happened in each turn. */
export const sectionsOf = (left: RunState, right: RunState): ReadonlyArray<Section> => {
  const [ours, theirs] = [turnsOf(left), turnsOf(right)]
  const count = Math.max(ours.length, theirs.length)
  return [
    { title: "Question", left: askedIn(left), right: askedIn(right) },
    { title: "Instructions", left: left.system ?? "", right: right.system ?? "" },
    ...Array.from({ length: count }, (_, index) => ({
      title: `Turn ${index + 1}`,
      left: textOf(ours[index]),
      right: textOf(theirs[index])
    }))
  ]
}

const turnsOf = ({ currentTurn, turns }: RunState): ReadonlyArray<Turn> =>
  currentTurn === undefined ? turns : [...turns, currentTurn]

const askedIn = ({ input }: RunState): string => input.map(wordsOf).join("\n\n")

/** What a turn said and did, as text. */
const textOf = (turn: Turn | undefined): string | undefined => {
  if (turn === undefined) return undefined
  const said = turn.message === undefined ? "" : saidIn(turn.message).trim()
  return [...(said === "" ? [] : [said]), ...turn.completed.map(callText)].join("\n\n")
}

const callText = ({ error, input, kind, name, output = [] }: CallResult): string => {
  const result = error?.message ?? output.map((part) => (part.type === "text" ? part.text : json(part))).join("\n")
  return `${name ?? kind} ${JSON.stringify(input)}\n→ ${result}`
}

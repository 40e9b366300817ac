/** A program that a model wrote, with its calls at the lines that made them. */

import type { Call, CallResult } from "../../Call.ts"
import { isRecord } from "../../kit/json.ts"
import { unfenced } from "../../kit/text.ts"
import type { RunState, Turn } from "../../RunState.ts"
import { fieldsOf, wordsOf } from "../internal/runTitle.ts"

/** A call that was made, and its result if it has one. */
export interface MadeCall {
  readonly call: Call | CallResult
  readonly result: CallResult | undefined
}

/** A program at one revision of its run. Lines are counted from 1; calls without a line have 0. */
export interface ShownProgram {
  readonly source: string
  readonly calls: ReadonlyMap<number, ReadonlyArray<MadeCall>>
  readonly failure: { readonly line: number; readonly text: string } | undefined
}

/** Reads the program of a run. Undefined for the run of another agent. */
export const programOf = (shown: RunState): ShownProgram | undefined => {
  const turns = shown.currentTurn === undefined ? shown.turns : [...shown.turns, shown.currentTurn]
  if (!turns.some(({ model }) => model?.startsWith("program/") === true)) return undefined
  const source = fieldsOf(wordsOf(shown.input[shown.history]))?.["code"]
  if (typeof source !== "string") return undefined
  const calls = new Map<number, ReadonlyArray<MadeCall>>()
  for (const turn of turns) {
    for (const [line, made] of madeIn(turn)) calls.set(line, [...(calls.get(line) ?? []), made])
  }
  return { source: unfenced(source), calls, failure: failureOf(shown) }
}

/** Returns the lines of the calls of a reply, in their order. */
const linesIn = (message: Turn["message"]): ReadonlyArray<unknown> => {
  const [first] = message?.content ?? []
  const kept = first?.type === "thinking" && isRecord(first.signature) ? first.signature["lines"] : undefined
  return Array.isArray(kept) ? kept : []
}

const madeIn = ({ completed, inFlight, message, pending }: Turn): ReadonlyArray<readonly [number, MadeCall]> => {
  const lines = linesIn(message)
  const uses = message?.content.flatMap((part) => (part.type === "tool_use" ? [part.callId] : [])) ?? []
  return [...completed, ...inFlight, ...pending].map((call) => {
    const result = completed.find(({ callId }) => callId === call.callId)
    return [Number(lines[uses.indexOf(call.callId)] ?? 0), { call, result }]
  })
}

const failureOf = ({ status }: RunState): ShownProgram["failure"] => {
  if (status.type !== "failed") return undefined
  const [first = ""] = status.error.message.split("\n")
  const text = first.replace(/^the program '.*?' failed: /, "")
  return { line: Number(/^ {2}at line (\d+): /m.exec(status.error.message)?.[1] ?? 0), text }
}

/** The parts of a turn's prompt that a person can change: the texts of its messages, and the results of calls. */

import { type CallResult, textOf } from "../../Call.ts"
import type { Message } from "../../Message.ts"
import type { RunState, Turn } from "../../RunState.ts"
import type { Fork } from "../internal/forkEdits.ts"
import { wordsOf } from "../internal/runTitle.ts"

export interface PromptPart {
  readonly kind: "question" | "message" | "result"
  /** The place of a message in the prompt, or the id of a call. */
  readonly key: string
  readonly label: string
  readonly text: string
}

/** Returns the parts of the prompt of the open turn, in their order. Results stand for the messages that show them. */
export const promptParts = (state: RunState): ReadonlyArray<PromptPart> => {
  const asked = state.input.findLast(({ role }) => role === "user")
  const turns = new Map(state.turns.map((turn) => [turn.message, turn]))
  const parts: Array<PromptPart> = []
  let covered = 0
  for (const [at, message] of state.prompt.entries()) {
    if (covered > 0) {
      covered--
      continue
    }
    if (message === asked)
      parts.push({ kind: "question", key: String(at), label: "The question", text: wordsOf(message) })
    else if (message.content.some(({ type }) => type === "text")) parts.push(said(message, at))
    const turn = turns.get(message)
    if (turn === undefined || turn.outcome?.type === "corrective") continue
    parts.push(...turn.completed.map(returned))
    covered = messagesOf(turn)
  }
  return parts
}

const said = (message: Message, at: number): PromptPart => ({
  kind: "message",
  key: String(at),
  label: `Message ${at + 1}, ${message.role}`,
  text: wordsOf(message)
})

const returned = (result: CallResult): PromptPart => ({
  kind: "result",
  key: result.callId,
  label: `The result of ${result.name ?? result.kind} ${JSON.stringify(result.input)}`,
  text: result.error?.message ?? textOf(result)
})

/** Returns how many messages show the results of a turn: one for each call, and one for all tasks. */
const messagesOf = ({ completed }: Turn): number => {
  const tasks = completed.filter(({ kind }) => kind === "task").length
  return completed.length - tasks + Math.min(tasks, 1)
}

/** Returns the changes that a fork makes to parts, whose new texts are found by their keys. */
export const changesOf = (
  parts: ReadonlyArray<PromptPart>,
  texts: ReadonlyMap<string, string>
): Pick<Fork, "messages" | "question" | "results"> => {
  const changed = parts.flatMap(({ key, kind }) => {
    const text = texts.get(key)
    return text === undefined ? [] : [{ kind, key, text }]
  })
  const of = (kind: PromptPart["kind"]) => changed.filter((part) => part.kind === kind)
  const [question] = of("question")
  const messages = of("message").map(({ key, text }) => ({ at: Number(key), text }))
  const results = of("result").map(({ key, text }) => [key, text] as const)
  return {
    ...(question && { question: question.text }),
    ...(messages.length > 0 && { messages }),
    ...(results.length > 0 && { results: Object.fromEntries(results) })
  }
}

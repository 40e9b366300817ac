/**
 * Ids of calls: those of tasks, those a run has used, and those of native calls in what a model said.
 */

import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { Message } from "../../Message.ts"
import type { Growing } from "../base/lists.ts"
import { isJsonObject } from "../base/json.ts"
import { freeze } from "../base/snapshot.ts"

/** The id of a task's call, and of its run: no task name meets another, a turn or an earlier workflow. */
export const ofTask = (turnId: string, task: string): string => `${turnId}/${encoded(task)}`

/** Percent-encoded. Half a surrogate pair, which JSON can name, has no such code: it is written as `%ud800`. */
const encoded = (text: string): string =>
  text.isWellFormed()
    ? encodeURIComponent(text)
    : Array.from(text, (character) =>
        character.isWellFormed() ? encodeURIComponent(character) : `%u${character.charCodeAt(0).toString(16)}`
      ).join("")

/** Whether something was called for before under an id, made or not: all of it is in the conversation. */
export type IsUsed = (id: string, turns: Growing<{ readonly message?: Message }>) => boolean

/** Looks into the history of a run and its turns, into each once: step 1,000 costs what step 1 does. */
export const usedIds = (history: ReadonlyArray<Message>): IsUsed => {
  const ids = new Set<string>()
  let seen = 0
  const note = (message: Message | undefined) => {
    for (const part of message?.content ?? []) if (part.type === "tool_use") ids.add(part.callId)
  }
  history.forEach(note)
  return (id, turns) => {
    for (const { message } of turns.recent(turns.length - seen)) note(message)
    seen = turns.length
    return ids.has(id)
  }
}

/** What a vendor signs a call with stands in a thought that names the call: it follows the call to its new id. */
export const signed = (part: Content, rename: (id: string) => string): Content => {
  if (part.type !== "thinking" || !isJsonObject(part.signature)) return part
  const { callId } = part.signature
  const renamed = typeof callId === "string" ? rename(callId) : callId
  return renamed === callId || renamed === undefined
    ? part
    : freeze({ ...part, signature: { ...part.signature, callId: renamed } })
}

/** A part with the id of its call, of the call it is the result of or of the one it signs, by another name. */
export const renamed = (part: Content, rename: (id: string) => string): Content => {
  if (part.type !== "tool_use" && part.type !== "tool_result") return signed(part, rename)
  const callId = rename(part.callId)
  if (callId === part.callId) return part
  return part.type === "tool_use"
    ? Contents.toolUse(callId, part.name, part.input)
    : Contents.toolResult(callId, part.content, part)
}

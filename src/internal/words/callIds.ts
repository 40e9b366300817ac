/**
 * Ids of calls: of tasks, of calls a run has already made, and of native calls in messages.
 */

import type { CallKind } from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { Message } from "../../Message.ts"
import type { Growing } from "../base/lists.ts"
import { isJsonObject } from "../base/json.ts"
import { freeze } from "../base/snapshot.ts"

/**
 * Returns the id of a task's call, which is also the id of its run. It differs from the ids of all other tasks, turns
 * and workflows.
 */
export const ofTask = (turnId: string, task: string): string => `${turnId}/${encoded(task)}`

/** Returns the id of the run that a call starts as a child of its own run. Undefined for calls that start none. */
export const childRunId = (
  turnId: string,
  { callId, kind }: { readonly callId: string; readonly kind: CallKind }
): string | undefined => {
  if (kind === "task") return callId
  if (kind !== "agent") return undefined
  return ofTask(turnId, callId.startsWith(`${turnId}.`) ? callId.slice(turnId.length + 1) : callId)
}

/** Percent-encodes a text. A lone surrogate, which JSON can contain, is written as `%ud800`. */
const encoded = (text: string): string =>
  text.isWellFormed()
    ? encodeURIComponent(text)
    : Array.from(text, (character) =>
        character.isWellFormed() ? encodeURIComponent(character) : `%u${character.charCodeAt(0).toString(16)}`
      ).join("")

/** Has the conversation used this call id before, whether or not the call was run? */
export type IsUsed = (id: string, turns: Growing<{ readonly message?: Message }>) => boolean

/**
 * Looks through the history of a run and its turns. Each turn is read once, so turn 1,000 costs no more than turn 1.
 */
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

/** Renames the call that a thought's signature belongs to. Vendors sign calls in thoughts that name the call. */
export const signed = (part: Content, rename: (id: string) => string): Content => {
  if (part.type !== "thinking" || !isJsonObject(part.signature)) return part
  const { callId } = part.signature
  const renamed = typeof callId === "string" ? rename(callId) : callId
  return renamed === callId || renamed === undefined
    ? part
    : freeze({ ...part, signature: { ...part.signature, callId: renamed } })
}

/** Renames the call of a tool use, a tool result or a signed thought. */
export const renamed = (part: Content, rename: (id: string) => string): Content => {
  if (part.type !== "tool_use" && part.type !== "tool_result") return signed(part, rename)
  const callId = rename(part.callId)
  if (callId === part.callId) return part
  return part.type === "tool_use"
    ? Contents.toolUse(callId, part.name, part.input)
    : Contents.toolResult(callId, part.content, part)
}

/**
 * Names of skills and protocols, and ids of calls.
 *
 * Native calls keep the vendor's ids unless the conversation has
 * used them before.
 */

import * as Contents from "../../Content.ts"
import type { Content } from "../../Content.ts"
import { DefinitionInvalid } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import { isJsonObject } from "../../kit/json.ts"
import type { Growing } from "../../kit/lists.ts"
import { freeze } from "../../kit/snapshot.ts"

/** Returns why a skill or protocol cannot have this name, if it cannot. */
export const misnamed = (name: string): DefinitionInvalid | undefined =>
  /^[A-Za-z0-9_-]{1,64}$/.test(name)
    ? undefined
    : new DefinitionInvalid({ name, reason: "a name has 1 to 64 letters, digits, '_' or '-'" })

/** Returns whether the conversation has used a call id before, even for a call that never ran. */
export type IsUsed = (id: string, turns: Growing<{ readonly message?: Message }>) => boolean

/** Creates an `IsUsed` for a run with this history. Each turn is read once, so turn 1,000 costs no more than turn 1. */
export const usedIds = (history: ReadonlyArray<Message>): IsUsed => {
  let ids: Set<string> | undefined
  let seen = 0
  const note = (message: Message | undefined) => {
    for (const part of message?.content ?? []) if (part.type === "tool_use") ids?.add(part.callId)
  }
  return (id, turns) => {
    if (ids === undefined) {
      ids = new Set()
      history.forEach(note)
    }
    for (const { message } of turns.recent(turns.length - seen)) note(message)
    seen = turns.length
    return ids.has(id)
  }
}

/** Renames the call in the signature of a thinking part. Some vendors sign a call in a thinking part that names it. */
export const signed = (part: Content, rename: (id: string) => string): Content => {
  if (part.type !== "thinking" || !isJsonObject(part.signature)) return part
  const { callId } = part.signature
  const renamed = typeof callId === "string" ? rename(callId) : callId
  return renamed === callId || renamed === undefined
    ? part
    : freeze({ ...part, signature: { ...part.signature, callId: renamed } })
}

/** Renames the call of a tool use, a tool result or a signed thinking part. */
export const renamed = (part: Content, rename: (id: string) => string): Content => {
  if (part.type !== "tool_use" && part.type !== "tool_result") return signed(part, rename)
  const callId = rename(part.callId)
  if (callId === part.callId) return part
  return part.type === "tool_use"
    ? Contents.toolUse(callId, part.name, part.input)
    : Contents.toolResult(callId, part.content, part)
}

/**
 * The native calls of a reply, each under an id that no other call of the run has.
 */

import type { Call } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { Reply } from "../../Dialect.ts"
import type { Message } from "../../Message.ts"
import { isJsonObject } from "../base/json.ts"
import { signed } from "../words/ids.ts"
import type { ReplyRules } from "./replyRules.ts"

/** The native calls of a reply. One whose input is not an object gets an error instead of running. */
export const nativeCalls = (reply: Reply, rules: ReplyRules): ReadonlyArray<Call> => {
  const used = new Map<string, number>()
  return reply.calls.map(({ id, name, params }, index): Call => {
    const callId = idOf(id, index, rules, used)
    const kind = rules.isProtocol(name) ? "protocol" : rules.kindOf(name)
    if (isJsonObject(params)) return { callId, name, input: params, kind, review: "unreviewed" }
    const fault = Calls.error("InvalidArguments", `The arguments of '${name}' are not a JSON object.`)
    return { callId, name, input: {}, kind, review: "unreviewed", fault }
  })
}

/** The assistant message of a reply, with its native calls under the ids that their results will have. */
export const messageOf = (reply: Reply, rules: ReplyRules): Message => {
  if (!reply.content.some(({ type }) => type === "tool_use")) return { role: "assistant", content: reply.content }
  const renamed = new Map<string, string>()
  const used = new Map<string, number>()
  let index = 0
  const content = reply.content.map((part): Content => {
    if (part.type !== "tool_use") return part
    // Calls of a cut reply, or far beyond the limit, never run, but each is answered under an id of its own.
    const callId = idOf(part.callId, index++, rules, used)
    if (callId === part.callId) return part
    if (!renamed.has(part.callId)) renamed.set(part.callId, callId)
    return Contents.toolUse(callId, part.name, part.input)
  })
  const isSame = renamed.size === 0
  return {
    role: "assistant",
    content: isSame ? reply.content : content.map((part) => signed(part, (id) => renamed.get(id) ?? id))
  }
}

/** The vendor's id of a call, or one of ours when that id names another call of the run. */
const idOf = (given: string, index: number, rules: ReplyRules, used: Map<string, number>): string => {
  const own = `${rules.turnId}.${index}`
  // Answers name calls of the whole tree, so a child's calls have ids that no other run's have.
  if (rules.depth > 0) return unique(own, used)
  const id = unique(given, used)
  return isCounted(given) || rules.isUsed(id) ? unique(own, used) : id
}

/** Is this an id that only counts the calls of its reply? It comes back on the next turn. */
const isCounted = (id: string): boolean => /^(?:call_\d*)?$/.test(id)

/** Adds `#2`, `#3` to an id that repeats. */
const unique = (id: string, used: Map<string, number>): string => {
  const count = (used.get(id) ?? 0) + 1
  used.set(id, count)
  return count === 1 ? id : unique(`${id}#${count}`, used)
}

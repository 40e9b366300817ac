/**
 * What a task of another agent requires, as a question to a person of the run, and the reply to the task.
 *
 * The call that asks runs again with the answer, in any process. So the question names its task: the call continues that
 * task instead of sending its message again.
 */

import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { isJsonObject } from "../../internal/base/json.ts"
import { shorten, visible } from "../../internal/base/text.ts"
import type { Asking, Reply } from "../../Skill.ts"
import type { Task } from "../A2aClient.ts"
import * as Views from "./a2aView.ts"

/** A question about a task. `count` tells it from the questions of the same call before. */
export const askingOf = (agent: string, skill: string, task: Task, count: number): Asking | undefined => {
  if (task.taskId === undefined) return undefined
  const isApproval = task.message.some(asksForApproval)
  const shown = isApproval ? task.message.filter(({ type }) => type === "text") : task.message
  return {
    name: `${skill}/input/${count}/${task.taskId}`,
    message: `the agent '${agent}' asks: ${visible(shorten(Views.textOf(shown).trim(), longest))}`,
    ...(isApproval ? {} : { form })
  }
}

const longest = 4_000

/** An agent of kernai asks with the call that it wants to make. */
const asksForApproval = (content: Content): boolean =>
  content.type === "data" && isJsonObject(content.data) && typeof content.data["callId"] === "string"

const form = {
  type: "object",
  properties: { reply: { type: "string", title: "Reply" } },
  required: ["reply"]
}

/** The task that a question is about. */
export const taskOf = ({ name = "" }: Asking): string | undefined => /^[^/]*\/input\/\d+\/(.*)$/s.exec(name)?.[1]

/** What the task is sent; undefined where a person did not reply, and it cannot be told so. */
export const replyOf = ({ form }: Asking, reply: Reply): ReadonlyArray<Content> | undefined => {
  if (form === undefined) {
    const reason = reply._tag === "Declined" ? reply.reason : undefined
    return [Contents.data({ approved: reply._tag === "Accepted", ...(reason === undefined ? {} : { reason }) })]
  }
  if (reply._tag !== "Accepted") return undefined
  const { reply: text } = reply.values
  return [Contents.text(typeof text === "string" ? text : JSON.stringify(text ?? ""))]
}

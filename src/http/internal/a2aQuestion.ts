/**
 * Turns the input that a task of another agent requires into a question to a person of the run, and the answer into a
 * reply to the task.
 *
 * The call that asks runs again with the answer, in any process. Its question names the task, so that the call
 * continues the task instead of sending its message again.
 */

import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { isEmpty, isJsonObject, type JsonObject, jsonObject } from "../../kit/json.ts"
import { shorten, visible } from "../../kit/text.ts"
import type { Asking, Reply } from "../../Skill.ts"
import type { Task } from "../A2aClient.ts"
import * as Views from "./a2aView.ts"

/** Creates the question of a task. `count` distinguishes it from earlier questions of the same call. */
export const askingOf = (agent: string, skill: string, task: Task, count: number): Asking | undefined => {
  if (task.taskId === undefined) return undefined
  const decisions = task.message.flatMap((content) => (isDecision(content) ? [content.data] : []))
  const isOurs = decisions.length > 0
  const shown = isOurs ? task.message.filter(({ type }) => type === "text") : task.message
  // A single question shows its form; several questions are approved or declined together.
  const theirs = decisions.length === 1 ? jsonObject(decisions[0]?.["asking"])["form"] : undefined
  const wanted = isOurs ? theirs : form
  return {
    name: `${skill}/${isOurs ? "decision" : "input"}/${count}/${task.taskId}`,
    message: `the agent '${agent}' asks: ${visible(shorten(Views.textOf(shown).trim(), longest))}`,
    ...(isJsonObject(wanted) ? { form: wanted } : {})
  }
}

const longest = 4_000

/** Returns true for the data of an open question of a kernai agent, which holds the waiting call and its form. */
const isDecision = (content: Content): content is Extract<Content, { readonly type: "data" }> =>
  content.type === "data" && isJsonObject(content.data) && typeof content.data["callId"] === "string"

const form = {
  type: "object",
  properties: { reply: { type: "string", title: "Reply" } },
  required: ["reply"]
}

/** Returns the task of a question. */
export const taskOf = ({ name = "" }: Asking): string | undefined =>
  /^[^/]*\/(?:input|decision)\/\d+\/(.*)$/s.exec(name)?.[1]

/** Returns the reply to the task, or undefined if the person did not reply and the task accepts no refusal. */
export const replyOf = ({ name = "" }: Asking, reply: Reply): ReadonlyArray<Content> | undefined => {
  if (/^[^/]*\/decision\//.test(name)) return [Contents.data(decisionOf(reply))]
  if (reply._tag !== "Accepted") return undefined
  const { reply: text } = reply.values
  return [Contents.text(typeof text === "string" ? text : JSON.stringify(text ?? ""))]
}

const decisionOf = (reply: Reply): JsonObject => {
  switch (reply._tag) {
    case "Accepted":
      return { approved: true, ...(isEmpty(reply.values) ? {} : { values: reply.values }) }
    case "Declined":
      return { approved: false, ...(reply.reason === undefined ? {} : { reason: reply.reason }) }
    case "Dismissed":
      return { approved: false, dismissed: true }
  }
}

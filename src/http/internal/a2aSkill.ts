/** Agents of other services as skills, and the replies to their questions. */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Block from "../../Block.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { isJsonObject, type Json } from "../../kit/json.ts"
import { sha256 } from "../../kit/sha256.ts"
import { flat, shorten } from "../../kit/text.ts"
import type { Limits } from "../../Limits.ts"
import * as Policy from "../../Policy.ts"
import * as Skill from "../../Skill.ts"
import type { A2aClient, Card, Task } from "../A2aClient.ts"
import type { A2aError } from "../A2aError.ts"
import { failure } from "./a2aLine.ts"
import * as Questions from "./a2aQuestion.ts"
import * as Views from "./a2aView.ts"

/** An agent of a hub, with its card if it has been read. */
export interface Known {
  readonly name: string
  readonly client: A2aClient
  readonly description: string | undefined
  readonly effects: Skill.Effects
  readonly timeout: Duration.Input
  readonly waiting: Waiting
  /** Whether a person or the model replies to a question of a task. */
  readonly replies: "person" | "model"
  card: Card | undefined
  problem: A2aError | undefined
}

/** Returns the name of an agent's skill. */
export const skillName = (agent: string): string => `a2a_${agent}`

/** The input of an agent's skill. */
const Input = Schema.Struct({
  message: Schema.String.annotate({ description: "What the agent is asked or told, with all that it needs to know." }),
  task: Schema.optionalKey(
    Schema.String.annotate({ description: "The id of a task of the agent that waits for this reply." })
  ),
  data: Schema.optionalKey(
    Schema.JsonObject.annotate({ description: "Data besides the message, where the agent asks for data." })
  )
})

/** Creates the skill of an agent. */
export const make = (agent: Known, { cleanUpTimeout, descriptionLength }: Limits): Skill.AnySkill =>
  Skill.make(skillName(agent.name), {
    description: Block.escape(flat(shorten(descriptionOf(agent), descriptionLength))),
    input: Input,
    effects: agent.effects,
    source: "a2a",
    annotations: { openWorld: true },
    timeout: timeoutOf(agent, cleanUpTimeout),
    execute: (input, context) =>
      Effect.map(converse(agent, input, context), (task) =>
        task.state === "input_required" ? questionOf(agent.name, task) : task.content
      )
  })

type Context = Pick<Skill.SkillContext, "answered" | "ask" | "idempotencyKey" | "preliminary" | "progress">

/** Sends a message to an agent, and asks a person of the run whenever the agent requires input. */
const converse = Effect.fnUntraced(function* (
  agent: Known,
  input: typeof Input.Type,
  { answered = [], ask: askPerson, idempotencyKey, preliminary, progress }: Context
): Effect.fn.Return<Task, A2aError | Skill.AnswerPending> {
  const { client, name } = agent
  const onChange = ({ message, text }: Task) =>
    text === "" ? progress({ message: Views.textOf(message) }) : preliminary(text)
  /** Sends the reply of a person. */
  const reply = Effect.fnUntraced(function* (asking: Skill.Asking, given: Skill.Reply, taskId: string) {
    const content = Questions.replyOf(asking, given)
    const messageId = yield* idOf(`${idempotencyKey}/${asking.name}`)
    if (content !== undefined) return yield* client.ask({ content, taskId, messageId }, { onChange })
    yield* Effect.ignore(client.cancel(taskId))
    const why = given._tag === "Declined" && given.reason !== undefined ? `: ${given.reason}` : ""
    return yield* failure(client, "not_completed", `got no reply to its question, and its task was cancelled${why}`)
  })
  let count = answered.length
  let asking = answered.at(-1)
  let taskId = asking === undefined ? undefined : Questions.taskOf(asking)
  let task: Task | undefined
  for (;;) {
    if (asking !== undefined && taskId !== undefined && askPerson !== undefined) {
      task = yield* reply(asking, yield* askPerson(asking), taskId)
    } else task = yield* ask(agent, input, { idempotencyKey, onChange })
    if (task.state !== "input_required" || askPerson === undefined || agent.replies === "model") return task
    asking = Questions.askingOf(name, skillName(name), task, count++)
    taskId = task.taskId
    if (asking === undefined) return task
  }
})

/** Returns the time for a call: that of the agent, plus the time to cancel its task. */
export const timeoutOf = ({ timeout }: Known, cleanUpTimeout: Duration.Duration): Duration.Duration =>
  Duration.sum(Duration.fromInputUnsafe(timeout), cleanUpTimeout)

const descriptionOf = ({ card, description, name }: Known): string => {
  if (description !== undefined) return description
  if (card === undefined) return `Asks the agent '${name}' of another service.`
  const skills = card.skills.map((skill) => `${skill.name}: ${skill.description}`).join("; ")
  const about = card.description === "" ? `The agent '${card.name}' of another service.` : card.description
  return skills === "" ? about : `${about} Its abilities: ${skills}`
}

/** Sends a message of a model to an agent, and notes a returned question. */
export const ask = Effect.fnUntraced(function* (
  { client, name, waiting }: Known,
  { context, data, message, task }: typeof Input.Type & { readonly context?: string | undefined },
  options: {
    readonly idempotencyKey: string
    readonly onChange?: (task: Task) => Effect.Effect<void>
  }
): Effect.fn.Return<Task, A2aError> {
  const content: Array<Content> = message === "" ? [] : [Contents.text(message)]
  if (data !== undefined) content.push(Contents.data(data))
  const messageId = yield* idOf(options.idempotencyKey)
  const sent = { content, taskId: task, contextId: context, messageId }
  const result = yield* client.ask(sent, { onChange: options.onChange })
  if (result.state === "input_required") waiting.note(name, result)
  return result
})

/** Returns the message id of a call, the same when the call is repeated. */
const idOf = (idempotencyKey: string): Effect.Effect<string> =>
  Effect.map(sha256(idempotencyKey), (hash) => hash.slice(0, 32))

/** Writes a question of an agent for the model. */
const questionOf = (name: string, task: Task): string => {
  const { taskId } = task
  const reply =
    taskId === undefined
      ? ""
      : `\nTo reply, call '${skillName(name)}' with "task": ${JSON.stringify(taskId)} and the reply as its message, or as its data where the agent shows data.`
  return `The agent '${name}' requires input before it continues:\n${Views.textOf(task.message)}${reply}`
}

// ---------------------------------------------------------------- replies

/** The questions of waiting tasks, shown to the person who confirms a reply. */
export interface Waiting {
  readonly note: (agent: string, task: Task) => void
  readonly find: (agent: string, taskId: string) => string | undefined
}

/** Keeps the last 1,000 questions. */
export const waiting = (): Waiting => {
  const questions = new Map<string, string>()
  const keyOf = (agent: string, taskId: string) => `${agent} ${taskId}`
  return {
    note: (agent, { message, taskId = "" }) => {
      questions.set(
        keyOf(agent, taskId),
        shorten(flat(Views.textOf(message.filter(({ type }) => type === "text"))), 1_000)
      )
      const oldest = questions.keys().next()
      if (questions.size > 1_000 && !oldest.done) questions.delete(oldest.value)
    },
    find: (agent, taskId) => questions.get(keyOf(agent, taskId))
  }
}

/** Creates the policy that asks a person about each reply to a task. */
export const policyOf = (agents: ReadonlyArray<string>, waiting: Waiting): Policy.PolicyShape => {
  const names = new Map(agents.map((agent) => [skillName(agent), agent]))
  return {
    authorize: ({ input, name }) =>
      Effect.sync(() => {
        const agent = names.get(name)
        const task = agent === undefined ? undefined : repliedTo(input)
        if (agent === undefined || task === undefined) return Policy.allowed
        const question = waiting.find(agent, task) ?? `its task ${task} requires input`
        return Policy.confirm(`the agent '${agent}' asks: ${question}`)
      })
  }
}

const repliedTo = (input: Json): string | undefined =>
  isJsonObject(input) && typeof input["task"] === "string" && "message" in input ? input["task"] : undefined

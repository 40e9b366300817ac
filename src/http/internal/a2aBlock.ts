/** The block type `a2a`, which reaches agents of other services and their tasks by a fixed set of JSON methods. */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Block from "../../Block.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import * as Bounds from "../../kit/bounds.ts"
import { type Json, jsonObject, parseJson } from "../../kit/json.ts"
import { strip } from "../../kit/text.ts"
import type { Limits } from "../../Limits.ts"
import * as Protocol from "../../Protocol.ts"
import { ProtocolRegistry } from "../../ProtocolRegistry.ts"
import type { Task } from "../A2aClient.ts"
import { A2aError } from "../A2aError.ts"
import { failure } from "./a2aLine.ts"
import { ask, type Known, skillName, timeoutOf } from "./a2aSkill.ts"
import * as Views from "./a2aView.ts"

/** Registers the block until the scope closes. If agents are also skills, an agent reaches only those it may call. */
export const register = Effect.fnUntraced(function* (agents: ReadonlyArray<Known>, limits: Limits, areSkills: boolean) {
  const registry = yield* ProtocolRegistry
  const byName = new Map(agents.map((agent) => [agent.name, agent]))
  const protocol = Protocol.make("a2a", {
    documentation: documentation(agents.map(({ name }) => name)),
    // A request may be for any agent.
    timeout: agents.reduce(
      (most, agent) => Duration.max(most, timeoutOf(agent, limits.cleanUpTimeout)),
      limits.cleanUpTimeout
    ),
    handle: ({ content }, scope) => {
      const mayUse = (name: string) => (areSkills ? scope.refusal(skillName(name)) : undefined)
      return Effect.flatMap(Effect.fromResult(parse(content)), (request) =>
        answer({ byName, mayUse, idempotencyKey: scope.idempotencyKey }, request)
      )
    },
    // The skill whose rules apply to a request to an agent.
    skillOf: ({ content }) => {
      const request = Result.getOrUndefined(parse(content))
      if (request === undefined || request.method === "agents/list" || request.method === "agents/describe") {
        return undefined
      }
      const { agent, ...input } = request.params
      return { name: skillName(agent), input: { ...input } }
    }
  })
  yield* Effect.catchTag(registry.register(protocol), "DefinitionInvalid", Effect.die)
})

// ---------------------------------------------------------------- requests

const Request = Schema.Union([
  Schema.Struct({ method: Schema.Literal("agents/list") }),
  Schema.Struct({ method: Schema.Literal("agents/describe"), params: Schema.Struct({ agent: Schema.String }) }),
  Schema.Struct({
    method: Schema.Literal("message/send"),
    params: Schema.Struct({
      agent: Schema.String,
      message: Schema.String,
      task: Schema.optionalKey(Schema.String),
      context: Schema.optionalKey(Schema.String),
      data: Schema.optionalKey(Schema.JsonObject)
    })
  }),
  Schema.Struct({
    method: Schema.Literals(["tasks/get", "tasks/cancel"]),
    params: Schema.Struct({ agent: Schema.String, task: Schema.String })
  })
])

type Request = typeof Request.Type

const usage: { readonly [method in Request["method"]]: string } = {
  "agents/list": "no params",
  "agents/describe": "params: agent",
  "message/send": "params: agent, message, task?, context?, data?",
  "tasks/get": "params: agent, task",
  "tasks/cancel": "params: agent, task"
}

const decode = Schema.decodeUnknownResult(Request)

const parse = (text: string): Result.Result<Request, A2aError> => {
  const json = parseJson(strip(text), Bounds.jsonDepth)
  if (Result.isFailure(json)) return Result.fail(invalid(`invalid A2A request JSON: ${json.failure}`))
  return Result.mapError(decode(json.success), () => {
    const { method } = jsonObject(json.success)
    const needs = Object.entries(usage).find(([name]) => name === method)
    return invalid(
      needs === undefined
        ? `an A2A request is a JSON object with one of the methods ${Object.keys(usage).join(", ")}`
        : `${needs[0]} takes ${needs[1]}`
    )
  })
}

const invalid = (detail: string) => new A2aError({ agent: "", reason: "invalid_request", detail })

// ---------------------------------------------------------------- answers

interface Reachable {
  readonly byName: ReadonlyMap<string, Known>
  readonly mayUse: (agent: string) => string | undefined
  readonly idempotencyKey: string
}

const answer = Effect.fnUntraced(function* (
  reachable: Reachable,
  request: Request
): Effect.fn.Return<Json | ReadonlyArray<Content>, A2aError> {
  if (request.method === "agents/list") {
    return [...reachable.byName.values()]
      .filter(({ name }) => reachable.mayUse(name) === undefined)
      .map(({ card, description, name }) => ({ name, description: description ?? card?.description ?? "" }))
  }
  const agent = yield* Effect.fromResult(find(reachable, request.params.agent))
  switch (request.method) {
    case "agents/describe": {
      const { description, isStreaming, name, skills, version } = yield* agent.client.card
      return { name, description, version, isStreaming, skills: skills.map((skill) => ({ ...skill })) }
    }
    case "message/send":
      return shown(agent.name, yield* ask(agent, request.params, { idempotencyKey: reachable.idempotencyKey }))
    case "tasks/get":
      return shown(agent.name, yield* agent.client.task(request.params.task))
    case "tasks/cancel":
      yield* agent.client.cancel(request.params.task)
      return { agent: agent.name, task: request.params.task, state: "cancelled" }
  }
})

const find = ({ byName, mayUse }: Reachable, name: string): Result.Result<Known, A2aError> => {
  const agent = byName.get(name)
  if (agent === undefined) {
    return Result.fail(
      new A2aError({ agent: name, reason: "not_found", detail: `there is no agent '${name}'; ask agents/list` })
    )
  }
  const refused = mayUse(name)
  return refused === undefined ? Result.succeed(agent) : Result.fail(failure(agent, "not_allowed", refused))
}

/** Returns a task as JSON, followed by its media. */
const shown = (agent: string, { content, contextId, message, state, taskId, text }: Task): ReadonlyArray<Content> => {
  const said = Views.textOf(message)
  // Without artifacts, the text is the agent's message.
  const isSaid = said === text
  return [
    Contents.text(
      JSON.stringify({
        agent,
        ...(taskId === undefined ? {} : { task: taskId }),
        ...(contextId === undefined ? {} : { context: contextId }),
        state,
        ...(state === "input_required" ? { question: said } : {}),
        ...(text === "" || (isSaid && state === "input_required") ? {} : { answer: text }),
        ...(said === "" || isSaid || state === "input_required" ? {} : { message: said })
      })
    ),
    ...content.filter(Contents.isMedia)
  ]
}

const documentation = (names: ReadonlyArray<string>): string =>
  `Reaches agents of other services: ${names.map((name) => Block.escape(name)).join(", ")}. Write one JSON object with a method and its params into the block:

<block type="a2a">{"method": "message/send", "params": {"agent": "NAME", "message": "TEXT"}}</block>

Methods:
- agents/list: the agents.
- agents/describe: what one agent can do. params: agent
- message/send: asks an agent, and waits for its answer. params: agent, message, task?, context?, data?
- tasks/get: how a task stands. params: agent, task
- tasks/cancel: stops a task. params: agent, task

The answer comes as a result block named a2a; what went wrong comes as an error block. A task in state input_required has a question: send the reply with the id of the task, as data where the question shows data. To continue a conversation with an agent, give its context.`

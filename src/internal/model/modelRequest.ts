/**
 * Builds the request of a turn: its messages, its tools and its cache breakpoints.
 */

import * as Effect from "effect/Effect"
import * as Generations from "../../Generation.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { ModelCall } from "../../Middleware.ts"
import { simple } from "../../PromptPipeline.ts"
import type { ReplyGrammar, Request, ToolDefinition } from "../../Provider.ts"
import type { Redactor } from "../../Redaction.ts"
import type { CacheForecast } from "../../RunEvent.ts"
import type { Turn } from "../../RunState.ts"
import { perObject } from "../../kit/perObject.ts"
import { deep } from "../../kit/redact.ts"
import { offerOf } from "./permissions.ts"
import { type Run, type Served, policyScope } from "../run/run.ts"
import { promptLog, stepOf } from "../state/state.ts"

/** Returns the definitions of the tools that a turn offers its model. A hook may have dropped some of them. */
export const toolsOf = Effect.fnUntraced(function* (
  run: Run,
  { tools: names }: Turn
): Effect.fn.Return<ReadonlyArray<ToolDefinition>> {
  const skills = yield* run.restore(run.skills.all)
  const { tools } = yield* offerOf(run, skills, yield* run.restore(run.protocols.all))
  if (names.length === tools.length && tools.every(({ name }, index) => name === names[index])) return tools
  const offered = new Set(names)
  return tools.filter(({ name }) => offered.has(name))
})

const none: ReadonlyArray<never> = []

/** Builds the model call of a turn, before any middleware changes it. */
export const requestOf = (
  run: Run,
  turn: Turn,
  { model, provider }: Served,
  tools: ReadonlyArray<ToolDefinition>,
  grammar: ReplyGrammar | undefined,
  noteLeftOut: NonNullable<Request["noteLeftOut"]>
): ModelCall => {
  const { agent, state } = run
  const system = systemOf(run)
  const generation = Generations.merge(agent.generation, turn.args?.generation ?? Generations.empty)
  const log = promptLog(state)
  const breakpoints = breakpointsOf(run, turn, system.length, log.length)
  const request: Request = {
    model,
    messages: clean(run, log.after(system)),
    tools,
    generation,
    media: run.media,
    noteLeftOut,
    ...(grammar && { grammar }),
    ...(breakpoints && { cacheBreakpoints: breakpoints })
  }
  return { ...policyScope(run), step: stepOf(state), provider, request }
}

/** Emits the request. All earlier records are stored by then. */
export const emitSent = (run: Run, request: Request, at: number, cache: CacheForecast | undefined): void => {
  if (run.live.publish === undefined) return
  const { depth, rootRunId, runId, taskId } = run.state
  const { messages } = request
  const scope = { runId, rootRunId, step: stepOf(run.state), depth, taskId, at }
  run.live.publish({ ...scope, type: "messages_sent", messages, ...(cache && { cache }) }, run.agent.name)
}

/** Returns the system text as a message. An unchanged text gives the same object, so adapters encode it once. */
const systemOf = ({ agent, state: { system } }: Run): ReadonlyArray<Message> => {
  if (system === null) return none
  let known = systems.get(agent)
  if (known === undefined || known.text !== system) {
    systems.set(agent, (known = { text: system, messages: [Messages.system(system)] }))
  }
  return known.messages
}

const systems = new WeakMap<Run["agent"], { readonly text: string; readonly messages: ReadonlyArray<Message> }>()

/** Returns the cache breakpoints set by the pipeline. By default these are the system text and the last message. */
const breakpointsOf = (run: Run, turn: Turn, before: number, length: number): ReadonlyArray<number> | undefined => {
  const given = turn.args?.cacheBreakpoints
  if (given !== undefined) return given.map((index) => index + before)
  if (run.pipeline !== simple || length === 0) return undefined
  const last = before + length - 1
  return before > 0 ? [before - 1, last] : [last]
}

/** Redacts messages. Each is redacted once and stays the same object, so adapters encode it once. */
const clean = (run: Run, messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const { redactor } = run
  return redactor === undefined ? messages : messages.map(cleanerOf(redactor))
}

const cleanerOf = perObject((redactor: Redactor) => perObject((message: Message) => deep(message, redactor.text)))

/**
 * Starts a run for a caller.
 */

import * as Effect from "effect/Effect"
import * as Agent from "../../Agent.ts"
import * as Kernel from "../../Kernel.ts"
import type { Runnable } from "../../RunWorker.ts"
import type { Caller } from "../Access.ts"
import { type HttpProblem, Invalid, NotFound } from "../HttpProblem.ts"
import type * as Bodies from "../RunBodies.ts"
import type { ServerResources } from "./serverResources.ts"
import { asProblem } from "../HttpProblem.ts"
import { runIdOf, stored } from "./runNames.ts"

/** Stores a run, lets a worker claim it, and returns its id. */
export const start = Effect.fnUntraced(function* (
  resources: ServerResources,
  caller: Caller,
  request: Bodies.Start
): Effect.fn.Return<string, HttpProblem> {
  const agent = yield* agentOf(resources, request.agent)
  if (request.history?.some(({ role }) => role === "system") === true) {
    return yield* new Invalid({ detail: "the history holds a system message: instructions belong to the agent" })
  }
  const context = yield* contextOf(resources, caller, agent, request)
  const runId = runIdOf(caller, request.runId ?? (yield* Kernel.newRunId))
  const input = yield* resources.fetchMedia(request.input)
  yield* asProblem(runId)(
    resources.submit(agent.name, input, {
      runId,
      history: request.history,
      context,
      caller: stored(caller)
    })
  )
  yield* resources.uploads.started(runId)
  yield* resources.take(runId)
  return runId
})

const agentOf = (
  { agents }: ServerResources,
  name: string | undefined
): Effect.Effect<Runnable<unknown>, HttpProblem> => {
  const [only] = agents.values()
  const agent = name === undefined && agents.size === 1 ? only : agents.get(name ?? "")
  if (agent !== undefined) return Effect.succeed(agent)
  return name === undefined
    ? Effect.fail(new Invalid({ detail: `name the agent: ${[...agents.keys()].join(", ")}` }))
    : Effect.fail(new NotFound({ what: "agent", id: name }))
}

/** Returns the context of a run, in the form its agent expects. */
const contextOf = (
  { context }: ServerResources,
  caller: Caller,
  agent: Runnable<unknown>,
  { context: sent, runId = "" }: Bodies.Start
): Effect.Effect<unknown, HttpProblem> => {
  if (context === undefined) {
    return sent === undefined
      ? Effect.undefined
      : Effect.fail(new Invalid({ detail: "this server accepts no context from clients" }))
  }
  const encoded = context(caller, sent ?? {})
  return asProblem(runId)(Agent.contextOf(agent, { context: encoded }))
}

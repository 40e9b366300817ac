/**
 * Starts a new run: stores it, then drives it to its end or queues it for a worker.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Content } from "../../Content.ts"
import type { RunError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { RunRecord, RunResult, RunState } from "../../RunState.ts"
import type { JsonObject } from "../base/json.ts"
import * as PromptCache from "../prompt/promptCache.ts"
import { advance } from "../state/advance.ts"
import { State } from "../state/state.ts"
import { usedIds } from "../words/callIds.ts"
import { ownContext } from "./askHooks.ts"
import { type AppendError, nothing } from "./commit.ts"
import { conclude } from "./conclude.ts"
import { drive } from "./loop.ts"
import { offer } from "./queue.ts"
import { type AnyAgent, type Environment, now, type Run } from "./run.ts"
import type { DriveError, EndError } from "./stepErrors.ts"

/** Identity and input of a new run. */
export interface Beginning {
  readonly runId: string
  readonly rootRunId: string
  readonly parentRunId: string | undefined
  readonly depth: number
  readonly taskId: string | undefined
  readonly history: ReadonlyArray<Message>
  readonly input: ReadonlyArray<Content>
  readonly context: JsonObject
}

/** Starts a run and drives it to its end. */
export const start = (environment: Environment, beginning: Beginning): Effect.Effect<RunResult<unknown>, RunError> =>
  traced(environment, beginning, Effect.flatMap(create(environment, beginning), finish))

/** Stores a new run and queues it. Where the store cannot queue, workers find the run when it looks abandoned. */
export const submit = (environment: Environment, beginning: Beginning): Effect.Effect<string, AppendError> =>
  // A stored run is queued even while its submission is being interrupted.
  Effect.uninterruptible(
    Effect.flatMap(create(environment, beginning), ({ holder, state, store }) =>
      Effect.as(Effect.ignore(offer(store, state.runId, holder)), state.runId)
    )
  )

/** Stores a new run, before its first model call. */
export const create = (environment: Environment, beginning: Beginning): Effect.Effect<Run, AppendError> =>
  Effect.suspend(() => {
    const { depth, history, parentRunId, rootRunId, runId, taskId } = beginning
    const at = now(environment)
    const event = {
      type: "run_started" as const,
      runId,
      rootRunId,
      step: 0,
      depth,
      taskId,
      at,
      revision: 1,
      agent: environment.agent.name,
      parentRunId,
      messages: [...history, Messages.user(beginning.input)],
      history: history.length,
      context: ownContext(beginning.context)
    }
    const record: RunRecord = {
      runId,
      revision: 1,
      op: "phase",
      events: [event],
      delta: {},
      createdAt: at,
      workerId: environment.workerId
    }
    const state = advance(undefined, record)
    // The event of a stored run is published even while the run is being interrupted.
    return Effect.uninterruptible(
      Effect.map(environment.store.append([record], state), () => {
        environment.publish?.(event)
        return make(environment, state, undefined)
      })
    )
  })

/** A run in this process at a state, with its answer if it has one. */
export const make = (environment: Environment, state: RunState, output: unknown): Run => ({
  ...environment,
  agent: state.depth === 0 ? environment.agent : asTask(environment.agent),
  state: new State(state),
  next: nothing,
  records: [],
  states: [],
  events: [],
  failed: undefined,
  lock: undefined,
  output,
  cache: PromptCache.empty,
  restore: Effect.interruptible,
  isUsed: usedIds(state.input)
})

/** The agent of a task, which answers in words: the output schema describes the answer of the whole run. */
const asTask = (agent: AnyAgent): AnyAgent => {
  if (!agent.typed) return agent
  let task = tasks.get(agent)
  if (task === undefined) {
    tasks.set(agent, (task = { ...agent, output: Schema.String, typed: false, outputJsonSchema: undefined }))
  }
  return task
}

// One per agent, because decoders and grammars are kept by agent.
const tasks = new WeakMap<AnyAgent, AnyAgent>()

/** Drives a run to its end and returns its result. */
export const finish = (run: Run): Effect.Effect<RunResult<unknown>, DriveError | EndError> =>
  Effect.flatMap(drive(run), () => conclude(run))

/** The span of a run, from its start or resume to its end. A run that is refused at once has one, too. */
export const traced = <E>(
  { agent, model, provider, telemetry }: Environment,
  { depth, rootRunId, runId }: Pick<Beginning, "depth" | "rootRunId" | "runId">,
  whole: Effect.Effect<RunResult<unknown>, E>
): Effect.Effect<RunResult<unknown>, E> => {
  if (telemetry === undefined) return whole
  const { description, name } = agent
  const facts = { agent: name, description, model: model.id, provider: provider.name, runId, rootRunId, depth }
  return telemetry.run(whole, facts, ({ costUsd, turns, usage }) => ({ usage, turns, costUsd }))
}

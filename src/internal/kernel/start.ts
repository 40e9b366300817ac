/**
 * Starts new runs: stores a run, then drives it to its end or queues it for a worker.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Caller } from "../../Caller.ts"
import type { Content } from "../../Content.ts"
import { AgentConfigInvalid, type RunError } from "../../KernelError.ts"
import * as Messages from "../../Message.ts"
import type { Message } from "../../Message.ts"
import type { RunRecord, RunResult, RunState } from "../../RunState.ts"
import * as Fault from "../../kit/fault.ts"
import type { JsonObject } from "../../kit/json.ts"
import { spanOf } from "../../kit/traceparent.ts"
import { ownContext } from "../run/askHooks.ts"
import { drive } from "../loop/loop.ts"
import { conclude } from "../run/conclude.ts"
import { type DriveError, type EndError, type Environment, type Run, makeRun, now } from "../run/run.ts"
import { leased } from "../run/ownLease.ts"
import { advance } from "../state/advance.ts"
import { emitOffer } from "../../store-kit/Offers.ts"
import type { AppendError } from "../../store-kit/internal/storeGuard.ts"
import { extended } from "../words/messageFacts.ts"
import { offer } from "./queue.ts"
import * as TraceContext from "./traceContext.ts"

/** The identity and input of a new run. */
export interface Beginning {
  readonly runId: string
  readonly rootRunId: string
  readonly parentRunId: string | undefined
  readonly depth: number
  readonly taskId: string | undefined
  readonly caller: Caller | undefined
  readonly history: ReadonlyArray<Message>
  readonly input: ReadonlyArray<Content>
  readonly context: JsonObject
}

/** Returns the caller of a new run. Fails for one beyond its bounds. */
export const checkedCaller = (given: Caller | undefined): Effect.Effect<Caller | undefined, AgentConfigInvalid> =>
  given === undefined
    ? Effect.undefined
    : Effect.mapError(decodeCaller(given), (error) => {
        const { path, reason } = Fault.ofSchema(error)
        return new AgentConfigInvalid({ path: `caller${path.replaceAll("/", ".")}`, reason })
      })

const decodeCaller = Schema.decodeUnknownEffect(Caller)

/** Starts a run and drives it to its end. */
export const start = (environment: Environment, beginning: Beginning): Effect.Effect<RunResult<unknown>, RunError> =>
  traced(environment, beginning, Effect.flatMap(create(environment, beginning), finish))

/** Stores a new run and queues it. If queuing fails, workers find the run once it looks abandoned. */
export const submit = (environment: Environment, beginning: Beginning): Effect.Effect<string, AppendError> =>
  // A stored run is queued even while its submission is being interrupted.
  Effect.uninterruptible(
    Effect.flatMap(create(environment, beginning), ({ holder, state, store }) =>
      Effect.map(Effect.ignore(offer(store, state.runId, holder)), () => {
        emitOffer(store, state.runId)
        return state.runId
      })
    )
  )

/** Stores a new run without driving it. */
export const create = (environment: Environment, beginning: Beginning): Effect.Effect<Run, AppendError> =>
  Effect.withFiber((fiber) => {
    const { caller, depth, history, parentRunId, rootRunId, runId, taskId } = beginning
    const at = now(environment)
    // The spans of a child run are below those of its parent.
    const trace = depth > 0 ? undefined : TraceContext.current(fiber.context, environment.telemetry !== undefined)
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
      ...(environment.agent.version === undefined ? {} : { version: environment.agent.version }),
      parentRunId,
      ...(caller === undefined ? {} : { caller }),
      ...(trace === undefined ? {} : { trace }),
      messages: extended(history, [Messages.user(beginning.input)]),
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
        environment.live.publish?.(event, environment.agent.name)
        return makeRun(environment, state, undefined)
      })
    )
  })

/** Drives a run to its end and returns its result. */
export const finish = (run: Run): Effect.Effect<RunResult<unknown>, DriveError | EndError> =>
  Effect.flatMap(leased(run, drive(run)), conclude)

/** Wraps a run in a span, from its start or resume to its end. A run that is rejected has a span, too. */
export const traced = <A extends Pick<RunResult<unknown>, "usage" | "turns" | "costUsd">, E>(
  { agent, model, provider, telemetry }: Environment,
  {
    depth,
    rootRunId,
    runId,
    trace
  }: Pick<Beginning, "depth" | "rootRunId" | "runId"> & Partial<Pick<RunState, "trace">>,
  whole: Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  if (telemetry === undefined) return whole
  const { description, name } = agent
  const facts = {
    agent: name,
    description,
    model: model.id,
    provider: provider.name,
    runId,
    rootRunId,
    depth,
    startedBy: trace === undefined ? undefined : spanOf(trace)
  }
  return telemetry.run(whole, facts, ({ costUsd, turns, usage }) => ({ usage, turns, costUsd }))
}

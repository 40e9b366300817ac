/**
 * How a new run comes to be: it is stored, and then driven to its end, or offered to whoever runs it.
 *
 * A run that is taken up, and a task of another run, end in the same loop (resume.ts);
 * they differ in where their state comes from.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Content } from "../../Content.ts"
import type { KernelError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { RunRecord, RunResult, RunState } from "../../RunState.ts"
import { advance } from "../state/advance.ts"
import { usedIds } from "../words/callIds.ts"
import { emptyOutbox, patiently } from "./commit.ts"
import type { JsonObject } from "../base/json.ts"
import { conclude, drive } from "./loop.ts"
import { offer } from "./queue.ts"
import { type AnyAgent, type Ground, now, type Run } from "./run.ts"
import { ownContext } from "./askHooks.ts"

/** Who a new run is. */
export interface Birth {
  readonly runId: string
  readonly rootRunId: string
  readonly parentRunId: string | undefined
  readonly depth: number
  readonly taskId: string | undefined
  readonly history: ReadonlyArray<Message>
  readonly input: ReadonlyArray<Content>
  readonly context: JsonObject
}

/** Begins a run and drives it to its end. */
export const begin = (ground: Ground, birth: Birth): Effect.Effect<RunResult<unknown>, KernelError> =>
  traced(ground, birth, Effect.flatMap(born(ground, birth), finish))

/** Stores a new run and offers it to whoever takes it up. Where the store cannot do that, it is taken for left behind. */
export const submit = (ground: Ground, birth: Birth): Effect.Effect<string, KernelError> =>
  // What is stored is offered, even while its submission is being interrupted.
  Effect.uninterruptible(
    Effect.flatMap(born(ground, birth), ({ holder, state, store }) =>
      Effect.as(Effect.ignore(patiently(ground, state, offer(store, state.runId, holder))), state.runId)
    )
  )

/** A new run: it is stored before its first model call. */
export const born = Effect.fnUntraced(function* (ground: Ground, birth: Birth): Effect.fn.Return<Run, KernelError> {
  const { depth, history, parentRunId, rootRunId, runId, taskId } = birth
  const at = now(ground)
  const messages = [...history, Messages.user(birth.input)]
  const event = {
    type: "run_started" as const,
    runId,
    rootRunId,
    step: 0,
    depth,
    taskId,
    at,
    revision: 1,
    agent: ground.agent.name,
    parentRunId,
    messages,
    history: history.length,
    context: ownContext(birth.context)
  }
  const record: RunRecord = {
    runId,
    revision: 1,
    op: "phase",
    events: [event],
    delta: {},
    createdAt: at,
    workerId: ground.workerId
  }
  const state = advance(undefined, record)
  // What is stored is told, even while the run is being interrupted.
  yield* Effect.uninterruptible(
    Effect.map(patiently(ground, record, ground.store.create(record, state)), () => ground.tell?.(event))
  )
  return take(ground, state)
})

/** A run in this process, at a state. */
export const take = (ground: Ground, state: RunState): Run => ({
  ...ground,
  agent: state.depth === 0 ? ground.agent : asTask(ground.agent),
  state,
  lock: undefined,
  settled: false,
  changed: undefined,
  goesOn: false,
  output: undefined,
  raw: [],
  deferred: undefined,
  isUsed: usedIds(state.input),
  outbox: emptyOutbox()
})

/** The agent of a task. It answers in words: the output of the agent is what the whole is to come to, not each part. */
const asTask = (agent: AnyAgent): AnyAgent => {
  if (!agent.typed) return agent
  let task = tasks.get(agent)
  if (task === undefined) {
    tasks.set(agent, (task = { ...agent, output: Schema.String, typed: false, outputJsonSchema: undefined }))
  }
  return task
}

// One for each agent: what is made of an agent is kept with it.
const tasks = new WeakMap<AnyAgent, AnyAgent>()

/** Drives a run to its end. */
export const finish = (run: Run): Effect.Effect<RunResult<unknown>, KernelError> =>
  Effect.andThen(
    drive(run),
    Effect.suspend(() => conclude(run))
  )

/** A life of a run as telemetry sees it, also one that is refused at its beginning, or a task's. */
export const traced = (
  { agent, model, provider, telemetry }: Ground,
  { depth, rootRunId, runId }: Pick<Birth, "depth" | "rootRunId" | "runId">,
  whole: Effect.Effect<RunResult<unknown>, KernelError>
): Effect.Effect<RunResult<unknown>, KernelError> => {
  if (telemetry === undefined) return whole
  const { description, name } = agent
  const facts = { agent: name, description, model: model.id, provider: provider.name, runId, rootRunId, depth }
  return telemetry.run(whole, facts, ({ costUsd, turns, usage }) => ({ usage, turns, costUsd }))
}

/**
 * A run in this process, made of its state and of what it uses.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { RunState } from "../../RunState.ts"
import * as PromptCache from "../prompt/promptCache.ts"
import { State } from "../state/state.ts"
import { usedIds } from "../words/ids.ts"
import { nothing } from "./nextDelta.ts"
import type { AskedAgent, Environment, Run } from "./run.ts"

/** A run in this process at a state, with its answer if it has one. */
export const make = (environment: Environment, state: RunState, output: unknown): Run => ({
  ...environment,
  agent: state.taskId === undefined ? environment.agent : asTask(environment.agent),
  state: new State(state),
  next: nothing,
  records: [],
  events: [],
  published: state.revision,
  reply: undefined,
  failed: undefined,
  lock: undefined,
  output,
  cache: PromptCache.empty,
  dropped: "",
  restore: Effect.interruptible,
  isUsed: usedIds(state.input)
})

/** The agent of a task, which answers in words: the output schema describes the answer of the whole run. */
const asTask = (agent: AskedAgent): AskedAgent => {
  if (!agent.typed) return agent
  let task = tasks.get(agent)
  if (task === undefined) {
    tasks.set(agent, (task = { ...agent, output: Schema.String, typed: false, outputJsonSchema: undefined }))
  }
  return task
}

// One per agent, because decoders and grammars are kept by agent.
const tasks = new WeakMap<AskedAgent, AskedAgent>()

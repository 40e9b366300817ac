/**
 * Hands a conversation over to another agent of the team, which takes the following turns.
 *
 * A transfer is a call like any other. After its turn the change is recorded, and the loop of the other agent continues
 * from the same state.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Calls from "../../Call.ts"
import type { RunCancelled } from "../../KernelError.ts"
import type { DialectName } from "../../Dialect.ts"
import { isNamed } from "../agent/team.ts"
import { commonPrefix } from "../../kit/lists.ts"
import { promptLog, turnLog } from "../state/state.ts"
import { inDialect } from "../words/inDialect.ts"
import type { Model } from "../../Model.ts"
import { modelOf, parse } from "../../ModelRegistry.ts"
import { dialectOf } from "../run/members.ts"
import { record } from "../run/commit.ts"
import { failWith } from "../run/failure.ts"
import type { AnyAgent, Environment, MemberError, Run } from "../run/run.ts"
import type { FlushError } from "../../store-kit/internal/storeGuard.ts"

/** Records the hand-over that the last turn made, and returns whether there was one. Synchronous. */
export const handOver = (run: Run): boolean => {
  const { state } = run
  const turn = turnLog(state).last()
  if (turn === undefined || (state.handoff?.turn ?? 0) > turn.turn) return false
  const transfer = Calls.inOrder(turn.order, turn.completed).find(
    ({ error, kind, skipped }) => kind === "handoff" && error === undefined && skipped !== true
  )
  const agent = run.callables.get(transfer?.name ?? "")?.agent
  if (transfer === undefined || agent === undefined) return false
  const before = promptLog(state).array
  const messages = inDialect(before, earlierDialect(agent, run.provider.name), modelName(agent))
  const base = commonPrefix(before, messages)
  const prompt = { base, append: messages.slice(base) }
  record(run, { type: "agent_changed", from: run.agent.name, to: agent.name, callId: transfer.callId, prompt })
  return true
}

/**
 * Returns the dialect for earlier messages. An agent without callables gets earlier calls as text, because vendors
 * reject native calls of unknown tools.
 */
const earlierDialect = (agent: AnyAgent, provider: string): DialectName =>
  agent.skills === undefined && agent.agents.length + agent.handoffs.length === 0
    ? "blocks"
    : dialectOf(agent, ownModel(agent, provider), provider)

/** Returns the agent's model by its name alone, without the registry of the host. */
const ownModel = ({ model }: AnyAgent, provider: string): Model =>
  typeof model !== "string"
    ? model
    : Result.match(parse(model), {
        onSuccess: (named) => modelOf(named.provider, named.model),
        onFailure: () => modelOf(provider, model)
      })

const modelName = ({ model }: AnyAgent): string =>
  typeof model === "string" ? model.slice(model.indexOf("/") + 1) : model.id

/** Returns whether the run was handed over to another agent than the one this loop drives. */
export const isHandedOver = ({ agent, state }: Run): boolean =>
  state.handoff !== undefined && !isNamed(agent, state.handoff.agent) && state.status.type === "running"

/**
 * Returns the environment of the agent that a run was handed over to. If that agent cannot run, the run fails and can
 * be resumed.
 */
export const entered = (run: Run): Effect.Effect<Environment, MemberError | RunCancelled | FlushError> =>
  Effect.catch(memberOf(run, run.state), (error) => failWith(run, error))

/** Returns the environment in which a stored run continues: that of the agent it was handed over to. */
export const memberOf = (
  environment: Environment,
  { handoff }: Run["state"] | { readonly handoff: Run["state"]["handoff"] }
): Effect.Effect<Environment, MemberError> =>
  handoff === undefined || isNamed(environment.agent, handoff.agent)
    ? Effect.succeed(environment)
    : Effect.map(environment.member(handoff.agent), (member) => ({ ...environment, ...member }))

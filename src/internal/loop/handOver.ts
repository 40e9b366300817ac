/**
 * A conversation changes hands: the turns that follow belong to another agent of the team.
 *
 * The transfer is a call like any other. When its turn has ended, the change is recorded, and the loop of the other
 * agent continues from the same state.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Calls from "../../Call.ts"
import type { RunCancelled } from "../../KernelError.ts"
import type { DialectName } from "../../Dialect.ts"
import { commonPrefix } from "../base/lists.ts"
import { promptLog, turnLog } from "../state/state.ts"
import { inDialect } from "../words/inDialect.ts"
import type { Model } from "../../Model.ts"
import { modelOf, parse } from "../../ModelRegistry.ts"
import { dialectOf } from "../run/members.ts"
import { record } from "./commit.ts"
import { failWith } from "./failure.ts"
import type { AnyAgent, Environment, MemberError, Run } from "../run/run.ts"
import type { FlushError } from "../store/storeGuard.ts"

/** Records that the last turn handed the conversation over. Returns false when it did not. Synchronous. */
export const handOver = (run: Run): boolean => {
  const { state } = run
  const turn = turnLog(state).last()
  if (turn === undefined || (state.handed?.turn ?? 0) > turn.turn) return false
  const transfer = Calls.inOrder(turn.order, turn.completed).find(
    ({ error, kind, skipped }) => kind === "handoff" && error === undefined && skipped !== true
  )
  const agent = run.callables.get(transfer?.name ?? "")?.agent
  if (transfer === undefined || agent === undefined) return false
  const before = promptLog(state).array
  const messages = inDialect(before, spokenBy(agent, run.provider.name), modelName(agent))
  const base = commonPrefix(before, messages)
  const prompt = { base, append: messages.slice(base) }
  record(run, { type: "agent_changed", from: run.agent.name, to: agent.name, callId: transfer.callId, prompt })
  return true
}

/** An agent without anything to call reads earlier calls as text: vendors refuse native calls of tools that are not there. */
const spokenBy = (agent: AnyAgent, provider: string): DialectName =>
  agent.skills === undefined && agent.agents.length + agent.handoffs.length === 0
    ? "blocks"
    : dialectOf(agent, ownModel(agent, provider), provider)

/** The model as far as its name says: the registry of the host is not asked here. */
const ownModel = ({ model }: AnyAgent, provider: string): Model =>
  typeof model !== "string"
    ? model
    : Result.match(parse(model), {
        onSuccess: (named) => modelOf(named.provider, named.model),
        onFailure: () => modelOf(provider, model)
      })

const modelName = ({ model }: AnyAgent): string =>
  typeof model === "string" ? model.slice(model.indexOf("/") + 1) : model.id

/** Does the run belong to another agent than the one that this loop runs for? */
export const isHandedOver = ({ agent, state }: Run): boolean =>
  state.handed !== undefined && state.handed.agent !== agent.name && state.status.type === "running"

/** What the run uses under the agent it was handed over to. A run whose agent cannot run fails, and can be resumed. */
export const entered = (run: Run): Effect.Effect<Environment, MemberError | RunCancelled | FlushError> =>
  Effect.catch(memberOf(run, run.state), (error) => failWith(run, error))

/** The environment in which a stored run continues: that of the agent it was handed over to. */
export const memberOf = (
  environment: Environment,
  { handed }: Run["state"] | { readonly handed: Run["state"]["handed"] }
): Effect.Effect<Environment, MemberError> =>
  handed === undefined || handed.agent === environment.agent.name
    ? Effect.succeed(environment)
    : Effect.map(environment.member(handed.agent), (member) => ({ ...environment, ...member }))

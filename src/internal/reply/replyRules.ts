/**
 * The rules by which a reply is read: what its agent may do, and what its turn knows.
 */

import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type { Limits } from "../../Limits.ts"
import type { JsonObject } from "../base/json.ts"
import { turnLog } from "../state/state.ts"
import { readOutput } from "../run/conclude.ts"
import type { CallKind } from "../../Call.ts"
import { agentNames, canAct, isProtocol, parametersOf, visibleProtocols } from "./permissions.ts"
import { type Run, openTurn } from "../run/run.ts"
import { isSearch } from "./skillOffer.ts"

/** Everything the meaning of a reply depends on besides the reply. */
export interface ReplyRules {
  readonly turnId: string
  readonly depth: number
  readonly native: boolean
  /** Is prose without blocks a fault? */
  readonly correctsProse: boolean
  /** Is an empty reply an answer? */
  readonly takesEmpty: boolean
  readonly limits: Limits
  readonly isProtocol: (type: string) => boolean
  /** The kind of a call by its name, where it is no protocol. */
  readonly kindOf: (name: string) => CallKind
  /** The agents that tasks of a plan may name. */
  readonly agents: ReadonlyArray<string>
  /** Did an earlier call of the run have this id? */
  readonly isUsed: (id: string) => boolean
  /** Reads the text of a command block as the parameters that its skill declares. */
  readonly parameters: (skill: string, text: string) => JsonObject
  /** Decodes an answer by the agent's output schema. */
  readonly readOutput: (text: string) => Result.Result<unknown, string>
}

/** The rules of the open turn. */
export const replyRules = (run: Run): Effect.Effect<ReplyRules> =>
  run.agent.skills === undefined && run.callables.size === 0
    ? Effect.map(visibleProtocols(run), (protocols) => new RunRules(run, canAct(run, protocols)))
    : Effect.succeed(new RunRules(run, true))

class RunRules implements ReplyRules {
  readonly turnId: string
  readonly depth: number
  readonly native: boolean
  readonly takesEmpty: boolean
  readonly correctsProse: boolean
  readonly limits: Limits
  readonly #run: Run

  constructor(run: Run, acts: boolean) {
    const { agent, limits, state } = run
    const { dialect, turnId } = openTurn(run)
    this.#run = run
    this.turnId = turnId
    this.depth = state.depth
    this.native = dialect === "tools"
    // An agent that cannot act answers with whatever it says, unless the agent asks for a correction.
    this.takesEmpty = dialect === "blocks" && agent.prose === "auto" && !acts
    this.correctsProse = agent.prose === "corrective" || (agent.prose === "auto" && acts)
    this.limits = limits
  }

  get agents(): ReadonlyArray<string> {
    return agentNames(this.#run)
  }

  isProtocol(type: string): boolean {
    return isProtocol(this.#run, type)
  }

  kindOf(name: string): CallKind {
    const isBuiltin = name.startsWith("/") || (this.native && isSearch(this.#run, name))
    return isBuiltin ? "builtin" : (this.#run.callables.get(name)?.kind ?? "skill")
  }

  isUsed(id: string): boolean {
    return this.#run.isUsed(id, turnLog(this.#run.state))
  }

  parameters(skill: string, text: string): JsonObject {
    return parametersOf(this.#run, skill, text)
  }

  readOutput(text: string): Result.Result<unknown, string> {
    return readOutput(this.#run.agent, text)
  }
}

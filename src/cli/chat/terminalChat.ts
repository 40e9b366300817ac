/**
 * A conversation that outlives its process: every message is a stored run.
 */

import * as Effect from "effect/Effect"
import * as Agent from "../../Agent.ts"
import * as AgentFile from "../../file/AgentFile.ts"
import { instructions } from "../commands/flags.ts"
import { fromError, usage } from "../exit.ts"
import * as KernelLayer from "../kernelLayer.ts"
import * as Models from "../models.ts"
import * as Store from "../storeFlag.ts"
import { excerpt } from "../terminalText.ts"
import * as ChatLoop from "./chatLoop.ts"
import * as Session from "./chatSession.ts"

/** With whom to chat, and where it is stored. What is undefined is up to the agent. */
export interface Options extends ChatLoop.Options {
  /** The file of an agent. */
  readonly agent?: string | undefined
  readonly source: Models.ModelSource | undefined
  readonly instructions?: string | undefined
  readonly skills: KernelLayer.Skills
  readonly maxSteps?: number | undefined
  readonly dialect?: Agent.DialectName | undefined
  /** A store, or a SQLite file. */
  readonly store: string
}

/** Chats until the input ends. */
export const chat = Effect.fnUntraced(function* (options: Options) {
  if (!Session.isName(options.session)) return yield* usage(Session.nameRule)
  const file = options.agent === undefined ? undefined : yield* readAgent(options.agent)
  const { model, provider } = yield* modelOf(options, file)
  const store = yield* Store.openOrCreate(Store.fromPath(options.store))
  const base = file ?? Agent.make({ name: "chat", instructions, model, maxSteps: 20, skills: "all" })
  const agent: Agent.Agent<unknown> = {
    ...base,
    instructions: options.instructions ?? base.instructions,
    model,
    maxSteps: options.maxSteps ?? base.maxSteps,
    dialect: options.dialect ?? base.dialect,
    // A reply without blocks is an answer.
    prose: base.prose === "auto" ? "final" : base.prose,
    skills: options.skills === "none" ? undefined : base.skills
  }
  const registries = KernelLayer.registriesOf(options.skills)
  const kernel = KernelLayer.make({ provider, registries, store, asks: !options.yes })
  yield* ChatLoop.chatLoop(agent, options).pipe(Effect.mapError(fromError), Effect.provide(kernel))
})

const readAgent = (file: string) => Effect.mapError(AgentFile.load(file), (error) => usage(excerpt(error.message, 400)))

/** Returns the model of the command line, or else that of the agent. */
const modelOf = Effect.fnUntraced(function* ({ source }: Options, agent: Agent.Agent<unknown> | undefined) {
  if (source !== undefined) return yield* Models.open(source)
  if (agent === undefined) return yield* usage("there is no model to chat with")
  if (typeof agent.model === "string") return yield* Models.resolve(agent.model)
  const { id, provider } = agent.model
  if (provider === undefined) return yield* usage(`the model ${excerpt(id, 80)} of the agent names no provider`)
  // The file knows its model better than the registry.
  return { ...(yield* Models.resolve(`${provider}/${id}`)), model: agent.model }
})

/**
 * A conversation that outlives its process: every message is a stored run.
 */

import * as Effect from "effect/Effect"
import * as Agent from "../../Agent.ts"
import * as AgentFile from "../../file/AgentFile.ts"
import type { ChatFlags } from "../commands/chatCommand.ts"
import { instructions, skillsOf, sourceOf } from "../commands/flags.ts"
import { asFailure, asUsage, usage } from "../exit.ts"
import * as KernelLayer from "../kernelLayer.ts"
import * as Models from "../models.ts"
import * as Store from "../storeFlag.ts"
import { excerpt } from "../terminalText.ts"
import { chatLoop } from "./chatLoop.ts"
import * as Session from "./chatSession.ts"

/** Chats until the input ends. Settings that are not given are up to the agent. */
export const chat = Effect.fnUntraced(function* (input: ChatFlags) {
  if (!Session.isName(input.session)) return yield* usage(Session.nameRule)
  const file = yield* input.agent === undefined
    ? Effect.undefined
    : Effect.mapError(AgentFile.load(input.agent), (error) => asUsage(error))
  const skills = yield* skillsOf(input)
  const { model, provider } = yield* modelOf(input, file)
  const store = yield* Store.openOrCreate(Store.fromPath(input.store))
  const base = file ?? Agent.make({ name: "chat", instructions, model, maxSteps: 20, skills: "all" })
  const agent: Agent.Agent<unknown> = {
    ...base,
    instructions: input.system ?? base.instructions,
    model,
    maxSteps: input.maxSteps ?? base.maxSteps,
    dialect: input.dialect ?? base.dialect,
    // A reply without blocks is an answer.
    prose: base.prose === "auto" ? "final" : base.prose,
    skills: skills === "none" ? undefined : base.skills
  }
  const kernel = KernelLayer.make({ provider, registries: KernelLayer.registriesOf(skills), store, asks: !input.yes })
  yield* chatLoop(agent, input).pipe(Effect.mapError(asFailure), Effect.provide(kernel))
})

/** Returns the model of the command line, or else that of the agent. */
const modelOf = Effect.fnUntraced(function* (input: ChatFlags, agent: Agent.Agent<unknown> | undefined) {
  const source = sourceOf(input)
  if (source !== undefined) return yield* Models.open(source)
  if (agent === undefined || input.model !== undefined) {
    return yield* usage(
      "with whom to chat? Give --model <provider>/<model>, or --script <file> for a scripted model, or --agent <file>"
    )
  }
  if (typeof agent.model === "string") return yield* Models.resolve(agent.model)
  const { id, provider } = agent.model
  if (provider === undefined) return yield* usage(`the model ${excerpt(id, 80)} of the agent names no provider`)
  // The file knows its model better than the registry.
  return { ...(yield* Models.resolve(`${provider}/${id}`)), model: agent.model }
})

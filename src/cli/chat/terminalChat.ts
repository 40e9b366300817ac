/**
 * A conversation on the terminal that survives its process.
 *
 * Every message is a run in a store. A chat that was stopped, or killed,
 * goes on where it was: questions that were open are asked again, calls that
 * were cut off are decided about, an answer that was due is given.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Agent from "../../Agent.ts"
import * as AgentFile from "../../file/AgentFile.ts"
import * as Kernel from "../../Kernel.ts"
import type { StoreError } from "../../KernelError.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import { Provider } from "../../Provider.ts"
import type { RunStore } from "../../RunStore.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import { careful } from "../askBeforeWrite.ts"
import * as Script from "./scriptedChat.ts"
import * as Session from "./chatSession.ts"
import * as Talk from "./talk.ts"
import { instructions } from "../commands/flags.ts"
import { Codes, CommandFailed, usage } from "../exit.ts"
import { type Options as LiveOptions, resolve, skillsOf } from "../live.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"

/** Who talks, and where it is kept. */
export interface Options extends Pick<LiveOptions, "skills">, Talk.Options {
  /** The file of an agent to talk with, under what else is told here. */
  readonly agent?: string | undefined
  readonly instructions?: string | undefined
  readonly maxSteps?: number | undefined
  readonly dialect?: Agent.DialectName | undefined
  /** Where it is kept: a store, or the SQLite file of one. */
  readonly store: string
  /** A model of the network, or the file of a scripted one; the agent's own model where nothing is said. */
  readonly speaker: { readonly model: string } | { readonly script: string } | undefined
}

/** Talks until nobody has anything more to say. */
export const chat = Effect.fnUntraced(function* (options: Options) {
  if (!Session.isName(options.session)) {
    return yield* usage(Session.nameRule)
  }
  const told = options.agent === undefined ? undefined : yield* readAgent(options.agent)
  const { model, provider } = yield* speakerOf(options, told)
  const place = Store.ofPath(options.store)
  const store = yield* Store.open(place, { exists: false })
  const base: Talker = told ?? Agent.make({ name: "chat", instructions, model, maxSteps: 20, skills: "all" })
  const agent: Talker = {
    ...base,
    instructions: options.instructions ?? base.instructions,
    model,
    maxSteps: options.maxSteps ?? base.maxSteps,
    dialect: options.dialect ?? base.dialect,
    // In a conversation plain talk is an answer.
    prose: base.prose === "auto" ? "final" : base.prose,
    skills: options.skills === "none" ? undefined : base.skills
  }
  const ground = Kernel.layer.pipe(
    Layer.provide([
      Layer.orDie(ProtocolRegistry.layer()),
      yield* Store.media(place),
      Layer.succeed(Provider, provider),
      options.yes ? Layer.empty : careful
    ]),
    Layer.provideMerge(Layer.merge(skillsOf(options.skills), store)),
    Layer.catch((error) =>
      Layer.effectContext<Ground, CommandFailed, never>(Effect.fail(usage(Text.excerpt(error.message, 400))))
    )
  )
  yield* Talk.talk(agent, options).pipe(
    Effect.catchTag("StoreError", (error: StoreError) =>
      Effect.fail(new CommandFailed({ code: Codes.failed, reason: Text.excerpt(error.message, 400), tag: error._tag }))
    ),
    Effect.provide(ground)
  )
})

type Talker = Agent.Agent<unknown>

const readAgent = (file: string) =>
  Effect.mapError(AgentFile.load(file), (error) => usage(Text.excerpt(error.message, 400)))

/** Who speaks: what was said on the command line, or else the agent's own model. */
const speakerOf = Effect.fnUntraced(function* ({ speaker }: Options, agent: Talker | undefined) {
  if (speaker !== undefined && "script" in speaker) {
    return { model: "scripted", provider: yield* Script.provider(speaker.script) }
  }
  if (speaker !== undefined) return yield* resolve(speaker.model)
  if (agent === undefined) return yield* usage("there is no model to talk with")
  if (typeof agent.model === "string") return yield* resolve(agent.model)
  const { id, provider } = agent.model
  if (provider === undefined) return yield* usage(`the model ${Text.excerpt(id, 80)} of the agent names no provider`)
  // What the file says of its model goes before what is known of it.
  return { ...(yield* resolve(`${provider}/${id}`)), model: agent.model }
})

type Ground = Kernel.Kernel | RunStore | SkillRegistry

/**
 * Who runs a stored run: the agent, its model and its skills, on a store.
 *
 * A run names its agent and nothing else of it. Every process that takes it up
 * is told the same on its command line.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Agent from "../../Agent.ts"
import type { Call } from "../../Call.ts"
import * as Kernel from "../../Kernel.ts"
import type { KernelError } from "../../KernelError.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import { Provider } from "../../Provider.ts"
import { RunStore } from "../../RunStore.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import { careful } from "../askBeforeWrite.ts"
import * as Script from "../chat/scriptedChat.ts"
import * as Session from "../chat/chatSession.ts"
import { Codes, CommandFailed, usage } from "../exit.ts"
import { type Options as LiveOptions, resolve, skillsOf } from "../live.ts"
import * as Store from "../storeFlag.ts"
import { excerpt } from "../terminalText.ts"

/** An agent as the command line tells it. */
export interface Actor extends Pick<LiveOptions, "instructions" | "maxSteps" | "dialect" | "skills"> {
  /** A model of the network, the file of a scripted one, or nobody: a replay asks none. */
  readonly speaker: { readonly model: string } | { readonly script: string } | { readonly nobody: string }
  /** Allow every call without asking. */
  readonly yes: boolean
}

/**
 * The agent under a name, the model it speaks with, and all they need: the runs of a store, and their media.
 */
export const make = Effect.fnUntraced(function* (actor: Actor, store: Store.Store, text: string) {
  const { model, provider } = yield* speakerOf(actor.speaker)
  const agent = (name: string) =>
    Agent.make({
      name,
      instructions: actor.instructions,
      model,
      maxSteps: actor.maxSteps,
      dialect: actor.dialect,
      ...(actor.skills === "none" ? {} : { skills: "all" as const })
    })
  const skills = Layer.catch(skillsOf(actor.skills), (error) =>
    Layer.effectContext<SkillRegistry, CommandFailed, never>(Effect.fail(usage(excerpt(error.message, 400))))
  )
  const ground = Kernel.layer.pipe(
    Layer.provide([
      Layer.orDie(ProtocolRegistry.layer()),
      yield* Store.media(text),
      Layer.succeed(Provider, provider),
      actor.yes ? Layer.empty : careful
    ]),
    Layer.provideMerge(Layer.merge(skills, store))
  )
  return { agent, ground }
})

/**
 * The skill of a call that a person allowed, where it is not here: what was allowed is not spent on a call that cannot
 * run. None is missed where the agent is to go on without skills, or where the run went on since the revision.
 */
export const missing = Effect.fnUntraced(function* (
  { skills }: Pick<Actor, "skills">,
  runId: string,
  revision?: number | undefined
) {
  if (skills === "none") return undefined
  const registry = yield* SkillRegistry
  const state = Option.getOrUndefined(yield* RunStore.use((runs) => runs.load(runId)))
  if (state === undefined || (revision !== undefined && revision !== state.revision)) return undefined
  const calls = yield* Session.allowed(state)
  const isMissing = ({ kind, name }: Call) => kind === "skill" && Option.isNone(registry.find(name ?? ""))
  return calls.find(isMissing)?.name ?? undefined
})

/** Says that a skill is missing. */
export const notHere = (name: string): string =>
  `the skill '${excerpt(name, 80)}' that was allowed is not here: --skills-from names its folder, --no-skills goes on without it`

/** What went wrong, as the line a command ends with. */
export const failed = (error: KernelError | CommandFailed): CommandFailed =>
  error._tag === "CommandFailed"
    ? error
    : new CommandFailed({
        code: error._tag === "RunNotFound" || error._tag === "ApprovalNotFound" ? Codes.usage : Codes.failed,
        reason: excerpt(error.message, 400),
        tag: error._tag
      })

// ---------------------------------------------------------------- helpers

const speakerOf = Effect.fnUntraced(function* (speaker: Actor["speaker"]) {
  if ("nobody" in speaker) return { model: speaker.nobody, provider: Script.make([]) }
  return "model" in speaker
    ? yield* resolve(speaker.model)
    : { model: "scripted", provider: yield* Script.provider(speaker.script) }
})

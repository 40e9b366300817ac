/**
 * A conversation that outlives its process: every message is a stored run.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Agent from "../../Agent.ts"
import * as CliAgent from "../cliAgent.ts"
import type { ChatFlags } from "../commands/chatFlags.ts"
import { asFailure, usage } from "../exit.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import { chatLoop } from "./chatLoop.ts"
import * as Session from "./chatSession.ts"

/** Chats until the input ends. Omitted settings are those of the last message. */
export const chat = Effect.fnUntraced(function* (input: ChatFlags) {
  if (!Session.isName(input.session)) return yield* usage(Session.nameRule)
  const newer = yield* Settings.ofFlags(input)
  const settings = Settings.over(Settings.ofRun(yield* lastOf(input)), newer)
  const store = yield* Store.openNamed(input)
  const { agent, kernel, rules } = yield* CliAgent.make(settings, store, { name: "chat", maxSteps: 20 })
  const base = agent()
  const chatting: Agent.Agent<unknown> = {
    ...base,
    // A reply without blocks is an answer.
    prose: base.prose === "auto" ? "final" : base.prose
  }
  yield* CliAgent.programs(settings).pipe(
    Effect.flatMap((withPrograms) => chatLoop(withPrograms(chatting), input, settings, rules)),
    Effect.mapError(asFailure),
    Effect.scoped,
    Effect.provide(kernel)
  )
})

/** Returns the last message of the conversation, if it has begun. */
const lastOf = Effect.fnUntraced(function* ({ session, store }: ChatFlags) {
  const existing = yield* Effect.option(Store.openExisting(store))
  if (Option.isNone(existing)) return undefined
  return yield* Session.last(session).pipe(Effect.mapError(asFailure), Effect.provide(existing.value.runs))
})

/** Serves an agent to an editor. */

import * as Effect from "effect/Effect"
import * as AcpServe from "../../acp/AcpServe.ts"
import * as CliAgent from "../cliAgent.ts"
import type { AcpFlags } from "../commands/acpFlags.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"

/** Serves until the editor leaves. */
export const serve = Effect.fnUntraced(function* (input: AcpFlags) {
  const settings = yield* Settings.ofFlags(input)
  const store = yield* Store.builtOf(yield* Store.openOrCreate(input.store))
  const { agent, kernel } = yield* CliAgent.make(settings, store, { maxSteps: 50 })
  const base = agent()
  // A reply without blocks is an answer.
  const chatting = { ...base, prose: base.prose === "auto" ? ("final" as const) : base.prose }
  yield* AcpServe.stdio({ agent: chatting, layer: () => kernel }).pipe(Effect.provide(store.runs))
}, Effect.scoped)

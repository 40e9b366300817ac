/**
 * Serves the studio on this machine until the process ends.
 */

import * as Effect from "effect/Effect"
import type * as CliAgent from "../cliAgent.ts"
import type { StudioFlags } from "../commands/studioFlags.ts"
import * as Recordings from "../demo/recordings.ts"
import * as Models from "../models.ts"
import { replay } from "../replayModel.ts"
import { usage } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import { openBrowser } from "./browser.ts"
import { prepare, serveChat, serveStudio } from "./serveStudio.ts"

/** Prints the address of the studio, and serves it. */
export const open = Effect.fnUntraced(function* (input: StudioFlags) {
  const screen = yield* Screen
  const opened = input.store === undefined ? Store.memory : yield* Store.openNamed({ ...input, store: input.store })
  const store = yield* Store.builtOf(opened)
  const settings = yield* Settings.ofFlags(input)
  const isRunning = (settings.model ?? settings.script ?? settings.agent) !== undefined
  const { endUser, evaluations, readOnly, scenarios } = input
  if (endUser && (!isRunning || readOnly)) {
    return yield* usage("--end-user serves a chat: it needs --model, --agent or --script, and cannot be read-only")
  }
  if (input.playModel.length > 0 && (settings.script !== undefined || !isRunning)) {
    return yield* usage("--play-model asks models: it needs --model or --agent, without --script")
  }
  const played = yield* Effect.forEach(input.playModel, (name) => Models.resolve(name))
  const usual: CliAgent.Usual = isRunning ? { names: input.agentName } : { unused: "" }
  const { agents, services } = yield* prepare(settings, store, usual)
  const prepared = { agents: isRunning ? agents : [], services }
  const url = yield* endUser
    ? serveChat(input.port, prepared, evaluations)
    : serveStudio(input.port, prepared, { evaluations, readOnly, scenarios, models: played.map(({ model }) => model) })
  screen.out(`${input.json ? Text.json({ url }) : url}\n`)
  if (input.open) yield* openBrowser(url)
  if (input.store === undefined && !endUser) yield* Effect.forkScoped(play(store))
  return yield* Effect.never
}, Effect.scoped)

/** Plays the recorded conversation into a store. The page shows it, so the terminal stays quiet. */
const play = Effect.fnUntraced(function* (store: Store.Store) {
  const recording = yield* Recordings.open(Recordings.standard, ".")
  const quiet = { out: () => {}, progress: () => {} }
  const silent = Effect.updateService(Screen, (screen) => ({ ...screen, ...quiet }))
  yield* silent(replay(recording, { form: "quiet", color: false, opened: store }))
})

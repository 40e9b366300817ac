/**
 * Serves the studio on this machine until the process ends.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import { existsSync } from "node:fs"
import type { Runnable } from "../../RunWorker.ts"
import * as Studio from "../../studio/Studio.ts"
import * as CliAgent from "../cliAgent.ts"
import { defaultReports } from "../commands/evalFlags.ts"
import { defaultLog as defaultScenarios } from "../commands/scenarioFlags.ts"
import type { StudioFlags } from "../commands/studioFlags.ts"
import * as Recordings from "../demo/recordings.ts"
import { usage } from "../exit.ts"
import { replay } from "../replayModel.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import { openBrowser } from "./browser.ts"
import { listening, originOf } from "./studioPort.ts"

/** Prints the address of the studio, and serves it. */
export const open = Effect.fnUntraced(function* (input: StudioFlags) {
  const screen = yield* Screen
  return yield* Effect.gen(function* () {
    const { readOnly } = input
    const opened = input.store === undefined ? Store.memory : yield* Store.openOrCreate(input.store)
    const store = yield* Store.builtOf(opened)
    const settings = yield* Settings.ofFlags(input)
    const isRunning = (settings.model ?? settings.script ?? settings.agent) !== undefined
    const usual = isRunning ? { names: input.agentName } : { unused: "" }
    const { agents: running, kernel } = yield* CliAgent.make(settings, store, usual)
    const scenarios = input.scenarios ?? (existsSync(defaultScenarios) ? defaultScenarios : undefined)
    const { evaluations = defaultReports } = input
    const routes = Effect.map(CliAgent.programs(settings), (withPrograms) => {
      const agents = isRunning ? running.flatMap((agent) => inBothDialects(withPrograms(agent))) : []
      return Studio.layer({ agents, readOnly, scenarios, evaluations })
    }).pipe(Layer.unwrap, Layer.provide(Layer.merge(kernel, store.media)))
    const server = yield* listening(input.port)
    const served = HttpRouter.serve(routes, {
      disableLogger: true,
      disableListenLog: true,
      routerConfig: { maxParamLength: 1_024 }
    }).pipe(Layer.provide(Layer.succeedContext(server)))
    const context = yield* Effect.mapError(Layer.build(served), (error) => usage(error.message))
    const url = Studio.urlOf(Context.get(context, Studio.Studio), originOf(server))
    screen.out(`${input.json ? Text.json({ url }) : url}\n`)
    if (input.open) yield* openBrowser(url)
    if (input.store === undefined) yield* Effect.forkScoped(play(store))
    return yield* Effect.never
  }).pipe(Effect.scoped)
})

/** Returns the agent in both dialects, which the chat offers as a setting. */
const inBothDialects = <A extends Runnable<unknown>>(agent: A): ReadonlyArray<A> => [
  agent,
  ...Studio.variants(agent, { dialects: ["blocks", "tools"] })
]

/** Plays the recorded conversation into a store. The page shows it, so the terminal stays quiet. */
const play = Effect.fnUntraced(function* (store: Store.Store) {
  const recording = yield* Recordings.open(Recordings.standard, ".")
  const quiet = { out: () => {}, progress: () => {} }
  const silent = Effect.updateService(Screen, (screen) => ({ ...screen, ...quiet }))
  yield* silent(replay(recording, { form: "quiet", color: false, opened: store }))
})

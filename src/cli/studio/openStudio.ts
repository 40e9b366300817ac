/**
 * Serves the studio on this machine until the process ends.
 */

import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import { existsSync } from "node:fs"
import { createServer } from "node:http"
import { errorCode } from "../../kit/failedRequest.ts"
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

/** Prints the address of the studio, and serves it. */
export const open = Effect.fnUntraced(function* (input: StudioFlags) {
  const screen = yield* Screen
  return yield* Effect.gen(function* () {
    const { port = 0, readOnly } = input
    const opened = input.store === undefined ? Store.memory : yield* Store.openOrCreate(input.store)
    const store = yield* Store.builtOf(opened)
    const settings = yield* Settings.ofFlags(input)
    const isRunning = (settings.model ?? settings.script ?? settings.agent) !== undefined
    const { agent, kernel } = yield* CliAgent.make(settings, store, isRunning ? {} : { unused: "" })
    const names = input.agentName.length === 0 ? [agent().name] : input.agentName
    const scenarios = input.scenarios ?? (existsSync(defaultScenarios) ? defaultScenarios : undefined)
    const { evaluations = defaultReports } = input
    const routes = Effect.map(CliAgent.programs(settings), (withPrograms) => {
      const agents = isRunning ? names.flatMap((name) => inBothDialects(withPrograms(agent(name)))) : []
      return Studio.layer({ agents, readOnly, scenarios, evaluations })
    }).pipe(Layer.unwrap, Layer.provide(Layer.merge(kernel, store.media)))
    const server = HttpRouter.serve(routes, {
      disableLogger: true,
      disableListenLog: true,
      routerConfig: { maxParamLength: 1_024 }
    }).pipe(Layer.provideMerge(NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })))
    const context = yield* Effect.mapError(Layer.build(server), (error) =>
      error._tag === "ServeError"
        ? usage(`cannot listen on port ${port} (${errorCode(error) ?? "refused"})`)
        : usage(error.message)
    )
    const { address } = Context.get(context, HttpServer.HttpServer)
    const origin = `http://127.0.0.1:${"port" in address ? address.port : port}`
    const url = Studio.urlOf(Context.get(context, Studio.Studio), origin)
    screen.out(`${input.json ? Text.json({ url }) : url}\n`)
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

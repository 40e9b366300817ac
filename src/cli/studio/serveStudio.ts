/** Serves the studio of agents, or their chat for end users, on this machine. */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import { existsSync } from "node:fs"
import type { Runnable } from "../../RunWorker.ts"
import * as ChatPage from "../../studio/ChatPage.ts"
import * as Studio from "../../studio/Studio.ts"
import * as CliAgent from "../cliAgent.ts"
import { defaultReports } from "../commands/evalFlags.ts"
import { defaultLog as defaultScenarios } from "../commands/scenarioFlags.ts"
import { usage } from "../exit.ts"
import type * as Settings from "../settings.ts"
import type * as Store from "../storeFlag.ts"
import { listening, originOf } from "./studioPort.ts"

/** Agents with their kernel, ready to be served until the scope closes. */
export const prepare = Effect.fnUntraced(function* (
  settings: Settings.Settings,
  store: Store.Store,
  usual: CliAgent.Usual
) {
  const { agents, kernel } = yield* CliAgent.make(settings, store, usual)
  const services = yield* Layer.build(Layer.merge(kernel, store.media))
  const withPrograms = yield* Effect.provideContext(CliAgent.programs(settings), services)
  return { agents: agents.map(withPrograms), services: Layer.succeedContext(services) }
})

type Prepared = Effect.Success<ReturnType<typeof prepare>>

/** Serves the studio until the scope closes, and returns its address. The chat offers each agent in both dialects. */
export const serveStudio = Effect.fnUntraced(function* (
  port: number | undefined,
  { agents, services }: Prepared,
  { evaluations = defaultReports, scenarios, ...options }: Studio.PageOptions
) {
  const server = yield* listening(port)
  const routes = Studio.layer({
    ...options,
    evaluations,
    scenarios: scenarios ?? (existsSync(defaultScenarios) ? defaultScenarios : undefined),
    agents: agents.flatMap(inBothDialects)
  })
  const served = HttpRouter.serve(routes, serving).pipe(
    Layer.provide(Layer.merge(services, Layer.succeedContext(server)))
  )
  const context = yield* Effect.mapError(Layer.build(served), (error) => usage(error.message))
  return Studio.urlOf(Context.get(context, Studio.Studio), originOf(server))
})

/** Serves the chat for end users until the scope closes, and returns its address. */
export const serveChat = Effect.fnUntraced(function* (
  port: number | undefined,
  { agents, services }: Prepared,
  evaluations = defaultReports
) {
  const server = yield* listening(port)
  const served = HttpRouter.serve(ChatPage.layer({ agents, evaluations }), serving).pipe(
    Layer.provide(Layer.merge(services, Layer.succeedContext(server)))
  )
  yield* Effect.mapError(Layer.build(served), (error) => usage(error.message))
  return `${originOf(server)}/chat`
})

const serving = { disableLogger: true, disableListenLog: true, routerConfig: { maxParamLength: 1_024 } }

const inBothDialects = <A extends Runnable<unknown>>(agent: A): ReadonlyArray<A> => [
  agent,
  ...Studio.variants(agent, { dialects: ["blocks", "tools"] })
]

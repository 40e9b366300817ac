/**
 * The studio: a page that shows runs, answers their questions, forks them and talks to agents.
 *
 * `layer` mounts it in any Effect server, together with the routes of the HTTP door that the page uses. The page draws
 * the state of a run at a revision, folded from the journal in the browser; the server keeps no second model of a run.
 * The page sends requests only to its own server.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Access from "../http/Access.ts"
import * as HttpKernel from "../http/HttpKernel.ts"
import type * as ServedRuns from "../http/ServedRuns.ts"
import type { Kernel } from "../Kernel.ts"
import type { ConfigInvalid } from "../KernelError.ts"
import type { McpHubShape } from "../mcp/McpHub.ts"
import type { MediaStore } from "../MediaStore.ts"
import type { Model } from "../Model.ts"
import { modelOf } from "../ModelRegistry.ts"
import type { RunStore } from "../RunStore.ts"
import type * as RunWorker from "../RunWorker.ts"
import * as DataRoutes from "./internal/dataRoutes.ts"
import * as PageRoutes from "./internal/pageRoutes.ts"
import * as Secrets from "./internal/studioAccess.ts"

/**
 * Options of the page.
 *
 * @category models
 * @since 0.1.0
 */
export interface PageOptions extends Access.Options {
  /** The path prefix of the page and its data. Default: `/`. */
  readonly path?: `/${string}` | undefined
  /** The secret in the address of the page. Default: 256 random bits, new at each start. */
  readonly token?: Redacted.Redacted | undefined
  /** Forbids starting, answering, cancelling and forking runs. Default: false. */
  readonly readOnly?: boolean | undefined
  /** The folder in which `kernai scenario matrix` writes its reports. Default: the page shows no scenarios. */
  readonly scenarios?: string | undefined
  /**
   * The folder in which `kernai eval` writes its reports, and the page data sets and scores. Default: the page shows no
   * evaluations.
   */
  readonly evaluations?: string | undefined
  /**
   * Reads the pages of `ui_resource` contents, such as an `McpHub`. They are shown in frames without network access.
   * Default: only the name of a page is shown.
   */
  readonly pages?: Pick<McpHubShape, "readPage"> | undefined
  /**
   * Models with which a turn can be played again instead of that of its agent: `<provider>/<model>`, or a model as a
   * value. Each is of the provider of the agent, or of one in the `ModelRegistry` of the kernel. Default: none.
   */
  readonly models?: ReadonlyArray<Model | `${string}/${string}`> | undefined
  /** Questions to begin a chat with, by the names of agents. Variants have those of their agent. Default: none. */
  readonly starters?: Readonly<Record<string, ReadonlyArray<string>>> | undefined
}

/**
 * The studio of a server.
 *
 * @category services
 * @since 0.1.0
 */
export class Studio extends Context.Service<
  Studio,
  {
    readonly path: `/${string}`
    readonly token: Redacted.Redacted
  }
>()("kernai/studio/Studio") {}

/**
 * Adds the page and its data to the router in context, and runs the runs of `agents` for the lifetime of the layer.
 *
 * The page needs the token of this start, and a host name of this machine or one of `hosts`. It sees all runs of the
 * store.
 *
 * @example
 * const Server = HttpRouter.serve(Studio.layer({ agents: [librarian], path: "/studio" })).pipe(
 *   Layer.provide(NodeHttpServer.layer(createServer, { port: 3000, host: "127.0.0.1" })),
 *   Layer.provide(KernelLive)
 * )
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <A extends RunWorker.Runnable<unknown>, R = never>(
  options: ServedRuns.Given<A, R> & PageOptions
): Layer.Layer<
  Studio,
  ConfigInvalid,
  HttpRouter.HttpRouter | Kernel | RunStore | MediaStore | RunWorker.Services<A> | R
> => {
  const { evaluations, models = [], pages, path = "/", readOnly = false, scenarios, starters = {} } = options
  const { token = Secrets.random() } = options
  const data = { readOnly, scenarios, evaluations, pages, models: new Map(models.map(named)), starters }
  const prefix = path === "/" ? "" : path
  const secrets = Secrets.make(token, readOnly)
  const worker = readOnly || options.agents.length === 0 ? { worker: false as const } : {}
  const door = HttpKernel.layer<A, R>({ ...options, ...worker, path: `${prefix}/api`, openapi: false })
  return Layer.effect(Studio, Effect.succeed({ path, token })).pipe(
    Layer.merge(PageRoutes.layer(path, secrets, options)),
    Layer.merge(Layer.provide(DataRoutes.layer(`${prefix}/data`, data), door)),
    Layer.provide(Access.layer(secrets.authenticate, options))
  )
}

/** Returns a model with the name under which it is offered. */
const named = (model: Model | `${string}/${string}`): readonly [name: string, model: Model] => {
  if (typeof model !== "string") {
    return [model.provider === undefined ? model.id : `${model.provider}/${model.id}`, model]
  }
  const slash = model.indexOf("/")
  return [model, modelOf(model.slice(0, slash), model.slice(slash + 1))]
}

/**
 * Returns an agent with other models and dialects, so that the chat of the page offers them as settings. Serve them
 * together with the agent.
 *
 * The name of each is the name of the agent, `@` and the model, then `+tools` or `+auto` for these dialects. Model
 * strings are resolved like those of any agent.
 *
 * @example
 * const clerks = [clerk, ...Studio.variants(clerk, { models: ["ollama/llama3.1", "openai/gpt-4o"], dialects: ["blocks", "tools"] })]
 * const Page = Studio.layer({ agents: clerks })
 *
 * @category constructors
 * @since 0.1.0
 */
export const variants = <A extends RunWorker.Runnable<unknown>>(
  agent: A,
  options: {
    readonly models?: ReadonlyArray<string> | undefined
    readonly dialects?: ReadonlyArray<A["dialect"]> | undefined
  }
): ReadonlyArray<A> => {
  const { dialects = [agent.dialect], models = [agent.model] } = options
  return models.flatMap((model) =>
    dialects.flatMap((dialect) => {
      const id = typeof model === "string" ? model : model.id
      if (model === agent.model && dialect === agent.dialect) return []
      const name = `${agent.name}@${id}${dialect === "blocks" ? "" : `+${dialect}`}`
      return [{ ...agent, name, model, dialect }]
    })
  )
}

/**
 * Returns the address to open, which contains the token, at an origin such as `http://127.0.0.1:3000`.
 *
 * @category getters
 * @since 0.1.0
 */
export const urlOf = ({ path, token }: Studio["Service"], origin: string): string =>
  `${origin}${path}#token=${Redacted.value(token)}`

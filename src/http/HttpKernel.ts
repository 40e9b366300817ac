/**
 * Serves agents over HTTP: a router for any Effect server, and a handler for every framework with `Request` and
 * `Response`.
 *
 * A client starts a run and follows it by its id, from any number of pages. Leaving a page does not stop the run: it is
 * cancelled on request. Events are server-sent events with ids, so that a client can continue where it stopped.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Layer from "effect/Layer"
import { signatureOf } from "../Caller.ts"
import type { Kernel } from "../Kernel.ts"
import type { ConfigInvalid } from "../KernelError.ts"
import { layerFor } from "../kit/layerFor.ts"
import { Limits } from "../Limits.ts"
import type { MediaStore } from "../MediaStore.ts"
import * as Operations from "../Operations.ts"
import * as Processes from "../Processes.ts"
import { prune, type RunStore } from "../RunStore.ts"
import type * as RunWorker from "../RunWorker.ts"
import * as Schedules from "../Schedules.ts"
import { Access } from "./Access.ts"
import * as HttpKernelApi from "./HttpKernelApi.ts"
import { admit } from "./internal/admission.ts"
import * as Handlers from "./internal/handlers.ts"
import * as ServedRuns from "./ServedRuns.ts"

/**
 * Options of the routes.
 *
 * @category models
 * @since 0.1.0
 */
export interface RouteOptions {
  /** The path prefix of all routes. Default: `/`. */
  readonly path?: `/${string}` | undefined
  /** The path of the OpenAPI document below `path`, or `false` for none. Default: `/openapi.json`. */
  readonly openapi?: `/${string}` | false | undefined
}

// ---------------------------------------------------------------- layers

/**
 * Serves agents: adds the routes to the router in context, and runs the runs for the lifetime of the layer. Provides
 * `ServedRuns` to the layers of further protocols.
 *
 * Without an `Access` layer, only this machine is admitted. A layer that is provided under two different `Access` layers
 * of one server is built for each of them, and fails because both add the same routes.
 *
 * Provide the kernel after the server, so that it is built first: a request to an open port whose routes are not there
 * yet gets no response.
 *
 * @example
 * const Routes = HttpKernel.layer({ agents: [librarian] }).pipe(Layer.provide(Access.bearer(verify)))
 * const Server = HttpRouter.serve(Routes).pipe(
 *   Layer.provide(NodeHttpServer.layer(createServer, { port: 3000 })),
 *   Layer.provide(KernelLive)
 * )
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <A extends RunWorker.Runnable<unknown>, R = never>(
  options: ServedRuns.Given<A, R> & RouteOptions
): Layer.Layer<
  ServedRuns.ServedRuns,
  ConfigInvalid,
  HttpRouter.HttpRouter | Kernel | RunStore | MediaStore | RunWorker.Services<A> | R
> => layerFor(Access, () => routes(options).pipe(Layer.provideMerge(ServedRuns.layer<A, R>(options))))

/**
 * Ends the streams of a server before the server closes, so that their clients connect again at once. Without it, a
 * server waits for them as long as it waits for any request, which is 20 seconds on Node by default.
 *
 * @example
 * const Server = HttpRouter.serve(Routes).pipe(
 *   HttpKernel.drainStreams,
 *   Layer.provide(NodeHttpServer.layer(createServer, { port: 3000, gracefulShutdownTimeout: "5 seconds" }))
 * )
 *
 * @category layers
 * @since 0.1.0
 */
export const drainStreams = <A, E, R>(
  server: Layer.Layer<A | ServedRuns.ServedRuns, E, R>
): Layer.Layer<A | ServedRuns.ServedRuns, E, R> =>
  Layer.provideMerge(
    Layer.fresh(Layer.effectDiscard(ServedRuns.ServedRuns.use(({ close }) => Effect.addFinalizer(() => close)))),
    server
  )

/**
 * Adds the routes for the `ServedRuns` in context.
 *
 * @category layers
 * @since 0.1.0
 */
export const routes = (
  options: RouteOptions = {}
): Layer.Layer<never, never, HttpRouter.HttpRouter | ServedRuns.ServedRuns> => {
  const { openapi = "/openapi.json", path = "/" } = options
  const api = HttpKernelApi.make(path)
  const prefix = path === "/" ? "" : path
  return HttpApiBuilder.layer(
    api,
    openapi === false ? {} : { openapiPath: `${prefix}${openapi}` as `/${string}` }
  ).pipe(
    Layer.provide([runsLayer(api), operatorLayer(api), serverLayer(api)]),
    Layer.provide([
      Layer.effect(HttpKernelApi.Authorization, authorization),
      HttpApiMiddleware.layerProblemDetails({ includeDetails: true })
    ]),
    Layer.provide(HttpServer.layerServices)
  )
}

/**
 * Returns the OpenAPI document of the routes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const openApi = (path: `/${string}` = "/"): OpenApi.OpenAPISpec => OpenApi.fromApi(HttpKernelApi.make(path))

/**
 * Turns a layer of routes into a handler of web requests, for edge runtimes and other frameworks. Call `dispose` at the
 * end to stop the worker.
 *
 * @example
 * const { handler, dispose } = HttpKernel.toWebHandler(Layer.provide(HttpKernel.layer({ agents }), KernelLive))
 * const response = await handler(new Request("http://localhost/health"))
 *
 * @category converting
 * @since 0.1.0
 */
export const toWebHandler = <A, E>(
  app: Layer.Layer<A, E, HttpRouter.HttpRouter | HttpRouter.Request<"Error" | "GlobalError", unknown>>
): {
  readonly handler: (request: Request) => Promise<Response>
  readonly dispose: () => Promise<void>
} => HttpRouter.toWebHandler(app, { disableLogger: true, routerConfig: { maxParamLength: 1024 } })

// ---------------------------------------------------------------- handlers

const authorization = Effect.gen(function* () {
  const access = yield* Access
  const { limits } = yield* ServedRuns.ServedRuns
  const { fetchedBytes } = yield* Limits
  return HttpKernelApi.Authorization.of((handler, { endpoint }) =>
    (endpoint.identifier === "putMedia"
      ? admit(handler, fetchedBytes, "media")
      : admit(handler, limits.bodyBytes)
    ).pipe(Effect.provideService(Access, access))
  )
})

const runsLayer = (api: HttpKernelApi.HttpKernelApi) =>
  HttpApiBuilder.group(
    api,
    "runs",
    Effect.fnUntraced(function* (handlers) {
      const served = yield* ServedRuns.ServedRuns
      const own = Handlers.ownOf(served)
      return handlers
        .handleAll({
          start: ({ payload }) => own((runs) => Effect.map(runs.start(payload), (runId) => ({ runId }))),
          stream: ({ payload }) => Handlers.stream(own, payload),
          list: ({ query }) => own((runs) => runs.list(query)),
          head: ({ params }) => own((runs) => runs.summary(params.runId)),
          follow: ({ headers, params, query }) =>
            Handlers.follow(own, params.runId, headers["last-event-id"] ?? query.after, query.until),
          questions: ({ params }) => own((runs) => runs.questions(params.runId)),
          answer: ({ params, payload }) => own((runs) => runs.answer(params.runId, payload)),
          cancel: ({ params, payload }) => own((runs) => runs.cancel(params.runId, payload.reason)),
          retry: ({ params, payload }) => own((runs) => runs.retry(params.runId, payload.revision)),
          result: ({ params }) => own((runs) => runs.result(params.runId)),
          getMedia: ({ params }) => Handlers.getMedia(own, params.runId, params.mediaId),
          agents: () => Effect.succeed(Handlers.agentsOf(served))
        })
        .handleRaw("putMedia", ({ params, request }) => Handlers.putMedia(own, params.runId, request))
    })
  )

const operatorLayer = (api: HttpKernelApi.HttpKernelApi) =>
  HttpApiBuilder.group(
    api,
    "operator",
    Effect.fnUntraced(function* (handlers) {
      const own = Handlers.ownOf(yield* ServedRuns.ServedRuns)
      return handlers.handleAll({
        overview: ({ query }) => own((runs) => runs.operate(Operations.overview(query))),
        requeue: ({ payload }) => Handlers.changed(own, Operations.requeue(payload)),
        prune: ({ payload }) => Handlers.changed(own, prune(payload)),
        processes: ({ query }) =>
          own((runs) => runs.operate(Effect.all({ processes: Processes.list(query), drains: Processes.drains }))),
        drain: ({ payload: { reason, ...target } }) =>
          own((runs) => runs.operate(Processes.drain(target, { by: signatureOf(runs.caller), reason }))),
        undrain: ({ payload }) => own((runs) => runs.operate(Processes.undrain(payload))),
        schedules: ({ query }) => Handlers.schedules(own, query),
        pauseSchedule: ({ params: { name }, payload }) =>
          own((runs) => runs.operate(Schedules.pause(name, { ...payload, by: signatureOf(runs.caller) }), name)),
        resumeSchedule: ({ params: { name } }) => own((runs) => runs.operate(Schedules.resume(name), name)),
        runSchedule: ({ params: { name } }) =>
          own((runs) => Effect.map(runs.operate(Schedules.run(name), name), (runId) => ({ runId })))
      })
    })
  )

const serverLayer = (api: HttpKernelApi.HttpKernelApi) =>
  HttpApiBuilder.group(
    api,
    "server",
    Effect.fnUntraced(function* (handlers) {
      const { health } = yield* ServedRuns.ServedRuns
      return handlers.handle("health", () => Effect.as(health, { status: "ok" as const }))
    })
  )

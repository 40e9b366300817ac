/**
 * The verbs of the kernel over HTTP: a typed client of `HttpKernel`.
 *
 * A stream reconnects by itself when its connection breaks or its server restarts: no event is lost or repeated.
 * Interrupting the fiber of a client does not stop the run; `cancel` does.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import type * as HttpClient from "effect/http/HttpClient"
import type { HttpClientError } from "effect/http/HttpClientError"
import * as HttpApiClient from "effect/http-api/HttpApiClient"
import type * as HttpApiError from "effect/http-api/HttpApiError"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Agent } from "../Agent.ts"
import type { RunEvent } from "../RunEvent.ts"
import type { OpenQuestion } from "../RunState.ts"
import type { HttpProblem } from "./HttpProblem.ts"
import * as HttpKernelApi from "./HttpKernelApi.ts"
import * as Following from "./internal/following.ts"
import type * as Operations from "./OperationBodies.ts"
import type * as Bodies from "./RunBodies.ts"

// ---------------------------------------------------------------- models

/**
 * Fails when the server rejects a request, cannot be reached, or sends a response that does not fit its interface.
 *
 * @category errors
 * @since 0.1.0
 */
export type ClientError =
  | HttpProblem
  | HttpApiError.BadRequestProblem
  | HttpApiError.InternalServerErrorProblem
  | HttpClientError
  | Schema.SchemaError

/**
 * An agent as the value that the server runs, so that its output schema decodes the answer.
 *
 * @category models
 * @since 0.1.0
 */
export type KnownAgent<Output> = Pick<Agent<Output>, "name" | "typed" | "output">

/**
 * Options of a new run.
 *
 * @category models
 * @since 0.1.0
 */
export type StartOptions = Pick<Bodies.Start, "runId" | "history" | "context">

/**
 * The result of a run whose answer is decoded.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunResult<Output> extends Omit<Bodies.Result, "output"> {
  readonly output: Output
}

/**
 * Options of a follower.
 *
 * @category models
 * @since 0.1.0
 */
export interface FollowOptions {
  /** Emit only events after this revision. Default: 0, all events. */
  readonly after?: number | undefined
  /** When the stream ends (see `Kernel.follow`). Default: `rest`. */
  readonly until?: "rest" | "end" | undefined
}

/**
 * The verbs of a client.
 *
 * @category models
 * @since 0.1.0
 */
export interface Client {
  /** Starts a run, and returns its id. */
  readonly start: (
    agent: string | KnownAgent<unknown>,
    input: Bodies.Start["input"],
    options?: StartOptions
  ) => Effect.Effect<string, ClientError>
  /** Starts a run and emits its events. */
  readonly stream: (
    agent: string | KnownAgent<unknown>,
    input: Bodies.Start["input"],
    options?: StartOptions
  ) => Stream.Stream<RunEvent, ClientError>
  /** Starts a run and returns its result. Fails with `Conflict` if the run stops without a result. */
  readonly run: {
    (agent: string, input: Bodies.Start["input"], options?: StartOptions): Effect.Effect<RunResult<string>, ClientError>
    <Output>(
      agent: KnownAgent<Output>,
      input: Bodies.Start["input"],
      options?: StartOptions
    ): Effect.Effect<RunResult<Output>, ClientError>
  }
  /** Emits the events of a run, stored and live. */
  readonly follow: (runId: string, options?: FollowOptions) => Stream.Stream<RunEvent, ClientError>
  readonly head: (runId: string) => Effect.Effect<Bodies.Head, ClientError>
  readonly list: (query?: Bodies.ListQuery) => Effect.Effect<Bodies.RunList, ClientError>
  readonly questions: (runId: string) => Effect.Effect<ReadonlyArray<OpenQuestion>, ClientError>
  readonly answer: (
    runId: string,
    answers: Bodies.Answers["answers"],
    options?: Pick<Bodies.Answers, "revision">
  ) => Effect.Effect<void, ClientError>
  readonly cancel: (
    runId: string,
    options?: { readonly reason?: string }
  ) => Effect.Effect<Bodies.Cancelled, ClientError>
  /** Offers a run at rest to workers again. For operators. */
  readonly retry: (runId: string, options?: { readonly revision?: number }) => Effect.Effect<void, ClientError>
  readonly result: (runId: string) => Effect.Effect<Bodies.Result, ClientError>
  /** Stores a medium of a run, which may start later, and returns its id. */
  readonly putMedia: (
    runId: string,
    medium: { readonly bytes: Uint8Array; readonly mimeType: string }
  ) => Effect.Effect<Bodies.Medium, ClientError>
  readonly getMedia: (runId: string, id: string) => Effect.Effect<Uint8Array, ClientError>
  readonly agents: Effect.Effect<ReadonlyArray<Bodies.AgentInfo>, ClientError>
  /** Operates the runs of all callers. For operators. */
  readonly operator: Operator
}

/**
 * The verbs of a client for operators.
 *
 * @category models
 * @since 0.1.0
 */
export interface Operator {
  /** Counts the runs that need somebody. */
  readonly overview: (
    filter?: typeof Operations.Needy.Type
  ) => Effect.Effect<ReadonlyArray<typeof Operations.Group.Type>, ClientError>
  /** Offers all runs with a need to workers again, and returns their ids. */
  readonly requeue: (filter: typeof Operations.Requeue.Type) => Effect.Effect<ReadonlyArray<string>, ClientError>
  /** Deletes old runs, and returns their ids. */
  readonly prune: (filter: typeof Operations.Prune.Type) => Effect.Effect<ReadonlyArray<string>, ClientError>
  /** Lists the processes that run stored runs, and the drains that stand. */
  readonly processes: (
    target?: typeof Operations.Target.Type
  ) => Effect.Effect<typeof Operations.Processes.Type, ClientError>
  /** Lets processes start no further run and hand on those that they have, until `undrain`. */
  readonly drain: (drain: typeof Operations.DrainRequest.Type) => Effect.Effect<void, ClientError>
  readonly undrain: (target: typeof Operations.Target.Type) => Effect.Effect<void, ClientError>
  readonly schedules: (
    filter?: typeof Operations.SchedulesQuery.Type
  ) => Effect.Effect<ReadonlyArray<typeof Operations.Schedule.Type>, ClientError>
  readonly pauseSchedule: (name: string, options?: typeof Operations.Pause.Type) => Effect.Effect<void, ClientError>
  readonly resumeSchedule: (name: string) => Effect.Effect<void, ClientError>
  /** Starts a run of a schedule now, and returns its id. */
  readonly runSchedule: (name: string) => Effect.Effect<string, ClientError>
}

/**
 * A client of a server.
 *
 * @category services
 * @since 0.1.0
 */
export class HttpKernelClient extends Context.Service<HttpKernelClient, Client>()("kernai/http/HttpKernelClient") {}

/**
 * Options of a client.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The address of the server, with the path of its routes, such as `https://example.com/api`. */
  readonly url: string
  /** Changes every request, to add credentials: `HttpClient.mapRequest(HttpClientRequest.bearerToken(token))`. */
  readonly transformClient?: ((client: HttpClient.HttpClient) => HttpClient.HttpClient) | undefined
  /** The schedule for reopening a broken stream. Default: for about a minute, first after 100 milliseconds. */
  readonly reconnect?: Schedule.Schedule<unknown> | undefined
}

// ---------------------------------------------------------------- constructors

/**
 * Creates a client.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Client, never, HttpClient.HttpClient> {
  const api = yield* connect(options)
  const reconnect = options.reconnect ?? patiently
  const follow: Client["follow"] = (runId, { after = 0, until } = {}) =>
    Following.follow(
      (lastId) =>
        api.follow({
          params: { runId },
          query: until === undefined ? {} : { until },
          headers: lastId === undefined ? {} : { "last-event-id": lastId },
          responseMode: "response-only"
        }),
      after === 0 ? undefined : String(after),
      reconnect
    )
  const start: Client["start"] = (agent, input, given) =>
    Effect.map(
      api.start({ payload: { ...given, agent: typeof agent === "string" ? agent : agent.name, input } }),
      ({ runId }) => runId
    )
  const result: Client["result"] = (runId) => api.result({ params: { runId } })
  return {
    start,
    follow,
    result,
    stream: (agent, input, given) => Stream.unwrap(Effect.map(start(agent, input, given), (runId) => follow(runId))),
    run: <Output>(agent: string | KnownAgent<Output>, input: Bodies.Start["input"], given?: StartOptions) =>
      Effect.gen(function* () {
        const runId = yield* start(agent, input, given)
        yield* Stream.runDrain(follow(runId))
        const whole = yield* result(runId)
        return { ...whole, output: yield* outputOf(agent, whole.text) }
      }),
    head: (runId) => api.head({ params: { runId } }),
    list: (query = {}) => api.list({ query }),
    questions: (runId) => api.questions({ params: { runId } }),
    answer: (runId, answers, given) => api.answer({ params: { runId }, payload: { ...given, answers } }),
    cancel: (runId, given = {}) => api.cancel({ params: { runId }, payload: given }),
    retry: (runId, given = {}) => api.retry({ params: { runId }, payload: given }),
    putMedia: (runId, { bytes, mimeType }) =>
      api.putMedia({ params: { runId }, headers: { "content-type": mimeType }, payload: Stream.make(bytes) }),
    getMedia: (runId, mediaId) => Effect.flatMap(api.getMedia({ params: { runId, mediaId } }), wholeOf),
    agents: api.agents(),
    operator: operatorOf(api)
  }
})

const connect = ({ transformClient, url }: Options) =>
  HttpApiClient.make(HttpKernelApi.make(), { baseUrl: url.replace(/\/+$/, ""), transformClient })

const operatorOf = ({ operator }: Effect.Success<ReturnType<typeof connect>>): Client["operator"] => ({
  overview: (query = {}) => operator.overview({ query }),
  requeue: (payload) => Effect.map(operator.requeue({ payload }), ({ runIds }) => runIds),
  prune: (payload) => Effect.map(operator.prune({ payload }), ({ runIds }) => runIds),
  processes: (query = {}) => operator.processes({ query }),
  drain: (payload) => operator.drain({ payload }),
  undrain: (payload) => operator.undrain({ payload }),
  schedules: (query = {}) => operator.schedules({ query }),
  pauseSchedule: (name, payload = {}) => operator.pauseSchedule({ params: { name }, payload }),
  resumeSchedule: (name) => operator.resumeSchedule({ params: { name } }),
  runSchedule: (name) => Effect.map(operator.runSchedule({ params: { name } }), ({ runId }) => runId)
})

const wholeOf = <E>(bytes: Stream.Stream<Uint8Array, E>): Effect.Effect<Uint8Array, E> =>
  Effect.map(Stream.runCollect(bytes), (parts) => new Uint8Array(Buffer.concat(parts)))

// ---------------------------------------------------------------- layers

/**
 * Provides a client that sends its requests with `fetch`.
 *
 * @example
 * const result = yield* HttpKernelClient.HttpKernelClient.use((client) => client.run("librarian", "What is a fiber?"))
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<HttpKernelClient> =>
  Layer.provide(layerClient(options), FetchHttpClient.layer)

/**
 * Provides a client that sends its requests with the `HttpClient` in context.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerClient = (options: Options): Layer.Layer<HttpKernelClient, never, HttpClient.HttpClient> =>
  Layer.effect(HttpKernelClient, make(options))

const patiently = Schedule.upTo(Schedule.min([Schedule.exponential("100 millis", 1.5), Schedule.spaced("5 seconds")]), {
  times: 20
})

/** Decodes an answer with the schema of its agent. A text may omit its quotes. */
const outputOf = <Output>(
  agent: string | KnownAgent<Output>,
  text: string
): Effect.Effect<string | Output, Schema.SchemaError> => {
  if (typeof agent === "string" || !agent.typed) return Effect.succeed(text)
  const read = Schema.decodeUnknownEffect(agent.output)
  return Effect.catch(read(text.trim()), (error) => Effect.mapError(read(JSON.stringify(text.trim())), () => error))
}

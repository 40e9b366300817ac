/**
 * The HTTP interface: its routes with their parameters, bodies and responses.
 *
 * The server, its OpenAPI document and `HttpKernelClient` are all made from this definition.
 *
 * @since 0.1.0
 */

import type { PathInput } from "effect/http/HttpRouter"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { CurrentCaller } from "./Access.ts"
import * as HttpProblem from "./HttpProblem.ts"
import * as Operations from "./OperationBodies.ts"
import * as Bodies from "./RunBodies.ts"

/**
 * Finds the caller of each request.
 *
 * @category services
 * @since 0.1.0
 */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentCaller }>()(
  "kernai/http/Authorization",
  { error: HttpProblem.all }
) {}

const run = { runId: Schema.String }

const start = HttpApiEndpoint.post("start", "/runs", { payload: Bodies.Start, success: Bodies.Started }).annotate(
  OpenApi.Description,
  "Starts a run. It continues when the client leaves; follow it by its id."
)

const stream = HttpApiEndpoint.post("stream", "/runs/stream", {
  payload: Bodies.Start,
  success: HttpApiSchema.StreamSse({ data: Bodies.Event })
}).annotate(
  OpenApi.Description,
  "Starts a run and sends its events, without another request. The header x-run-id has its id. Leaving does not stop it."
)

const list = HttpApiEndpoint.get("list", "/runs", { query: Bodies.ListQuery, success: Bodies.RunList })

const head = HttpApiEndpoint.get("head", "/runs/:runId", { params: run, success: Bodies.Head })

const follow = HttpApiEndpoint.get("follow", "/runs/:runId/events", {
  params: run,
  query: { after: Schema.optionalKey(Schema.String), until: Schema.optionalKey(Schema.Literals(["rest", "end"])) },
  headers: { "last-event-id": Schema.optionalKey(Schema.String) },
  success: [HttpApiSchema.StreamSse({ data: Bodies.Event }), HttpApiSchema.NoContent]
}).annotate(
  OpenApi.Description,
  "Sends the events of a run, stored and live. Each has an id: send it as Last-Event-ID to continue after it. " +
    "Responds with 204 if no event follows. Leaving does not stop the run."
)

const questions = HttpApiEndpoint.get("questions", "/runs/:runId/questions", {
  params: run,
  success: Schema.Array(Bodies.OpenQuestion)
})

const answer = HttpApiEndpoint.post("answer", "/runs/:runId/answers", {
  params: run,
  payload: Bodies.Answers,
  success: HttpApiSchema.NoContent
}).annotate(OpenApi.Description, "Records decisions about waiting calls. A worker continues the run at once.")

const cancel = HttpApiEndpoint.post("cancel", "/runs/:runId/cancel", {
  params: run,
  payload: Bodies.Cancel,
  success: Bodies.Cancelled
}).annotate(OpenApi.Description, "Cancels a run and the runs below it, and returns what was ended.")

const retry = HttpApiEndpoint.post("retry", "/runs/:runId/retry", {
  params: run,
  payload: Bodies.Retry,
  success: HttpApiSchema.NoContent
}).annotate(
  OpenApi.Description,
  "Offers a run to workers again that failed, got no answer, was given up or was paused by a hook. For operators."
)

const result = HttpApiEndpoint.get("result", "/runs/:runId/result", { params: run, success: Bodies.Result })

const putMedia = HttpApiEndpoint.post("putMedia", "/runs/:runId/media", {
  params: run,
  headers: { "content-type": Schema.String },
  payload: HttpApiSchema.StreamUint8Array(),
  success: Bodies.Medium
}).annotate(
  OpenApi.Description,
  "Stores the body as a medium of a run, which may start later. Its type is the content type of the request."
)

const getMedia = HttpApiEndpoint.get("getMedia", "/runs/:runId/media/:mediaId", {
  params: { ...run, mediaId: Schema.String },
  success: HttpApiSchema.StreamUint8Array()
})

const agents = HttpApiEndpoint.get("agents", "/agents", { success: Schema.Array(Bodies.AgentInfo) })

const health = HttpApiEndpoint.get("health", "/health", { success: Bodies.Health, error: HttpProblem.Unavailable })

const Runs = HttpApiGroup.make("runs", { topLevel: true })
  .add(start, stream, list, head, follow, questions, answer, cancel, retry, result, putMedia, getMedia, agents)
  .middleware(Authorization)

const schedule = { name: Schema.String }

const Operator = HttpApiGroup.make("operator")
  .add(
    HttpApiEndpoint.get("overview", "/operations", {
      query: Operations.Needy,
      success: Schema.Array(Operations.Group)
    }).annotate(OpenApi.Description, "Counts the runs of all callers that need somebody, by need, agent and version."),
    HttpApiEndpoint.post("requeue", "/operations/requeue", {
      payload: Operations.Requeue,
      success: Operations.Changed
    }).annotate(OpenApi.Description, "Offers all runs with a need to workers again."),
    HttpApiEndpoint.post("prune", "/operations/prune", {
      payload: Operations.Prune,
      success: Operations.Changed
    }).annotate(OpenApi.Description, "Deletes old runs with their tasks and media."),
    HttpApiEndpoint.get("processes", "/processes", {
      query: Operations.Target,
      success: Operations.Processes
    }).annotate(
      OpenApi.Description,
      "Lists the processes that run stored runs, with what they have, and the drains that stand."
    ),
    HttpApiEndpoint.post("drain", "/processes/drain", {
      payload: Operations.DrainRequest,
      success: HttpApiSchema.NoContent
    }).annotate(
      OpenApi.Description,
      "Lets processes start no further run, finish the steps that they have, and hand their runs on, until undrained."
    ),
    HttpApiEndpoint.post("undrain", "/processes/undrain", {
      payload: Operations.Target,
      success: HttpApiSchema.NoContent
    }).annotate(OpenApi.Description, "Ends the drain of exactly this target."),
    HttpApiEndpoint.get("schedules", "/schedules", {
      query: Operations.SchedulesQuery,
      success: Schema.Array(Operations.Schedule)
    }),
    HttpApiEndpoint.post("pauseSchedule", "/schedules/:name/pause", {
      params: schedule,
      payload: Operations.Pause,
      success: HttpApiSchema.NoContent
    }).annotate(OpenApi.Description, "Lets a schedule start no run, in any process, until it is resumed."),
    HttpApiEndpoint.post("resumeSchedule", "/schedules/:name/resume", {
      params: schedule,
      success: HttpApiSchema.NoContent
    }),
    HttpApiEndpoint.post("runSchedule", "/schedules/:name/run", {
      params: schedule,
      success: Bodies.Started
    }).annotate(OpenApi.Description, "Starts a run of a schedule now, which begins as its last one did.")
  )
  .middleware(Authorization)
  .annotate(OpenApi.Description, "For operators only.")

const Server = HttpApiGroup.make("server", { topLevel: true }).add(health)

/**
 * Returns the interface below a path.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (path: PathInput = "/") => {
  const api = HttpApi.make("kernai")
    .add(Runs, Operator, Server)
    .middleware(HttpApiMiddleware.ProblemDetails)
    .annotateMerge(OpenApi.annotations({ title: "kernai", description: "Agents, and the runs of their callers." }))
  return api.prefix(path)
}

/**
 * The type of the interface.
 *
 * @category models
 * @since 0.1.0
 */
export type HttpKernelApi = ReturnType<typeof make>

/**
 * Routes for data of the page that the HTTP door does not offer: lists with first words, journals, open questions,
 * forks and exports.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Route from "../../http/CallerRoute.ts"
import { asProblem, Invalid } from "../../http/HttpProblem.ts"
import { ServedRuns } from "../../http/ServedRuns.ts"
import * as Kernel from "../../Kernel.ts"
import { MediaStore, type MediaStoreShape } from "../../MediaStore.ts"
import { RunStore, type RunStoreShape } from "../../RunStore.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import { questions, pageOf, recordsAfter, stateAt } from "./studioData.ts"
import { toHtml } from "../RunExport.ts"
import { json } from "./answerJson.ts"
import * as OwnChatRoutes from "./ownChatRoutes.ts"
import * as EvaluationRoutes from "./evaluationRoutes.ts"
import * as Edits from "./forkEdits.ts"
import { framed, type Pages } from "./framedPage.ts"
import * as Matrix from "./matrixReports.ts"
import { query } from "./requestQuery.ts"
import * as RunFacts from "./runFacts.ts"
import { infoOf } from "./studioInfo.ts"
import { overviewOf } from "./studioOverview.ts"
import * as WaitingFeed from "./waitingFeed.ts"

/** Options of the routes. */
export interface Options {
  readonly readOnly: boolean
  /** The folder with the reports of scenarios. */
  readonly scenarios: string | undefined
  /** The folder of evaluations. */
  readonly evaluations: string | undefined
  readonly pages: Pages | undefined
  /** The models with which a turn can be played again. */
  readonly models: Edits.Models
  /** Questions to begin with, by the names of agents. */
  readonly starters: Readonly<Record<string, ReadonlyArray<string>>>
}

/** Adds the routes below a path. */
export const layer = (
  path: `/${string}`,
  options: Options
): Layer.Layer<never, never, HttpRouter.HttpRouter | RunStore | MediaStore | ServedRuns> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const store = yield* RunStore
      const media = yield* MediaStore
      const { agents } = yield* ServedRuns
      const skills = Option.getOrUndefined(yield* Effect.serviceOption(SkillRegistry))
      const get = (route: string, respond: Route.Respond) => Route.add("GET", `${path}${route}`, respond)
      const factsOf = RunFacts.make(store)
      yield* get("/info", () => Effect.flatMap(infoOf(options, agents, skills), json))
      yield* get("/runs", () =>
        Effect.flatMap(query(ListQuery), (filter) =>
          asProblem("list")(pageOf(store, factsOf, filter)).pipe(Effect.flatMap(json))
        )
      )
      yield* get("/overview", () =>
        Effect.flatMap(query(Range), (range) => asProblem("list")(overviewOf(store, range)).pipe(Effect.flatMap(json)))
      )
      yield* get("/questions", () =>
        Effect.flatMap(query(Questions), ({ run }) =>
          asProblem("list")(questions(store, factsOf, run === undefined ? undefined : Arr.ensure(run))).pipe(
            Effect.flatMap(json)
          )
        )
      )
      const waiting = yield* WaitingFeed.changes(store)
      yield* get("/waiting", (runs) => Effect.as(runs.place, eventsOf(waiting)))
      yield* get("/scenarios", () =>
        Effect.flatMap(options.scenarios === undefined ? Effect.succeed([]) : Matrix.read(options.scenarios), json)
      )
      yield* OwnChatRoutes.add(path, { store, media, factsOf })
      if (options.evaluations !== undefined) yield* EvaluationRoutes.add(path, options.evaluations)
      yield* get("/page", () => Effect.flatMap(query(PageQuery), (page) => framed(options.pages, page)))
      yield* get("/runs/:runId/records", () => records(store))
      yield* get("/runs/:runId/export", () => exported(store, media))
      yield* Route.add("POST", `${path}/runs/:runId/fork`, () => fork(store, options.models, agents.length > 0))
      yield* Route.add("POST", `${path}/tags`, () => tag(store))
    })
  )

/** Sends values as events. A comment now and then keeps the connection open, and finds clients that are gone. */
const eventsOf = <E>(values: Stream.Stream<object, E>): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(
    Stream.map(values, (value) => `data: ${JSON.stringify(value)}\n\n`).pipe(
      Stream.merge(Stream.as(Stream.drop(Stream.tick("15 seconds"), 1), ": waiting\n\n"), { haltStrategy: "left" }),
      Stream.encodeText
    ),
    {
      contentType: "text/event-stream",
      headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" }
    }
  )

const records = Effect.fnUntraced(function* (store: RunStoreShape) {
  const { after = 0, limit = 1_000 } = yield* query(Part)
  const runId = yield* Route.param("runId")
  return yield* json(yield* asProblem(runId)(recordsAfter(store, runId, after, limit)))
})

const exported = Effect.fnUntraced(function* (store: RunStoreShape, media: MediaStoreShape) {
  const runId = yield* Route.param("runId")
  const html = yield* toHtml(runId).pipe(
    Effect.provideService(RunStore, store),
    Effect.provideService(MediaStore, media),
    asProblem(runId)
  )
  return HttpServerResponse.text(html, {
    contentType: "application/octet-stream",
    headers: {
      "content-disposition": `attachment; filename="${runId.replace(/[^\w.-]+/g, "_").slice(0, 80)}.html"`,
      "x-content-type-options": "nosniff"
    }
  })
})

const fork = Effect.fnUntraced(function* (store: RunStoreShape, models: Edits.Models, isRun: boolean) {
  const runId = yield* Route.param("runId")
  const asked = yield* Route.body(Edits.Fork)
  const state = yield* asProblem(runId)(stateAt(store, runId, asked.revision))
  const problem = Edits.problemOf(state, asked, models)
  if (problem !== undefined) return yield* new Invalid({ detail: problem })
  const forkId = yield* Kernel.newRunId
  const forked = Kernel.fork(runId, {
    revision: asked.revision,
    runId: forkId,
    edit: Edits.editOf(runId, forkId, asked, models)
  })
  yield* asProblem(runId)(Effect.provideService(forked, RunStore, store))
  // Workers claim a fork only after it is offered.
  if (isRun)
    yield* asProblem(forkId)(Effect.provideService(Kernel.offer(forkId, { workerId: "studio" }), RunStore, store))
  return yield* json({ runId: forkId })
})

/** Gives runs a tag, or takes it from them. */
const tag = Effect.fnUntraced(function* ({ tags }: RunStoreShape) {
  const { change, runIds, tag } = yield* Route.body(TagChange)
  if (tags === undefined) return yield* new Invalid({ detail: "this store keeps no tags" })
  yield* asProblem("tag")(tags[change](tag, runIds))
  return yield* json({})
})

const TagChange = Schema.Struct({
  change: Schema.Literals(["add", "remove"]),
  // A blank would end the tag in a filter.
  tag: Schema.String.check(Schema.isPattern(/^\S{1,64}$/)),
  runIds: Schema.Array(Schema.String.check(Schema.isMaxLength(1_000))).check(Schema.isMaxLength(1_000))
})

const instant = Schema.FiniteFromString.check(Schema.isBetween({ minimum: 0, maximum: 8.64e15 }))

const Range = Schema.Struct({
  from: instant,
  to: instant,
  slots: Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 1, maximum: 500 }))
}).check(Schema.makeFilter(({ from, to }) => (from < to ? undefined : "the range ends before it begins")))

const Questions = Schema.Struct({
  run: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String).check(Schema.isMaxLength(100))]))
})

const PageQuery = Schema.Struct({ server: Schema.String, uri: Schema.String })

const Part = Schema.Struct({
  after: Schema.optionalKey(Schema.FiniteFromString),
  limit: Schema.optionalKey(Schema.FiniteFromString.check(Schema.isBetween({ minimum: 1, maximum: 5_000 })))
})

const ListQuery = Schema.Struct({
  status: Schema.optionalKey(Schema.String),
  agent: Schema.optionalKey(Schema.String),
  caller: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  tag: Schema.optionalKey(Schema.String),
  tenant: Schema.optionalKey(Schema.String),
  label: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  search: Schema.optionalKey(Schema.String),
  rootRunId: Schema.optionalKey(Schema.String),
  order: Schema.optionalKey(Schema.Literals(["newest", "oldest"])),
  after: Schema.optionalKey(Schema.String)
})

/**
 * Data of the page that the HTTP door does not have: lists with first words, journals, open questions, forks and exports.
 */

import * as Effect from "effect/Effect"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Invalid } from "../../http/HttpProblem.ts"
import * as Route from "../../http/internal/callerRoute.ts"
import { asProblem } from "../../http/internal/problems.ts"
import { ServedRuns } from "../../http/ServedRuns.ts"
import { offer } from "../../internal/kernel/queue.ts"
import * as Kernel from "../../Kernel.ts"
import { MediaStore } from "../../MediaStore.ts"
import { RunStore } from "../../RunStore.ts"
import { approvals, pageOf, recordsAfter } from "./studioData.ts"
import { htmlOf } from "./exportPage.ts"

/** Adds the routes below a path. */
export const layer = (
  path: string,
  { readOnly }: { readonly readOnly: boolean }
): Layer.Layer<never, never, HttpRouter.HttpRouter | RunStore | MediaStore | ServedRuns> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const store = yield* RunStore
      const media = yield* MediaStore
      const { agents } = yield* ServedRuns
      const get = (route: string, respond: Route.Respond) =>
        Route.add("GET", `${path}${route}` as `/${string}`, respond)
      const names = agents.map(({ description, name }) => ({ name, description }))
      yield* get("/info", () => json({ readOnly, agents: names }))
      yield* get("/runs", () =>
        Effect.flatMap(query(ListQuery), (filter) =>
          asProblem("list")(pageOf(store, filter)).pipe(Effect.flatMap(json))
        )
      )
      yield* get("/approvals", () => Effect.flatMap(asProblem("list")(approvals(store)), json))
      yield* get("/runs/:runId/records", () =>
        Effect.gen(function* () {
          const { after = 0 } = yield* query(After)
          const runId = yield* Route.param("runId")
          return yield* json(yield* asProblem(runId)(recordsAfter(store, runId, after)))
        })
      )
      yield* get("/runs/:runId/export", () =>
        Effect.gen(function* () {
          const runId = yield* Route.param("runId")
          const html = yield* asProblem(runId)(htmlOf(store, media, runId))
          return HttpServerResponse.text(html, {
            contentType: "application/octet-stream",
            headers: {
              "content-disposition": `attachment; filename="${runId.replace(/[^\w.-]+/g, "_").slice(0, 80)}.html"`,
              "x-content-type-options": "nosniff"
            }
          })
        })
      )
      yield* Route.add("POST", `${path}/runs/:runId/fork` as `/${string}`, () =>
        Effect.gen(function* () {
          const runId = yield* Route.param("runId")
          const { revision } = yield* Route.body(Fork)
          const forked = Effect.provideService(Kernel.fork(runId, { revision }), RunStore, store)
          const forkId = yield* asProblem(runId)(forked)
          // A fork waits for nobody until it is offered.
          if (agents.length > 0) yield* asProblem(forkId)(offer(store, forkId, "studio"))
          return yield* json({ runId: forkId })
        })
      )
    })
  )

const Fork = Schema.Struct({ revision: Schema.Int.check(Schema.isGreaterThan(0)) })

const After = Schema.Struct({ after: Schema.optionalKey(Schema.FiniteFromString) })

const ListQuery = Schema.Struct({
  status: Schema.optionalKey(Schema.String),
  agent: Schema.optionalKey(Schema.String),
  search: Schema.optionalKey(Schema.String),
  rootRunId: Schema.optionalKey(Schema.String),
  after: Schema.optionalKey(Schema.String)
})

const json = (value: unknown) =>
  Effect.succeed(HttpServerResponse.jsonUnsafe(value, { headers: { "cache-control": "no-store" } }))

/** Reads the query of the request by a Schema. */
const query = <A, I extends Readonly<Record<string, string | undefined>>>(schema: Schema.Codec<A, I>) =>
  HttpServerRequest.HttpServerRequest.use(({ url }) =>
    Schema.decodeUnknownEffect(schema)(Object.fromEntries(new URL(url, "http://localhost").searchParams))
  ).pipe(Effect.mapError(({ message }) => new Invalid({ detail: message.slice(0, 1_000) })))

/** Routes for the conversations of a caller: their list with a search, their names, and their end. */

import * as Effect from "effect/Effect"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as Schema from "effect/Schema"
import * as Route from "../../http/CallerRoute.ts"
import type { ServedRuns } from "../../http/ServedRuns.ts"
import { json } from "./answerJson.ts"
import * as OwnChats from "./ownChats.ts"
import { query } from "./requestQuery.ts"

/** Adds the routes below a path. */
export const add = Effect.fnUntraced(function* (
  path: `/${string}`,
  stores: OwnChats.Stores
): Effect.fn.Return<void, never, HttpRouter.HttpRouter | ServedRuns> {
  const one: `/${string}` = `${path}/conversations/:conversation`
  yield* Route.add("GET", `${path}/conversations`, (runs) =>
    Effect.flatMap(Effect.flatMap(query(Search), OwnChats.list(stores, runs)), json)
  )
  yield* Route.add("POST", one, (runs) =>
    Effect.gen(function* () {
      const { name } = yield* Route.body(NewName)
      yield* OwnChats.rename(stores, runs, yield* Route.param("conversation"), name.trim())
      return yield* json({})
    })
  )
  yield* Route.add("DELETE", one, (runs) =>
    Effect.gen(function* () {
      const runIds = yield* OwnChats.remove(stores, runs, yield* Route.param("conversation"))
      return yield* json({ runIds })
    })
  )
})

const Search = Schema.Struct({ search: Schema.optionalKey(Schema.String), after: Schema.optionalKey(Schema.String) })

/** An empty name takes the name away. */
const NewName = Schema.Struct({ name: Schema.String.check(Schema.isMaxLength(200)) })

/** Routes for evaluations: experiments, data sets taken from runs, and scores of runs. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as Option from "effect/Option"
import { signatureOf } from "../../Caller.ts"
import { CurrentCaller } from "../../http/Access.ts"
import * as Route from "../../http/CallerRoute.ts"
import { Invalid } from "../../http/HttpProblem.ts"
import type { ServedRuns } from "../../http/ServedRuns.ts"
import { json } from "./answerJson.ts"
import * as Experiments from "./experiments.ts"
import * as KeptLines from "./keptLines.ts"

/** Adds the routes below a path, over the files of a folder. */
export const add = Effect.fnUntraced(function* (
  path: `/${string}`,
  folder: string
): Effect.fn.Return<void, never, HttpRouter.HttpRouter | ServedRuns> {
  const experiments = Experiments.make(folder)
  const kept = KeptLines.make(folder)
  yield* Route.add("GET", `${path}/experiments`, () => Effect.flatMap(Experiments.list(experiments), json))
  yield* Route.add("GET", `${path}/experiments/:file`, () =>
    Effect.gen(function* () {
      const found = yield* Effect.flatMap(Route.param("file"), experiments.find)
      if (Option.isNone(found)) return yield* new Invalid({ detail: "there is no such report" })
      return yield* json(found.value)
    })
  )
  yield* Route.add("GET", `${path}/sets`, () => Effect.flatMap(kept.sets, json))
  yield* Route.add("POST", `${path}/sets`, () =>
    Effect.flatMap(Effect.flatMap(Route.body(KeptLines.NewRow), kept.addRow), () => json({}))
  )
  yield* Route.add("GET", `${path}/scores`, () => Effect.flatMap(kept.scores, json))
  yield* Route.add("POST", `${path}/scores`, () =>
    Effect.gen(function* () {
      const { runId, ...score } = yield* Route.body(KeptLines.NewScore)
      const by = signatureOf(yield* CurrentCaller)
      yield* kept.addScore({ run_id: runId, by, at: yield* Clock.currentTimeMillis, ...score })
      return yield* json({})
    })
  )
})

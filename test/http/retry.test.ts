/** Offering a run to workers again, over HTTP. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { Access } from "kernai/http"
import { final } from "../support/blocks.ts"
import { clientOf, serve } from "../support/http.ts"

const callers: Record<string, Access.Caller> = { eva: { id: "eva" }, root: { id: "root", isOperator: true } }

const as = (token: string) => ({ transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(token)) })

describe("POST /runs/:id/retry", () => {
  it.live("continues a run that got no answer, for an operator only", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({
        replies: [{ text: "", reason: "content-filter" }, final("Yes.")],
        with: Access.bearer((token) => Effect.succeed(Option.fromNullishOr(callers[Redacted.value(token)])))
      })
      const [eva, root] = [yield* clientOf(url, as("eva")), yield* clientOf(url, as("root"))]
      const runId = yield* eva.start("clerk", "Ready?")
      yield* Stream.runDrain(eva.follow(runId))
      assert.strictEqual((yield* eva.head(runId)).status.type, "no_answer")
      assert.strictEqual((yield* Effect.flip(eva.retry(runId)))._tag, "Forbidden")
      yield* root.retry(runId)
      yield* Stream.runDrain(root.follow(runId, { until: "end" }))
      assert.strictEqual((yield* root.result(runId)).text, "Yes.")
      assert.deepInclude(yield* Effect.flip(root.retry(runId)), { _tag: "Conflict", reason: "not_at_rest" })
    }).pipe(Effect.scoped)
  )
})

import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { HttpClient, type HttpClientRequest, HttpClientResponse } from "effect/http"
import { HttpKernel, HttpKernelClient } from "kernai/http"
import { app, kernel } from "../src/app.ts"

/** The app and its client, without a port. */
const served = Effect.acquireRelease(
  Effect.sync(() => HttpKernel.toWebHandler(app.pipe(Layer.provide(kernel(":memory:"))))),
  ({ dispose }) => Effect.promise(dispose)
)

const web = (handler: (request: Request) => Promise<Response>) =>
  HttpClient.make((request: HttpClientRequest.HttpClientRequest, url) =>
    Effect.map(
      Effect.promise(() =>
        handler(
          new Request(url, {
            method: request.method,
            headers: request.headers,
            ...(request.body._tag === "Uint8Array" ? { body: new TextDecoder().decode(request.body.body) } : {})
          })
        )
      ),
      (response) => HttpClientResponse.fromWeb(request, response)
    )
  )

describe("the app", () => {
  it.live("has a page", () =>
    Effect.gen(function* () {
      const { handler } = yield* served
      const response = yield* Effect.promise(() => handler(new Request("http://localhost/")))
      assert.include(yield* Effect.promise(() => response.text()), "<form>")
    }).pipe(Effect.scoped)
  )

  it.live("sends a letter when the page approves it", () =>
    Effect.gen(function* () {
      const { handler } = yield* served
      const client = yield* HttpKernelClient.make({ url: "http://localhost" }).pipe(
        Effect.provide(Layer.succeed(HttpClient.HttpClient, web(handler)))
      )
      const runId = yield* client.start("clerk", "Write to Oslo.")
      yield* Stream.runDrain(client.follow(runId))
      const open = yield* client.questions(runId)
      yield* client.answer(
        runId,
        open.map(({ callId }) => ({ callId, approved: true }))
      )
      yield* Stream.runDrain(client.follow(runId, { until: "end" }))
      const { calls, text } = yield* client.result(runId)
      assert.deepStrictEqual([calls[0]?.isError, text], [false, "That is all."])
    }).pipe(Effect.scoped)
  )
})

/** Agents over HTTP: a real server on loopback, plain requests and the typed client. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Queue, Schema, Stream } from "effect"
import { Agent, Policy, Skill } from "kernai"
import { HttpKernel } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { app, clientOf, readUntil, serve, spoken } from "../support/http.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed(`paid ${to}`)
})

const asking = {
  skills: [pay],
  replies: [command("pay", { to: "Eva" }), final("Done.")],
  with: Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))
}

const get = (url: string, headers: Record<string, string> = {}) =>
  Effect.promise(async () => {
    const response = await fetch(url, { headers })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

const post = (url: string, body: unknown) =>
  Effect.promise(async () => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body)
    })
    return { status: response.status, text: await response.text() }
  })

describe("HttpKernel", () => {
  it.live("runs an agent for a client and returns its result", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("A fiber is a light thread.")] })
      const client = yield* clientOf(url)
      const result = yield* client.run("clerk", "What is a fiber?")
      assert.strictEqual(result.text, "A fiber is a light thread.")
      assert.strictEqual(result.turns, 1)
      const { runs } = yield* client.list()
      assert.deepStrictEqual(
        runs.map(({ agent, runId, status }) => [agent, runId, status.type]),
        [["clerk", result.runId, "completed"]]
      )
      const events = yield* Stream.runCollect(client.follow(result.runId))
      assert.strictEqual(events[0]?.type, "run_started")
      assert.strictEqual(events.at(-1)?.type, "run_completed")
    }).pipe(Effect.scoped)
  )

  it.live("decodes the answer by the output schema of the agent", () =>
    Effect.gen(function* () {
      const output = Schema.Struct({ city: Schema.String, at: Schema.DateFromString })
      const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", output })
      const { url } = yield* serve({ agent, replies: [final(`{"city": "Oslo", "at": "2026-01-02T00:00:00.000Z"}`)] })
      const client = yield* clientOf(url)
      const {
        output: { at, city }
      } = yield* client.run(agent, "Where?")
      assert.strictEqual(city, "Oslo")
      assert.strictEqual(at.getUTCFullYear(), 2026)
    }).pipe(Effect.scoped)
  )

  it.live("asks a person, and continues with the answer", () =>
    Effect.gen(function* () {
      const { url } = yield* serve(asking)
      const client = yield* clientOf(url)
      const runId = yield* client.start("clerk", "Pay Eva.")
      const events = yield* Stream.runCollect(client.follow(runId))
      assert.strictEqual(events.at(-1)?.type, "paused")
      const [question] = yield* client.questions(runId)
      assert.deepStrictEqual([question?.name, question?.input], ["pay", { to: "Eva" }])
      yield* client.answer(runId, [{ callId: question?.callId ?? "", approved: true }])
      yield* Stream.runDrain(client.follow(runId, { until: "end" }))
      const { calls, text, ...rest } = yield* client.result(runId)
      // The model has no price, so the cost is unknown.
      assert.notProperty(rest, "costUsd")
      assert.deepStrictEqual([text, calls[0]?.isError], ["Done.", false])
    }).pipe(Effect.scoped)
  )

  it.live("resumes the events of a client in the middle of a reply", () =>
    Effect.gen(function* () {
      const pieces = yield* Queue.unbounded<string>()
      const { url } = yield* serve({ model: spoken(pieces) })
      const runId = JSON.parse((yield* post(`${url}/runs`, { input: "Speak." })).text).runId
      yield* Queue.offer(pieces, "Hello, ")
      const first = yield* readUntil(`${url}/runs/${runId}/events`, undefined, (text) => text.endsWith("Hello, "))
      const second = yield* Effect.forkChild(
        readUntil(`${url}/runs/${runId}/events`, first.lastId, (text) => text.endsWith("world"))
      )
      yield* Queue.offer(pieces, "world")
      assert.strictEqual((yield* Fiber.join(second)).text, "world")
      assert.strictEqual(first.text, "Hello, ")
    }).pipe(Effect.scoped)
  )

  it.live("starts a run and sends its events in one request", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("Yes.")] })
      const { id, text } = yield* Effect.promise(async () => {
        const headers = { "content-type": "application/json" }
        const response = await fetch(`${url}/runs/stream`, { method: "POST", headers, body: `{"input":"Ready?"}` })
        return { id: response.headers.get("x-run-id") ?? "", text: await response.text() }
      })
      assert.include(text, `"type":"run_completed"`)
      assert.include(text, id)
    }).pipe(Effect.scoped)
  )

  it.live("cancels a run only on request, and leaves it alone when its page leaves", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ model: spoken(yield* Queue.unbounded<string>()) })
      const client = yield* clientOf(url)
      const runId = yield* client.start("clerk", "Wait.")
      yield* Stream.runDrain(Stream.takeUntil(client.follow(runId), ({ type }) => type === "model_started"))
      assert.strictEqual((yield* client.head(runId)).status.type, "running")
      yield* client.cancel(runId, { reason: "no longer needed" })
      const last = yield* Stream.runLast(client.follow(runId))
      assert.deepInclude(last, { _tag: "Some" })
      const { status } = yield* client.head(runId)
      assert.deepStrictEqual(status, { type: "cancelled", reason: "no longer needed" })
    }).pipe(Effect.scoped)
  )

  it.live("responds with 204 to a browser when no event follows", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("Yes.")] })
      const client = yield* clientOf(url)
      const { runId } = yield* client.run("clerk", "Ready?")
      const whole = yield* get(`${url}/runs/${runId}/events`)
      assert.include(whole.headers.get("content-type"), "text/event-stream")
      const ids = [...whole.text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id ?? "")
      assert.strictEqual((yield* get(`${url}/runs/${runId}/events`, { "last-event-id": ids.at(-1) ?? "" })).status, 204)
      assert.strictEqual((yield* get(`${url}/runs/${runId}/events`, { "last-event-id": "x" })).status, 400)
    }).pipe(Effect.scoped)
  )

  it.live("stores a picture before its run starts, and sends it back", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final("A dot."))
      const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted" })
      const { url } = yield* serve({ agent, model: mock })
      const client = yield* clientOf(url)
      const bytes = new TextEncoder().encode("%PDF-1.4 letter")
      const medium = yield* client.putMedia("letters-1", { bytes, mimeType: "application/pdf" })
      assert.strictEqual(medium.mimeType, "application/pdf")
      yield* client.start(agent, [{ type: "text", text: "Read." }], { runId: "letters-1" })
      yield* Stream.runDrain(client.follow("letters-1"))
      assert.deepStrictEqual(yield* client.getMedia("letters-1", medium.id), bytes)
      const missing = yield* Effect.flip(client.getMedia("letters-1", "media_000000000000"))
      assert.strictEqual(missing._tag, "NotFound")
    }).pipe(Effect.scoped)
  )

  it.live("bounds the media of a caller for runs that have not started", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("Read.")], options: { limits: { uploadBytes: 100 } } })
      const client = yield* clientOf(url)
      const put = (runId: string, size: number, fill = 1) =>
        client.putMedia(runId, { bytes: new Uint8Array(size).fill(fill), mimeType: "application/pdf" })
      yield* put("a", 60)
      assert.strictEqual((yield* Effect.flip(put("b", 60)))._tag, "TooMany")
      yield* put("b", 40)
      assert.strictEqual((yield* Effect.flip(put("b", 1)))._tag, "TooMany")
      // The bytes of a run that starts are its own.
      yield* client.start("clerk", "Read.", { runId: "a" })
      yield* put("c", 60)
      assert.strictEqual((yield* Effect.flip(put("c", 1)))._tag, "TooMany")
    }).pipe(Effect.scoped)
  )

  it.live("responds with problem details for what is missing, invalid, or not possible now", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [final("Yes.")] })
      const client = yield* clientOf(url)
      const missing = yield* get(`${url}/runs/none`)
      assert.strictEqual(missing.headers.get("content-type"), "application/problem+json")
      assert.deepInclude(JSON.parse(missing.text), { status: 404, what: "run", id: "none" })
      assert.strictEqual((yield* get(`${url}/runs?limit=many`)).status, 400)
      assert.strictEqual((yield* post(`${url}/runs`, { input: 7 })).status, 400)
      assert.strictEqual((yield* post(`${url}/runs`, { input: "x", context: { admin: true } })).status, 400)
      yield* client.run("clerk", "Ready?", { runId: "one" })
      assert.deepInclude(yield* Effect.flip(client.start("clerk", "Again?", { runId: "one" })), {
        _tag: "Conflict",
        reason: "exists"
      })
      assert.deepInclude(yield* Effect.flip(client.cancel("one")), { _tag: "Conflict", reason: "completed" })
      assert.deepInclude(yield* Effect.flip(client.start("nobody", "Hm?")), { _tag: "NotFound", what: "agent" })
    }).pipe(Effect.scoped)
  )

  it.live("serves its OpenAPI description and its health", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ options: { path: "/api" } })
      const { paths } = JSON.parse((yield* get(`${url}/api/openapi.json`)).text)
      assert.deepStrictEqual(Object.keys(paths).includes("/api/runs/{runId}/events"), true)
      assert.deepStrictEqual(paths, JSON.parse(JSON.stringify(HttpKernel.openApi("/api").paths)))
      assert.deepStrictEqual(JSON.parse((yield* get(`${url}/api/health`)).text), { status: "ok" })
    }).pipe(Effect.scoped)
  )

  it.live("serves web requests without a server", () =>
    Effect.gen(function* () {
      const { dispose, handler } = HttpKernel.toWebHandler(app({ replies: [final("Here.")] }))
      const ask = (path: string, init?: RequestInit) =>
        Effect.promise(() => handler(new Request(`http://localhost${path}`, init)))
      const body = JSON.stringify({ input: "Where?" })
      const started = yield* ask("/runs", { method: "POST", headers: { "content-type": "application/json" }, body })
      const { runId } = yield* Effect.promise(() => started.json() as Promise<{ readonly runId: string }>)
      const events = yield* ask(`/runs/${runId}/events`)
      assert.include(yield* Effect.promise(() => events.text()), `"type":"run_completed"`)
      yield* Effect.promise(dispose)
    })
  )
})

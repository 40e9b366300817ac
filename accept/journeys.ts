/**
 * One journey through the sources, in a process of its own: `node --conditions=kernai-source accept/journeys.ts token`.
 * Prints the lines of the functions that it enters, by file.
 */
import { Deferred, Effect, Layer, Redacted, Schema, type Scope, Stream } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import {
  Agent,
  Kernel,
  KernelError,
  MediaStore,
  Policy,
  ProtocolRegistry,
  Provider,
  RunStore,
  Skill,
  SkillRegistry
} from "../src/index.ts"
import { AnthropicProvider } from "../src/provider/index.ts"
import { PgRunStore } from "../src/sql/index.ts"
import { MockProvider } from "../src/testing/index.ts"
import { clientOf, serve } from "../test/support/http.ts"
import * as Postgres from "../test/support/postgres.ts"
import { Span } from "./coverage.ts"

const span = new Span()

const population = Skill.make("population", {
  description: "Tells how many people live in a city",
  input: Schema.Struct({ city: Schema.String }),
  effects: "read",
  execute: () => Effect.succeed("717710")
})
const agent = Agent.make({ name: "clerk", instructions: "You answer.", model: "scripted", skills: [population] })
const call = '<block type="command" name="population">{"city": "Oslo"}</block>'
const answer = '<block type="final">Many.</block>'

/** A mock that counts its calls, and tells when one comes. */
const model = (onCall: (call: number) => void, ...replies: ReadonlyArray<MockProvider.Reply>) => {
  const mock = MockProvider.make(...replies)
  let calls = 0
  const stream: Provider.ProviderShape["stream"] = (request) => {
    onCall(++calls)
    return mock.stream(request)
  }
  return { ...mock, stream }
}

const kernelOn = <E>(provider: Provider.ProviderShape, store: Layer.Layer<RunStore.RunStore, E>) =>
  Kernel.layer.pipe(
    Layer.provide([
      Layer.succeed(Provider.Provider, provider),
      SkillRegistry.layer(population),
      ProtocolRegistry.layer()
    ]),
    Layer.provideMerge(Layer.merge(store, MediaStore.layerMemory))
  )

/** A run with one call, from its start to its result. */
const run = Effect.gen(function* () {
  span.begin()
  yield* Kernel.run(agent, "How many?")
  span.end()
}).pipe(
  Effect.provide(
    kernelOn(
      model(() => {}, call, answer),
      RunStore.layerMemory
    )
  )
)

/** Tokens in the middle of a reply, from a server's bytes to a consumer of the run's events. */
const token = Effect.gen(function* () {
  const encoder = new TextEncoder()
  const event = (data: object) => encoder.encode(`event: x\ndata: ${JSON.stringify(data)}\n\n`)
  const text = (text: string) => event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } })
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(event({ type: "message_start", message: { id: "m", model: "m", usage: { input_tokens: 3 } } }))
      controller.enqueue(event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }))
      controller.enqueue(text('<block type="final">'))
    },
    pull: async (controller) => {
      await new Promise((resolve) => setTimeout(resolve, 1))
      if (sent++ < 40) return controller.enqueue(text("word "))
      controller.enqueue(text("</block>"))
      controller.enqueue(event({ type: "content_block_stop", index: 0 }))
      controller.enqueue(
        event({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 5 } })
      )
      controller.enqueue(event({ type: "message_stop" }))
      controller.close()
    }
  })
  let sent = 0
  const http = HttpClient.make((request) => Effect.succeed(HttpClientResponse.fromWeb(request, new Response(body))))
  const provider = yield* Effect.provideService(
    AnthropicProvider.make({ apiKey: Redacted.make("key") }),
    HttpClient.HttpClient,
    http
  )
  let seen = 0
  yield* Kernel.stream(agent, "How many?").pipe(
    Stream.runForEach(({ type }) =>
      Effect.sync(() => {
        if (type === "block_content" && ++seen === 10) span.begin()
        if (type === "block_content" && seen === 30) span.end()
      })
    ),
    Effect.provide(kernelOn(provider, RunStore.layerMemory))
  )
})

/** A run whose second model call failed is resumed, until the model is asked again. */
const resume = Effect.gen(function* () {
  yield* Effect.exit(Kernel.run(agent, "How many?", { runId: "run" }))
  span.begin()
  yield* Kernel.resume(agent, "run")
}).pipe(
  Effect.provide(
    kernelOn(
      model(
        (count) => (count === 3 ? span.end() : undefined),
        call,
        new KernelError.ProviderError({ provider: "mock", reason: "authentication", detail: "no key" }),
        answer
      ),
      RunStore.layerMemory
    )
  )
)

/** A step of a run stored in PostgreSQL, from one call of the model to the next. */
const postgres = Effect.gen(function* () {
  const database = yield* Postgres.database
  const provider = model(
    (count) => {
      if (count === 2) span.begin()
      if (count === 3) span.end()
    },
    call,
    call,
    answer
  )
  yield* Effect.provide(
    Kernel.run(agent, "How many?"),
    kernelOn(provider, PgRunStore.layer({ url: Redacted.make(database.url) }))
  )
})

/** A person's answer over HTTP, until the model is asked again. */
const answering = Effect.gen(function* () {
  const isAsked = yield* Deferred.make<void>()
  const { url } = yield* serve({
    agent,
    skills: [population],
    model: model(
      (count) => {
        if (count !== 2) return
        span.end()
        Deferred.doneUnsafe(isAsked, Effect.void)
      },
      call,
      answer
    ),
    with: Layer.orDie(Policy.layerRules({ confirm: [{ name: "population" }] }))
  })
  const client = yield* clientOf(url)
  const runId = yield* client.start("clerk", "How many?")
  yield* Stream.runDrain(client.follow(runId))
  const questions = yield* client.questions(runId)
  const answers = questions.map(({ callId }) => ({ callId, approved: true }))
  const headers = { "content-type": "application/json" }
  span.begin()
  yield* Effect.promise(() =>
    fetch(`${url}/runs/${runId}/answers`, { method: "POST", headers, body: JSON.stringify({ answers }) })
  )
  yield* Deferred.await(isAsked)
})

const journeys: { readonly [name: string]: Effect.Effect<void, unknown, Scope.Scope> } = {
  run,
  token,
  resume,
  postgres,
  answer: answering
}
const [name = ""] = process.argv.slice(2)
const journey = journeys[name]
if (journey === undefined) throw new Error(`no journey '${name}'; there are: ${Object.keys(journeys).join(", ")}`)
await Effect.runPromise(Effect.scoped(journey))
console.log(JSON.stringify(span.entered))
process.exit(0)

/** The trace of a caller, through the HTTP door, workers, resumes and the requests to other services. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schedule, Schema, Stream, Tracer } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import {
  Agent,
  Kernel,
  MediaStore,
  Policy,
  ProtocolRegistry,
  RunStore,
  RunWorker,
  Skill,
  SkillRegistry,
  Telemetry
} from "kernai"
import { A2aClient } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { serve } from "./support/http.ts"
import { request, vendor } from "./support/provider.ts"
import { until } from "./support/until.ts"

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", dialect: "tools", skills: "all" })

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("paid")
})

const traceId = "0af7651916cd43dd8448eb211c80319c"
const spanId = "b7ad6b7169203331"
const traceparent = `00-${traceId}-${spanId}-01`

/** A tracer that keeps its spans. */
const tracer = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const made = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, layer: Layer.succeed(Tracer.Tracer, made) }
}

const spaced = Schedule.spaced("10 millis")

const agentsIn = (spans: ReadonlyArray<Tracer.NativeSpan>) =>
  spans.filter(({ name }) => name.startsWith("invoke_agent"))

const parentOf = ({ parent }: Tracer.NativeSpan) => Option.getOrUndefined(parent)?.spanId

const kernel = (model: MockProvider.Mock) =>
  Kernel.layer.pipe(
    Layer.provide([
      MockProvider.layerOf(model),
      SkillRegistry.layer(pay),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory
    ])
  )

describe("the trace of a caller", () => {
  it.live("holds the run that it started over HTTP", () =>
    Effect.gen(function* () {
      const { layer, spans } = tracer()
      const { url } = yield* serve({ agent, replies: ["Done."], skills: [pay], with: layer })
      yield* Effect.promise(() =>
        fetch(`${url}/runs`, {
          method: "POST",
          headers: { "content-type": "application/json", traceparent },
          body: JSON.stringify({ input: "Hello." })
        })
      )
      yield* until(() => agentsIn(spans).length === 1)
      assert.strictEqual(agentsIn(spans)[0]?.traceId, traceId)
    }).pipe(Effect.scoped)
  )

  it.live("holds what a worker of another process does for it, also after an answer from somebody else", () =>
    Effect.gen(function* () {
      const model = MockProvider.make({ calls: [{ name: "pay", params: {} }] }, "Paid.")
      const asks = Policy.layerRules({ confirm: [{ tool: "pay" }] })
      const store = yield* Effect.provide(RunStore.RunStore, RunStore.layerMemory)
      const Store = Layer.succeed(RunStore.RunStore, store)
      // The process that takes the request traces nothing itself.
      const caller = Tracer.externalSpan({ traceId, spanId, sampled: true })
      const runId = yield* Kernel.submit(agent, "Pay.").pipe(
        Effect.withSpan("a request", { parent: caller }),
        Effect.provide(Layer.provide(kernel(model), Store))
      )
      const { layer, spans } = tracer()
      const Worker = RunWorker.layer({ agents: [agent] }).pipe(
        Layer.provide(kernel(model)),
        Layer.provide([Store, Layer.orDie(asks), layer])
      )
      yield* Effect.gen(function* () {
        const questions = Effect.provide(Kernel.questions(runId), Store)
        yield* Effect.repeat(questions, { until: (open) => open.length === 1, schedule: spaced })
        const answers = (yield* questions).map(({ callId }) => ({ callId, approved: true }))
        yield* Kernel.answer(runId, answers).pipe(Effect.withSpan("another request"), Effect.provide(Store))
        yield* Effect.repeat(store.head(runId), {
          until: (head) => Option.isSome(head) && head.value.status.type === "completed",
          schedule: spaced
        })
      }).pipe(Effect.provide(Worker))
      const attempts = agentsIn(spans)
      assert.strictEqual(attempts.length, 2)
      for (const span of attempts) assert.deepStrictEqual([span.traceId, parentOf(span)], [traceId, spanId])
    }).pipe(Effect.scoped)
  )

  it.effect("is linked to a resume that belongs to another trace", () =>
    Effect.gen(function* () {
      const { layer, spans } = tracer()
      const caller = Tracer.externalSpan({ traceId, spanId, sampled: true })
      yield* Effect.gen(function* () {
        const runId = yield* Effect.withSpan(Kernel.submit(agent, "Hello."), "a request", { parent: caller })
        yield* Effect.withSpan(Kernel.resume(agent, runId), "a visit", { root: true })
        const [request, visit] = ["a request", "a visit"].map((name) => spans.find((span) => span.name === name))
        const [run] = agentsIn(spans)
        assert.strictEqual(run?.traceId, visit?.traceId)
        assert.deepStrictEqual(
          run?.links.map(({ span }) => span.spanId),
          [request?.spanId]
        )
      }).pipe(Effect.provide([Layer.provideMerge(kernel(MockProvider.make("Done.")), RunStore.layerMemory), layer]))
    })
  )

  it.effect("is not stored with a run that nobody traces", () =>
    Effect.gen(function* () {
      const runId = yield* Effect.withSpan(Kernel.submit(agent, "Hello."), "a request")
      const state = yield* RunStore.RunStore.use((store) => store.load(runId))
      assert.isUndefined(Option.getOrUndefined(state)?.trace)
    }).pipe(Effect.provide(Layer.provideMerge(kernel(MockProvider.make("Done.")), RunStore.layerMemory)))
  )

  it.effect("goes to vendors of models only where the application wants it", () =>
    Effect.gen(function* () {
      const sent: Array<string | undefined> = []
      const http = HttpClient.make((request) => {
        sent.push(request.headers["traceparent"])
        return Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}", { status: 400 })))
      })
      const provider = yield* vendor("anthropic")({}).pipe(Effect.provideService(HttpClient.HttpClient, http))
      const caller = Tracer.externalSpan({ traceId, spanId, sampled: true })
      const asked = Effect.withSpan(Effect.exit(Stream.runDrain(provider.stream(request()))), "a call", {
        parent: caller
      })
      yield* asked
      yield* Effect.provideService(asked, Telemetry.VendorPropagation, true)
      assert.isUndefined(sent[0])
      assert.match(sent[1] ?? "", new RegExp(`^00-${traceId}-`))
    })
  )

  it.effect("goes to an agent of another service over A2A", () =>
    Effect.gen(function* () {
      const sent: Array<string | undefined> = []
      const http = HttpClient.make((request) => {
        sent.push(request.headers["traceparent"])
        return Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}", { status: 200 })))
      })
      const asked = Effect.flatMap(A2aClient.make({ url: "https://billing.example" }), ({ ask }) =>
        Effect.exit(ask("?"))
      )
      yield* Effect.withSpan(asked, "a call", { parent: Tracer.externalSpan({ traceId, spanId, sampled: true }) }).pipe(
        Effect.provideService(HttpClient.HttpClient, http)
      )
      assert.match(sent[0] ?? "", new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`))
    })
  )
})

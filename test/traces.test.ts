/** The trace of a caller, through the HTTP door, workers, resumes and the requests to other services. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schedule, Schema, Stream } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
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
import { agentsIn, caller, parentOf, spanId, traceId, traceparent, tracer } from "./support/tracer.ts"
import { until } from "./support/until.ts"

const settings = { name: "clerk", instructions: "", model: "scripted", dialect: "tools", skills: "all" } as const

const agent = Agent.make(settings)

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("paid")
})

const spaced = Schedule.spaced("10 millis")

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
      const model = MockProvider.make({ calls: [{ name: "pay", input: {} }] }, "Paid.")
      const asks = Policy.layerRules({ confirm: [{ name: "pay" }] })
      const store = yield* Effect.provide(RunStore.RunStore, RunStore.layerMemory)
      const Store = Layer.succeed(RunStore.RunStore, store)
      // The process that takes the request traces nothing itself.
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

  it.live("holds the run, and the agents it calls, that another process executes for the door", () =>
    Effect.gen(function* () {
      const helper = Agent.make({ name: "helper", instructions: "", model: "scripted", dialect: "tools", skills: [] })
      const boss = Agent.make({ ...settings, name: "boss", agents: [helper] })
      const store = yield* Effect.provide(RunStore.RunStore, RunStore.layerMemory)
      const { url } = yield* serve({ agent: boss, store, options: { worker: false } })
      yield* Effect.promise(() =>
        fetch(`${url}/runs`, {
          method: "POST",
          headers: { "content-type": "application/json", traceparent },
          body: JSON.stringify({ input: "Hello.", runId: "one" })
        })
      )
      const { layer, spans } = tracer()
      const model = MockProvider.make({ calls: [{ name: "helper", input: { input: "Who?" } }] }, "Eva.", "Done.")
      const Worker = RunWorker.layer({ agents: [boss] }).pipe(
        Layer.provide(kernel(model)),
        Layer.provide([Layer.succeed(RunStore.RunStore, store), layer])
      )
      yield* Effect.provide(
        Effect.repeat(store.head("one"), {
          until: (head) => Option.isSome(head) && head.value.status.type === "completed",
          schedule: spaced
        }),
        Worker
      )
      const [run, called, ...more] = agentsIn(spans)
      assert.deepStrictEqual([run?.traceId, called?.traceId, more.length], [traceId, traceId, 0])
      assert.deepStrictEqual([run?.name, called?.name], ["invoke_agent boss", "invoke_agent helper"])
      assert.notStrictEqual(run && parentOf(run), undefined)
    }).pipe(Effect.scoped)
  )

  it.effect("holds a resume that belongs to no trace", () =>
    Effect.gen(function* () {
      const { layer, spans } = tracer()
      yield* Effect.gen(function* () {
        const runId = yield* Effect.withSpan(Kernel.submit(agent, "Hello."), "a request", { parent: caller })
        yield* Kernel.resume(agent, runId)
        const [run] = agentsIn(spans)
        const submitted = spans.find(({ name }) => name === "a request")
        assert.deepStrictEqual([run?.traceId, run && parentOf(run)], [traceId, submitted?.spanId])
      }).pipe(Effect.provide([Layer.provideMerge(kernel(MockProvider.make("Done.")), RunStore.layerMemory), layer]))
    })
  )

  it.effect("holds the runs of a schedule that it began, wherever they are executed", () =>
    Effect.gen(function* () {
      const store = yield* Effect.provide(RunStore.RunStore, RunStore.layerMemory)
      const Store = Layer.succeed(RunStore.RunStore, store)
      const model = MockProvider.make().onCall(() => "Done.")
      const often = { name: "often", cron: "*/10 * * * *", timeZone: "UTC" }
      const scheduled = Kernel.schedule(agent, "Report.", often).pipe(
        Effect.withSpan("a schedule", { parent: caller }),
        Effect.provide(Layer.provide(kernel(model), Store))
      )
      yield* Effect.forkChild(scheduled, { startImmediately: true })
      yield* TestClock.adjust("21 minutes")
      const { layer, spans } = tracer()
      const heads = yield* store.list({ order: "oldest" })
      for (const { runId } of heads) {
        yield* Effect.provide(Kernel.resume(agent, runId), [Layer.provide(kernel(model), Store), layer])
      }
      assert.isAtLeast(heads.length, 2)
      assert.deepStrictEqual(
        agentsIn(spans).map((span) => [span.traceId, parentOf(span)]),
        heads.map(() => [traceId, spanId])
      )
    }).pipe(Effect.scoped)
  )

  it.effect("is linked to a resume that belongs to another trace", () =>
    Effect.gen(function* () {
      const { layer, spans } = tracer()
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
      yield* Effect.withSpan(asked, "a call", { parent: caller }).pipe(
        Effect.provideService(HttpClient.HttpClient, http)
      )
      assert.match(sent[0] ?? "", new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`))
    })
  )
})

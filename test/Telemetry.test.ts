import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Context,
  Deferred,
  Effect,
  Exit,
  Fiber,
  Layer,
  Metric,
  Option,
  Redacted,
  Schema,
  Stream,
  Tracer
} from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  Kernel,
  MediaStore,
  Model,
  Protocol,
  ProtocolRegistry,
  type Provider,
  Redaction,
  type RunEvent,
  RunStore,
  Skill,
  SkillRegistry,
  type StreamPart
} from "kernai"
import { MockProvider, Scenario } from "kernai/testing"
import { ProviderError, RunPaused } from "../src/KernelError.ts"
import * as Telemetry from "../src/Telemetry.ts"
import { command, final } from "./support/blocks.ts"
import { kernel, of } from "./support/kernel.ts"
import { message } from "./support/runEvents.ts"
import { plan } from "./support/workflow.ts"

/** Runs a test with its own tracer and metric registry, and returns what they recorded. */
const observed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const spans: Array<Tracer.NativeSpan> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    const registry: Metric.MetricRegistry = new Map()
    const exit = yield* Effect.exit(effect).pipe(
      Effect.provideService(Tracer.Tracer, tracer),
      Effect.provideService(Metric.MetricRegistry, registry)
    )
    const metrics = Metric.snapshotUnsafe(Context.make(Metric.MetricRegistry, registry)).map((snapshot) => ({
      id: snapshot.id,
      attributes: Object.fromEntries(Object.entries(snapshot.attributes ?? {})),
      ...(snapshot.type === "Histogram" ? { count: snapshot.state.count, sum: snapshot.state.sum } : {})
    }))
    return { exit, spans, metrics }
  })

const attributesOf = (span: Tracer.NativeSpan | undefined) => Object.fromEntries(span?.attributes ?? [])

const usage = { inputTokens: 12, cachedTokens: 4, outputTokens: 30, reasoningTokens: 8 }
const secret = "Bearer sk-SECRET-0123456789abcdef"

class Refused extends Schema.TaggedError<Refused>()("Refused", { detail: Schema.String }) {}

describe("Telemetry", () => {
  it.effect("is enabled by its layer", () =>
    Effect.gen(function* () {
      const telemetry = yield* Telemetry.Telemetry
      assert.isDefined(telemetry)
    }).pipe(Effect.provide(Telemetry.layer()))
  )

  it.effect("nests model and skill calls in the run, with the names of the semantic conventions", () =>
    Effect.gen(function* () {
      const { chat, run, tool, workflow } = Telemetry.make()
      const { spans } = yield* observed(
        run(
          Effect.gen(function* () {
            yield* chat(Effect.sleep(300), {
              provider: "gemini",
              model: "gemini-2.5-pro",
              generation: { temperature: 0, maxTokens: 100 },
              runId: "run",
              rootRunId: "root",
              step: 2
            })
            yield* tool(Effect.void, { name: "search", kind: "skill", callId: "t.0", effects: "read" })
            yield* tool(Effect.void, { name: "mcp", kind: "protocol", callId: "t.1" })
            yield* workflow(Effect.void, { goal: secret, tasks: 3 })
          }),
          { agent: "helper", model: "gemini-2.5-pro", provider: "gemini", runId: "run", rootRunId: "root", depth: 1 }
        )
      ).pipe(withTime(300))
      assert.deepStrictEqual(
        spans.map((span) => [span.name, span.kind]),
        [
          ["invoke_agent helper", "internal"],
          ["chat gemini-2.5-pro", "client"],
          ["execute_tool search", "internal"],
          ["execute_tool mcp", "internal"],
          ["invoke_workflow", "internal"]
        ]
      )
      const [root, ...children] = spans
      for (const child of children) {
        assert.strictEqual(child.parent._tag === "Some" ? child.parent.value.spanId : "", root?.spanId)
        assert.strictEqual(child.status._tag, "Ended")
      }
      assert.deepStrictEqual(attributesOf(root), {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "helper",
        "gen_ai.request.model": "gemini-2.5-pro",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.conversation.id": "root",
        "kernai.run.id": "run",
        "kernai.run.root_id": "root",
        "kernai.run.depth": 1
      })
      assert.deepStrictEqual(attributesOf(children[0]), {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "gcp.gemini",
        "gen_ai.request.model": "gemini-2.5-pro",
        "gen_ai.request.stream": true,
        "gen_ai.request.temperature": 0,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.conversation.id": "root",
        "kernai.run.id": "run",
        "kernai.run.step": 2
      })
      assert.deepStrictEqual(attributesOf(children[1]), {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "t.0",
        "kernai.tool.effects": "read"
      })
      assert.strictEqual(attributesOf(children[2])["gen_ai.tool.type"], "extension")
      assert.deepStrictEqual(attributesOf(children[3]), {
        "gen_ai.operation.name": "invoke_workflow",
        "kernai.workflow.tasks": 3
      })
    })
  )

  it.effect("reports tokens, finish reason and time to first chunk, as spans and as metrics", () =>
    Effect.gen(function* () {
      const { chat } = Telemetry.make()
      const facts = { provider: "anthropic", model: "claude-sonnet-4" }
      const { metrics, spans } = yield* observed(
        Effect.andThen(
          chat(Effect.as(Effect.sleep(2_000), "reply"), facts, () => ({
            usage,
            finishReason: "stop",
            model: "claude-sonnet-4-20250514",
            firstChunkMs: 250
          })),
          chat(Effect.void, facts, () => ({ usage: null }))
        )
      ).pipe(withTime(2_000))
      const told = attributesOf(spans[0])
      assert.deepStrictEqual(told["gen_ai.response.finish_reasons"], ["stop"])
      assert.strictEqual(told["gen_ai.response.time_to_first_chunk"], 0.25)
      assert.strictEqual(told["gen_ai.response.model"], "claude-sonnet-4-20250514")
      assert.deepStrictEqual(
        [
          told["gen_ai.usage.input_tokens"],
          told["gen_ai.usage.output_tokens"],
          told["gen_ai.usage.cache_read.input_tokens"],
          told["gen_ai.usage.reasoning.output_tokens"]
        ],
        [12, 30, 4, 8]
      )
      // Not reported is not zero (BP-102).
      assert.notProperty(attributesOf(spans[1]), "gen_ai.usage.input_tokens")

      const common = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4"
      }
      const find = (id: string) => metrics.filter((metric) => metric.id === id)
      assert.deepStrictEqual(find("gen_ai.client.operation.duration"), [
        { id: "gen_ai.client.operation.duration", attributes: { unit: "s", ...common }, count: 2, sum: 2 }
      ])
      assert.deepStrictEqual(
        find("gen_ai.client.token.usage").map(({ attributes, sum }) => [attributes["gen_ai.token.type"], sum]),
        [
          ["input", 12],
          ["output", 30]
        ]
      )
      assert.strictEqual(find("gen_ai.client.operation.time_to_first_chunk")[0]?.sum, 0.25)
    })
  )

  it.effect("reports a failure by its tag, without the text of a skill or a defect (S-7)", () =>
    Effect.gen(function* () {
      const { chat, tool } = Telemetry.make()
      const call = { name: "login", kind: "skill", callId: "t.0" } as const
      const limited = new ProviderError({ provider: "openai", reason: "rate_limited", detail: "slow down" })
      const { metrics, spans } = yield* observed(
        Effect.all(
          [
            Effect.exit(tool(Effect.fail(new Refused({ detail: secret })), call)),
            Effect.exit(tool(Effect.die(new Error(secret)), call)),
            Effect.exit(tool(Effect.succeed("x"), call, () => ({ error: "InvalidArguments" }))),
            Effect.exit(chat(Effect.fail(limited), { provider: "openai", model: "gpt-4o" })),
            Effect.exit(chat(Effect.die(new TypeError(secret)), { provider: "openai", model: "gpt-4o" }))
          ],
          { concurrency: 1 }
        )
      )
      assert.deepStrictEqual(
        spans.map((span) => attributesOf(span)["error.type"]),
        ["Refused", "Error", "InvalidArguments", "rate_limited", "TypeError"]
      )
      for (const span of spans) {
        assert.isTrue(span.status._tag === "Ended" && Exit.isFailure(span.status.exit))
        const cause =
          span.status._tag === "Ended" && Exit.isFailure(span.status.exit) ? span.status.exit.cause : Cause.empty
        assert.notInclude(Cause.pretty(cause), "SECRET")
      }
      assert.deepStrictEqual(
        metrics
          .filter(({ id }) => id === "gen_ai.execute_tool.duration")
          .map((metric) => metric.attributes["error.type"]),
        ["Refused", "Error", "InvalidArguments"]
      )
    })
  )

  it.effect("does not report a pause as a failure", () =>
    Effect.gen(function* () {
      const { run } = Telemetry.make()
      const paused = new RunPaused({ runId: "run", reason: "approval", metadata: null })
      const { exit, spans } = yield* observed(run(Effect.fail(paused), { agent: "helper", model: "m" }))
      assert.strictEqual(Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined, paused)
      assert.isTrue(attributesOf(spans[0])["kernai.run.paused"])
      assert.notProperty(attributesOf(spans[0]), "error.type")
      assert.isTrue(spans[0]?.status._tag === "Ended" && Exit.isSuccess(spans[0].status.exit))
    })
  )

  it.effect("captures messages only when enabled, redacted, and without media (S-7, CP-9)", () =>
    Effect.gen(function* () {
      let asked = 0
      const input = () => {
        asked += 1
        return [
          message("system", `rules ${secret}`),
          message("user", "hi"),
          {
            role: "assistant" as const,
            content: [
              { type: "thinking" as const, content: "hidden", redacted: true },
              { type: "image" as const, data: new Uint8Array(9_999), mediaType: "image/png" }
            ]
          }
        ]
      }
      const talk = ({ chat, tool, workflow }: Telemetry.TelemetryShape) =>
        Effect.gen(function* () {
          const output = () => message("assistant", "hello")
          yield* chat(Effect.void, { provider: "openai", model: "gpt-4o", input }, () => ({ output }))
          const io = {
            name: "login",
            kind: "skill",
            callId: "t.0",
            input: () => ({ key: secret, [secret]: 1 })
          } as const
          yield* tool(Effect.void, io, () => ({ output: () => secret }))
          yield* workflow(Effect.void, { goal: "compare", tasks: 1 })
        })
      const silent = yield* observed(talk(Telemetry.make()))
      assert.strictEqual(asked, 0)
      assert.notInclude(JSON.stringify(silent.spans.map(attributesOf)), "hi")

      const redact = (text: string) => text.replaceAll(/sk-[\w-]+/g, "[key]")
      const { spans } = yield* observed(talk(Telemetry.make({ captureContent: true, redact })))
      const told = attributesOf(spans[0])
      assert.strictEqual(
        told["gen_ai.system_instructions"],
        JSON.stringify([{ type: "text", content: "rules Bearer [key]" }])
      )
      assert.deepStrictEqual(JSON.parse(String(told["gen_ai.input.messages"])), [
        { role: "user", parts: [{ type: "text", content: "hi" }] },
        {
          role: "assistant",
          parts: [
            { type: "reasoning", content: "" },
            { type: "media", modality: "image", mime_type: "image/png" }
          ]
        }
      ])
      assert.deepStrictEqual(JSON.parse(String(told["gen_ai.output.messages"])), [
        { role: "assistant", parts: [{ type: "text", content: "hello" }] }
      ])
      assert.strictEqual(
        attributesOf(spans[1])["gen_ai.tool.call.arguments"],
        `{"key":"Bearer [key]","Bearer [key]":1}`
      )
      assert.strictEqual(attributesOf(spans[1])["gen_ai.tool.call.result"], `"Bearer [key]"`)
      assert.strictEqual(attributesOf(spans[2])["kernai.workflow.goal"], `"compare"`)
    })
  )

  it.effect("preserves values, failures and interruption, whatever its readers do (R-23)", () =>
    Effect.gen(function* () {
      const { chat, tool } = Telemetry.make()
      const call = { name: "slow", kind: "skill", callId: "t.0" } as const
      const { spans } = yield* observed(
        Effect.gen(function* () {
          const value = yield* chat(Effect.succeed(42), { provider: "openai", model: "gpt-4o" }, () => {
            throw new Error("a reader that throws")
          })
          assert.strictEqual(value, 42)
          assert.strictEqual(yield* Effect.flip(tool(Effect.fail("as it was"), call)), "as it was")
          const started = yield* Deferred.make<void>()
          let stopped = false
          const fiber = yield* tool(
            Deferred.succeed(started, undefined).pipe(
              Effect.andThen(Effect.never),
              Effect.onInterrupt(() => Effect.sync(() => (stopped = true)))
            ),
            call
          ).pipe(Effect.forkChild)
          yield* Deferred.await(started)
          yield* Fiber.interrupt(fiber)
          assert.isTrue(stopped)
          assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
        })
      )
      assert.isTrue(spans.every((span) => span.status._tag === "Ended"))
      assert.strictEqual(attributesOf(spans[2])["error.type"], "interrupted")
    })
  )
})

describe("a run", () => {
  const agent = Agent.make({ name: "helper", instructions: "", model: "m" })
  const run = Effect.suspend(() => Kernel.run(agent, "my secret", { provider: MockProvider.make(final("ok")) }))
  const names = (spans: ReadonlyArray<Tracer.NativeSpan>) => spans.map(({ name }) => name)

  it.effect("is traced without its contents if its fiber has a Tracer", () =>
    Effect.gen(function* () {
      const { metrics, spans } = yield* observed(run)
      assert.deepStrictEqual(names(spans), ["invoke_agent helper", "chat m"])
      assert.include(
        metrics.map(({ id }) => id),
        "gen_ai.client.operation.duration"
      )
      assert.notInclude(JSON.stringify(spans.map(attributesOf)), "secret")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is not traced if only its kernel was built under a Tracer", () =>
    Effect.gen(function* () {
      const { exit, spans } = yield* observed(Layer.build(kernel()))
      yield* Effect.provideContext(run, yield* exit)
      assert.deepStrictEqual(names(spans), [])
    })
  )

  it.effect("is neither traced nor measured without a Tracer", () =>
    Effect.gen(function* () {
      const registry: Metric.MetricRegistry = new Map()
      yield* Effect.provideService(run, Metric.MetricRegistry, registry)
      assert.strictEqual(registry.size, 0)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is not traced with layerOff, at the kernel or at the fiber", () =>
    Effect.gen(function* () {
      const atKernel = yield* observed(run.pipe(Effect.provide(kernel().pipe(Layer.provide(Telemetry.layerOff)))))
      const atFiber = yield* observed(run.pipe(Effect.provide([kernel(), Telemetry.layerOff])))
      assert.deepStrictEqual([names(atKernel.spans), names(atFiber.spans)], [[], []])
    })
  )
})

describe("a run with telemetry", () => {
  const under = (options: Telemetry.Options) =>
    Effect.provideService(Telemetry.Telemetry, Telemetry.make({ captureContent: true, ...options }))
  const agent = Agent.make({ name: "helper", instructions: "", model: "m", skills: "all" })

  it.effect("records inputs and results of its skills and protocols, without known secrets (S-7)", () => {
    const echo = Skill.dynamic("echo", {
      description: "Echoes",
      inputSchema: { type: "object" },
      execute: (input) => Effect.succeed({ said: input, [secret]: secret })
    })
    const fake = Protocol.make("fake", { handle: ({ content }) => Effect.succeed(`got ${content} and ${secret}`) })
    const layer = Kernel.layerNoProvider.pipe(
      Layer.provide([
        SkillRegistry.layer(echo),
        ProtocolRegistry.layer(fake),
        MediaStore.layerMemory,
        RunStore.layerMemory
      ])
    )
    return Effect.gen(function* () {
      const spoken = `<block type="fake">ping ${secret}</block>`
      const provider = MockProvider.make(`${command("echo", { n: 1, key: secret })}${spoken}`, final("ok"))
      const { spans } = yield* observed(Kernel.run(agent, "go", { provider }).pipe(under({})))
      const told = spans.filter(({ name }) => name.startsWith("execute_tool ")).map(attributesOf)
      assert.deepStrictEqual(
        told.map((span) => [
          span["gen_ai.tool.name"],
          span["gen_ai.tool.call.arguments"],
          span["gen_ai.tool.call.result"]
        ]),
        [
          ["echo", `{"n":1,"key":"<redacted>"}`, `{"said":{"n":1,"key":"<redacted>"},"<redacted>":"<redacted>"}`],
          ["fake", `"ping <redacted>"`, `"got ping <redacted> and <redacted>"`]
        ]
      )
    }).pipe(
      Effect.provideService(Redaction.Redaction, Redaction.make({ secrets: [Redacted.make(secret)] })),
      Effect.provide(layer)
    )
  })

  it.effect("records the vendor's reply id and model, the times of its chunks, and no unknown price", () =>
    Effect.gen(function* () {
      const reported = {
        inputTokens: { total: 10, uncached: 10, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 5, text: 5, reasoning: 0 }
      }
      const reply = (about: { readonly id?: string; readonly modelId?: string }): Provider.ProviderShape => ({
        name: "vendor",
        stream: () =>
          Stream.concat(
            Stream.succeed<StreamPart.StreamPart>({ type: "response-metadata", ...about }),
            Stream.fromIterable<StreamPart.StreamPart>([
              { type: "text-delta", id: "0", delta: "Hi" },
              { type: "finish", reason: "stop", usage: reported }
            ]).pipe(
              Stream.rechunk(1),
              Stream.mapEffect((part) => Effect.delay(Effect.succeed(part), "2 seconds"))
            )
          )
      })
      const seen = (model: Model.Model, about: { readonly id?: string; readonly modelId?: string }) =>
        Effect.gen(function* () {
          const agent = Agent.make({ instructions: "", model })
          const running = observed(Kernel.run(agent, "go", { provider: reply(about) }).pipe(under({})))
          const { metrics, spans } = yield* running.pipe(withTime(10_000))
          const of = (start: string) => attributesOf(spans.find(({ name }) => name.startsWith(start)))
          return { chat: of("chat"), run: of("invoke_agent"), metrics }
        })
      const priced = Model.make("alias", { price: { inputPerMillion: 1, outputPerMillion: 2 } })

      const sent = yield* seen(priced, { id: "resp_1", modelId: "alias-2026-01-01" })
      assert.strictEqual(sent.chat["gen_ai.request.model"], "alias")
      assert.strictEqual(sent.chat["gen_ai.response.model"], "alias-2026-01-01")
      assert.strictEqual(sent.chat["gen_ai.response.id"], "resp_1")
      assert.closeTo(Number(sent.chat["kernai.cost_usd"]), 0.00002, 1e-9)
      assert.closeTo(Number(sent.run["kernai.cost_usd"]), 0.00002, 1e-9)
      const gaps = sent.metrics.find(({ id }) => id === "gen_ai.client.operation.time_per_output_chunk")
      assert.deepInclude(gaps, { count: 2, sum: 4 })

      const silent = yield* seen(Model.make("alias"), {})
      for (const name of ["gen_ai.response.model", "gen_ai.response.id", "kernai.cost_usd"]) {
        assert.notProperty(silent.chat, name)
        assert.notProperty(silent.run, name)
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("has a span even when it is refused at the start", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(final("ok"))
      yield* Kernel.run(agent, "go", { provider, runId: "r" })
      const again = Effect.flip(Kernel.run(agent, "go", { provider, runId: "r" }))
      const { spans } = yield* observed(again.pipe(under({})))
      const run = spans.find(({ name }) => name === "invoke_agent helper")
      assert.strictEqual(run === undefined ? undefined : attributesOf(run)["error.type"], "RunExists")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("has a span for each resume, also a refused one, unless it had ended before", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("", final("ok")).failOnStep(0)
      const ends = (effect: Effect.Effect<unknown, unknown, Kernel.Kernel>) =>
        Effect.map(observed(Effect.exit(effect).pipe(under({}))), ({ spans }) =>
          spans
            .filter(({ name }) => name === "invoke_agent helper")
            .map((span) => attributesOf(span)["error.type"] ?? "ended")
        )
      assert.deepStrictEqual(yield* ends(Kernel.run(agent, "go", { provider, runId: "r" })), ["server_error"])
      const unasked = { provider, answers: [{ callId: "none", approved: true }] }
      assert.deepStrictEqual(yield* ends(Kernel.resume(agent, "r", unasked)), ["QuestionNotFound"])
      assert.deepStrictEqual(yield* ends(Kernel.resume(agent, "r", { provider })), ["ended"])
      assert.deepStrictEqual(yield* ends(Kernel.resume(agent, "r", { provider })), [])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("reports usage, cost and duration of its model calls (AC-6)", () =>
    Effect.gen(function* () {
      const model = Model.make("m", { price: { inputPerMillion: 1_000_000, outputPerMillion: 0 } })
      const agent = Agent.make({ name: "a", instructions: "", model })
      const provider = MockProvider.make("four words of answer")
        .withTokenCounter(() => ({ input: 3, output: 4 }))
        .withChunking(4)
        .withDelay({ first: 100, between: 50 })
      // The time is measured from the model call, not from the epoch.
      yield* TestClock.adjust(1_000)
      const events: Array<RunEvent.RunEvent> = []
      const { spans } = yield* observed(
        Stream.runForEach(Kernel.stream(agent, "go", { provider }), (event) => Effect.sync(() => events.push(event)))
      ).pipe(withTime(1_000))
      const chat = attributesOf(spans.find(({ name }) => name === "chat m"))
      assert.deepInclude(chat, {
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.response.time_to_first_chunk": 0.1
      })
      const told = of(events, "llm_response").map(({ latencyMs }) => latencyMs)
      const kept = of(events, "model_completed").map(({ costUsd, latencyMs }) => [latencyMs, costUsd])
      assert.deepStrictEqual([told, kept], [[350], [[350, 3]]])
    }).pipe(Effect.provide(Layer.merge(kernel(), Telemetry.layer())))
  )

  it.effect("has a span that repeats no tokens of the spans below it, under names that nobody adds up", () =>
    Effect.gen(function* () {
      const provider = Scenario.scripted({ root: [plan(["a"]), final("ok")], tasks: { a: [final("A")] } })
      const counted: Provider.ProviderShape = {
        ...provider,
        stream: (request) =>
          Stream.map(provider.stream(request), (part) =>
            part.type === "finish"
              ? {
                  ...part,
                  usage: { inputTokens: { total: 10, cacheRead: 4 }, outputTokens: { total: 3, reasoning: 1 } }
                }
              : part
          )
      }
      const { spans } = yield* observed(Kernel.run(agent, "go", { provider: counted, runId: "r" }).pipe(under({})))
      const sumOf = (name: string) =>
        spans.reduce((sum, span) => sum + Number(attributesOf(span)[`gen_ai.usage.${name}`] ?? 0), 0)
      const [root] = spans.filter(({ name }) => name === "invoke_agent helper").map(attributesOf)
      const totals = { input_tokens: 30, output_tokens: 9, "cache_read.input_tokens": 12 }
      for (const [name, total] of Object.entries({ ...totals, "reasoning.output_tokens": 3 })) {
        assert.strictEqual(sumOf(name), total, name)
        assert.strictEqual(root?.[`gen_ai.aggregated_usage.${name}`], total, name)
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("has a span with its ids, with a nested span for each task", () =>
    Effect.gen(function* () {
      const provider = Scenario.scripted({ root: [plan(["a"]), final("ok")], tasks: { a: [final("A")] } })
      const { spans } = yield* observed(Kernel.run(agent, "go", { provider, runId: "r" }).pipe(under({})))
      const runs = spans.filter(({ name }) => name === "invoke_agent helper")
      assert.deepStrictEqual(
        runs
          .map(attributesOf)
          .map((span) => [span["kernai.run.id"], span["kernai.run.depth"], span["kernai.run.turns"]]),
        [
          ["r", 0, 2],
          ["r:t1/a", 1, 1]
        ]
      )
      for (const span of runs) assert.strictEqual(attributesOf(span)["gen_ai.conversation.id"], "r")
      const chats = spans.filter(({ name }) => name === "chat m")
      assert.deepStrictEqual(
        chats.map(({ parent }) => Option.getOrThrow(parent).spanId),
        [runs[0]?.spanId, runs[1]?.spanId, runs[0]?.spanId]
      )
      const workflow = spans.find(({ name }) => name === "invoke_workflow")
      assert.strictEqual(Option.getOrThrow(runs[1]?.parent ?? Option.none()).spanId, workflow?.spanId)
    }).pipe(Effect.provide(kernel()))
  )
})

/** Lets an effect sleep through this many milliseconds of the TestClock. */
const withTime =
  (millis: number) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(effect)
      yield* TestClock.adjust(millis)
      return yield* Fiber.join(fiber)
    })

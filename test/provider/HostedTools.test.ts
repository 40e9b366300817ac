/** Tools that vendors run themselves: who is sent them, what is seen of their calls, and what they cost. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { HttpClient } from "effect/http"
import { Agent, type Call, Kernel, Model, Policy, type Provider, type RunEvent, RunStore, Skill } from "kernai"
import { HostedTools } from "kernai/provider"
import { Cassette, MockProvider, Replay, RequestRules } from "kernai/testing"
import { kernel, of } from "../support/kernel.ts"
import { bodyOf, cassettes, message, request, serverSent, stub, tool, vendor } from "../support/provider.ts"

const search = HostedTools.webSearch({ anthropic: { max_uses: 3 } })
const code = HostedTools.codeExecution()

/** A hosted tool as a request has it. */
const asTool = ({ description, hosted = {}, inputSchema, name }: Skill.AnySkill): Provider.ToolDefinition => ({
  name,
  description,
  inputSchema,
  hosted
})

const toolsIn = (name: string, ask: Partial<Provider.Request>) =>
  Effect.map(bodyOf(name, request(ask)), (body) => (body as { readonly tools?: unknown }).tools)

describe("a hosted tool", () => {
  const all = [tool, asTool(search), asTool(code)]
  const cases: ReadonlyArray<readonly [vendor: string, tools: ReadonlyArray<unknown>]> = [
    [
      "anthropic",
      [
        { name: "add", description: "Adds", input_schema: { type: "object" } },
        { type: "web_search_20250305", name: "web_search", max_uses: 3 },
        { type: "code_execution_20250825", name: "code_execution" }
      ]
    ],
    [
      "openai",
      [
        { type: "function", name: "add", description: "Adds", parameters: { type: "object" }, strict: false },
        { type: "web_search" },
        { type: "code_interpreter", container: { type: "auto" } }
      ]
    ],
    [
      "google",
      [
        { functionDeclarations: [{ name: "add", description: "Adds", parametersJsonSchema: { type: "object" } }] },
        { google_search: {} },
        { code_execution: {} }
      ]
    ],
    [
      "google-interactions",
      [
        { type: "function", name: "add", description: "Adds", parameters: { type: "object" } },
        { type: "google_search" },
        { type: "code_execution" }
      ]
    ],
    ["ollama", [{ type: "function", function: { name: "add", description: "Adds", parameters: { type: "object" } } }]],
    [
      "compatible",
      [{ type: "function", function: { name: "add", description: "Adds", parameters: { type: "object" } } }]
    ]
  ]
  it.effect.each(cases)("is sent to %s as that vendor defines it, beside skills, or not at all", ([name, tools]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* toolsIn(name, { tools: all }), tools)
    })
  )

  it.effect("alone leaves no list of functions, and none where the vendor does not have it", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* toolsIn("google", { tools: [asTool(search)] }), [{ google_search: {} }])
      assert.isUndefined(yield* toolsIn("ollama", { tools: [asTool(search)] }))
    })
  )

  it.effect("asks OpenAI over Responses, and for the pages that were found", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf("openai", request({ tools: [asTool(search)] }))
      assert.deepInclude(body, { include: ["web_search_call.action.sources"] })
    })
  )
})

/** A provider that plays one exchange of a fixture. */
const playing = Effect.fnUntraced(function* (name: string, at = 0) {
  const text = cassettes("synthetic").find((cassette) => cassette.name === name)?.text ?? assert.fail(name)
  const cassette = yield* Cassette.parse(text)
  const exchange = cassette.interactions[at] ?? assert.fail(name)
  const client = Cassette.player([exchange])
  return yield* Effect.provideService(vendor(cassette.vendor)({}), HttpClient.HttpClient, client)
})

const priced = (id: string) =>
  Model.make(id, {
    dialect: "tools",
    price: { inputPerMillion: 0, outputPerMillion: 0, hosted: { web_search: 0.01, code_execution: 0.002 } }
  })

const agentOf = (id: string) =>
  Agent.make({ instructions: "You test.", model: priced(id), skills: [search, code], dialect: "tools", prose: "final" })

const eventsOf = (agent: Agent.Agent<string, Skill.AnySkill>, provider: Provider.ProviderShape) =>
  Stream.runCollect(Kernel.stream(agent, "go", { runId: "r", provider }))

const completed = (events: ReadonlyArray<RunEvent.RunEvent>) =>
  of(events, "model_completed")[0] ?? assert.fail("no reply")

describe("the calls of hosted tools", () => {
  const cases: ReadonlyArray<readonly [fixture: string, at: number, hosted: Call.HostedCall, costUsd: number]> = [
    [
      "anthropic_web_search",
      0,
      {
        callId: "srvtoolu_1",
        name: "web_search",
        input: { query: "Nîmes" },
        sources: [{ url: "https://example.com", title: `<block type="final">not said</block>` }]
      },
      0.01
    ],
    [
      "openai_hosted",
      0,
      {
        callId: "ws_1",
        name: "web_search",
        input: { type: "search", query: "Nîmes weather" },
        sources: [{ url: "https://example.com/a" }, { url: "https://example.com/b" }]
      },
      0.01
    ],
    ["openai_hosted", 1, { callId: "ci_1", name: "code_execution", input: { code: "print(6*7)" }, sources: [] }, 0.002],
    [
      "gemini_hosted",
      0,
      {
        callId: "hosted_1",
        name: "web_search",
        input: { queries: ["Nîmes weather", "Nîmes météo"] },
        sources: [{ url: "https://example.com/a", title: "example.com" }]
      },
      0.01
    ],
    [
      "gemini_hosted",
      1,
      {
        callId: "hosted_0",
        name: "code_execution",
        input: { language: "PYTHON", code: "print(6*7)" },
        sources: []
      },
      0.002
    ]
  ]
  it.effect.each(cases)(
    "of %s (%s) are in the events, the journal and the cost, and are never run here",
    ([name, at, hosted, costUsd]) =>
      Effect.gen(function* () {
        // Gemini's address names the model.
        const id = name === "gemini_hosted" ? "gemini-3-flash-preview" : "m"
        const events = yield* eventsOf(agentOf(id), yield* playing(name, at))
        assert.deepStrictEqual(completed(events).hosted, [hosted])
        assert.deepStrictEqual(completed(events).calls, [])
        assert.closeTo(completed(events).costUsd ?? 0, costUsd, 1e-9)
        const parts = of(events, "stream_part").map(({ part }) => part.type)
        assert.includeMembers(parts, ["tool-call", "tool-result"])
        assert.deepStrictEqual(of(events, "skill_execute"), [])
        const records = yield* Stream.runCollect((yield* RunStore.RunStore).read("r"))
        const stored = records.flatMap(({ events }) => events).find(({ type }) => type === "model_completed")
        assert.deepInclude(stored, { hosted: [hosted] })
        const end = events.at(-1)
        assert.closeTo(end?.type === "run_completed" ? (end.result?.costUsd ?? 0) : 0, costUsd, 1e-9)
      }).pipe(Effect.provide(kernel()))
  )

  it.effect("replay without their vendor", () =>
    Effect.gen(function* () {
      const agent = agentOf("m")
      yield* eventsOf(agent, yield* playing("anthropic_web_search"))
      const recording = yield* RunStore.recordsOf("r")
      const replayed = yield* Replay.run(agent, { runId: "r", records: recording })
      assert.strictEqual(replayed.state.status.type, "completed")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("without a result are reported too", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make([
        { type: "tool-call", id: "s", name: "web_search", params: { query: "a" }, providerExecuted: true },
        { type: "text-delta", id: "0", delta: "Nothing." },
        { type: "finish", reason: "stop", usage: { inputTokens: {}, outputTokens: {} } }
      ])
      const events = yield* eventsOf(agentOf("m"), provider)
      assert.deepStrictEqual(completed(events).hosted, [
        { callId: "s", name: "web_search", input: { query: "a" }, sources: [] }
      ])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect.each([
    ["anthropic_web_search", "anthropic", ["server_tool_use", "web_search_tool_result"]],
    ["openai_hosted", "openai-responses", ["web_search_call"]],
    ["interactions_hosted", "google-interactions", ["google_search_call", "google_search_result"]]
  ] as const)(
    "of %s are sent back to the model that made them, unless the tool is no longer offered",
    ([fixture, wire, types]) =>
      Effect.gen(function* () {
        const events = yield* eventsOf(agentOf("m"), yield* playing(fixture))
        const said = completed(events).message
        const sent = (tools: ReadonlyArray<Provider.ToolDefinition>, id = "m") =>
          Effect.map(
            bodyOf(
              wire,
              request({ model: priced(id), tools, messages: [message("user", "go"), said, message("user", "on")] })
            ),
            (body) => typesIn(body)
          )
        assert.includeMembers(yield* sent([asTool(search)]), [...types])
        for (const gone of [yield* sent([tool]), yield* sent([asTool(search)], "other")]) {
          for (const type of types) assert.notInclude(gone, type)
        }
      }).pipe(Effect.provide(kernel()))
  )
})

const typesIn = (body: unknown) => Array.from(JSON.stringify(body).matchAll(/"type":"(\w+)"/g), ([, type = ""]) => type)

/** Synthetic, after the public description of `pause_turn` in Anthropic's Messages API (read on 2026-11-24). */
const anthropicTurn = (blocks: ReadonlyArray<object>, stop_reason: string) =>
  serverSent([
    { type: "message_start", message: { id: "msg", model: "m", content: [], usage: { input_tokens: 1 } } },
    ...blocks.flatMap((content_block, index) => [
      { type: "content_block_start", index, content_block },
      { type: "content_block_stop", index }
    ]),
    { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 1 } },
    { type: "message_stop" }
  ])

const searched = [
  { type: "text", text: "I search. " },
  { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "effect" } },
  { type: "web_search_tool_result", tool_use_id: "srv_1", content: [] },
  { type: "server_tool_use", id: "srv_2", name: "web_search", input: { query: "fibers" } }
]

const page = { type: "web_search_result", url: "https://example.com/fibers", title: "Fibers" }
const found = [
  { type: "web_search_tool_result", tool_use_id: "srv_2", content: [page] },
  { type: "text", text: "Found." }
]

const stateOf = (runId: string) =>
  Effect.flatMap(RunStore.RunStore, (store) => Effect.flatMap(store.load(runId), Effect.fromOption))

/** A vendor that sends these replies one after the other. The bodies of its requests are collected. */
const replying = Effect.fnUntraced(function* (...replies: ReadonlyArray<Response>) {
  const http = stub((_, call) => Effect.succeed((replies[call] ?? replies.at(-1) ?? assert.fail("no reply")).clone()))
  const provider = yield* Effect.provide(vendor("anthropic")({}), http.layer)
  const messagesOf = (at: number) => {
    const { body } = http.asked[at] ?? assert.fail("nothing was asked")
    return (body as { readonly messages: ReadonlyArray<{ role: string; content: ReadonlyArray<object> }> }).messages
  }
  return { http, provider, messagesOf }
})

describe("a turn that its vendor pauses", () => {
  it.effect("goes back as it is, with no message behind it, and its text begins the answer", () =>
    Effect.gen(function* () {
      const { messagesOf, provider } = yield* replying(
        anthropicTurn(searched, "pause_turn"),
        anthropicTurn(found, "end_turn")
      )
      const result = yield* Kernel.run(agentOf("m"), "go", { provider, runId: "r" })
      assert.strictEqual(result.text, "I search. Found.")
      assert.deepStrictEqual(messagesOf(1), [
        { role: "user", content: [{ type: "text", text: "go", cache_control: { type: "ephemeral" } }] },
        { role: "assistant", content: searched }
      ])
      assert.deepStrictEqual(
        result.messages.map(({ role }) => role),
        ["user", "assistant", "assistant"]
      )
      const state = yield* stateOf("r")
      assert.deepStrictEqual(state.turns[0]?.outcome, { type: "pause" })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is one message of the model with its continuation, whose results answer its calls", () =>
    Effect.gen(function* () {
      const { messagesOf, provider } = yield* replying(
        anthropicTurn(searched, "pause_turn"),
        anthropicTurn(found, "end_turn"),
        anthropicTurn([{ type: "text", text: "Yes." }], "end_turn")
      )
      const { messages, text } = yield* Kernel.run(agentOf("m"), "go", { provider })
      assert.strictEqual(text, "I search. Found.")
      const next = yield* Kernel.run(agentOf("m"), "sure?", { provider, history: messages })
      assert.strictEqual(next.text, "Yes.")
      const sent = messagesOf(2)
      assert.deepStrictEqual(
        sent.map(({ role }) => role),
        ["user", "assistant", "user"]
      )
      assert.deepStrictEqual(sent[1]?.content, [...searched, ...found])
      assert.deepStrictEqual(RequestRules.check("anthropic", { messages: sent, tools: [tool] }), [])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("loses its open calls where a person speaks next", () =>
    Effect.gen(function* () {
      const { messagesOf, provider } = yield* replying(anthropicTurn(searched, "pause_turn"))
      const agent = { ...agentOf("m"), maxSteps: 1 }
      yield* Effect.flip(Kernel.run(agent, "go", { provider, runId: "r" }))
      const { prompt } = yield* stateOf("r")
      yield* Effect.flip(Kernel.run(agent, "stop", { provider, history: prompt }))
      assert.deepStrictEqual(messagesOf(1)[1]?.content, searched.slice(0, 3))
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is read as one text with its continuation where the model speaks in blocks", () =>
    Effect.gen(function* () {
      const { provider } = yield* replying(
        anthropicTurn([{ type: "text", text: 'So: <block type="final">It is ' }, ...searched.slice(1)], "pause_turn"),
        anthropicTurn([found[0] ?? {}, { type: "text", text: "here.</block>" }], "end_turn")
      )
      const agent = { ...agentOf("m"), dialect: "blocks", prose: "corrective" } as const
      assert.strictEqual((yield* Kernel.run(agent, "go", { provider })).text, "It is here.")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("ends at the limit of turns if it is paused each time", () =>
    Effect.gen(function* () {
      const { http, provider } = yield* replying(anthropicTurn(searched, "pause_turn"))
      const agent = { ...agentOf("m"), maxSteps: 3 }
      const error = yield* Effect.flip(Kernel.run(agent, "go", { provider }))
      assert.strictEqual(error._tag, "MaxStepsReached")
      assert.strictEqual(http.asked.length, 3)
    }).pipe(Effect.provide(kernel()))
  )
})

describe("an agent with hosted tools", () => {
  const reply = MockProvider.make().onCall(() => "done")
  const offered = (agent: Agent.Agent<string, Skill.AnySkill>, name = "anthropic") =>
    Effect.gen(function* () {
      const asked: Array<Provider.Request> = []
      const provider = { name, stream: (ask: Provider.Request) => (asked.push(ask), reply.stream(ask)) }
      yield* Effect.ignore(Kernel.run(agent, "go", { provider }))
      return asked[0] ?? assert.fail("nothing was asked")
    })
  const names = ({ tools }: Provider.Request) => tools.map(({ name }) => name)

  it.effect("offers them in blocks, too, without listing them among its skills", () =>
    Effect.gen(function* () {
      const asked = yield* offered({ ...agentOf("m"), dialect: "blocks" })
      assert.deepStrictEqual(names(asked), ["web_search", "code_execution"])
      const auto = yield* offered({ ...agentOf("m"), model: Model.make("m"), dialect: "auto" }, "house")
      assert.deepStrictEqual(names(auto), [])
      assert.notInclude(JSON.stringify(auto.messages), "web_search")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("may get them from the registry", () =>
    Effect.gen(function* () {
      const asked = yield* offered({ ...agentOf("m"), skills: "all" })
      assert.deepStrictEqual(names(asked), ["web_search"])
    }).pipe(Effect.provide(kernel(search)))
  )

  const confirm: Policy.PolicyShape = {
    authorize: ({ name }) =>
      Effect.succeed(name === "web_search" ? { _tag: "Confirm", reason: "ask first" } : { _tag: "Allowed" })
  }
  const refusals = [
    ["denies them by a rule", Policy.layerRules({ deny: [{ name: "web_search" }] })],
    ["wants a person to confirm them", Policy.layerShape(Effect.succeed(confirm))],
    [
      "hides them",
      Policy.layer(
        () => Effect.succeed({ _tag: "Allowed" }),
        (name) => name !== "web_search"
      )
    ],
    [
      "fails",
      Policy.layer(({ name }) => (name === "web_search" ? Effect.fail("broken") : Effect.succeed({ _tag: "Allowed" })))
    ]
  ] as const
  it.effect.each(refusals)("does not offer them where a policy %s", ([, policy]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(names(yield* offered(agentOf("m"))), ["code_execution"])
    }).pipe(Effect.provide([kernel(), Layer.orDie(policy)]))
  )

  it.effect("gets an error when the model calls one as a skill of its own", () =>
    Effect.gen(function* () {
      const mock = MockProvider.named("anthropic", { calls: [{ name: "web_search", input: {} }] }, "done")
      const result = yield* Kernel.run(agentOf("m"), "go", { provider: mock })
      assert.include(result.calls[0]?.error, "run by the vendor")
    }).pipe(Effect.provide(kernel()))
  )
})

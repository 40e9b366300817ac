/** What servers ask a person during a call: in a run, by a handler, and of nobody. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Stream } from "effect"
import { McpSchema, McpServer } from "effect/ai"
import { Agent, Content, Kernel, MediaStore, Policy, RunStore, type Skill } from "kernai"
import { McpHub } from "kernai/mcp"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { of } from "../support/kernel.ts"
import * as Support from "../support/mcp/connect.ts"
import * as Everything from "../support/mcp/everything.ts"
import * as Hub from "../support/mcp/hub.ts"

const agent = Agent.make({ instructions: "", model: "mock", skills: "all" })

const kernel = (
  mock: MockProvider.Mock,
  settings: { readonly [key: string]: unknown },
  hub: McpHub.Options = {},
  policy: Layer.Layer<never> = Layer.empty
) =>
  Kernel.layer.pipe(
    Layer.provideMerge(Layer.merge(Hub.hub({ s: settings }, { hub }), RunStore.layerMemory)),
    Layer.provide([MockProvider.layerOf(mock), MediaStore.layerMemory, policy])
  )

const stdio = Support.node(Support.everythingScript, "stdio")
const asks = command("mcp_s__trigger-elicitation-request")

const outputs = Effect.map(
  Effect.flatMap(RunStore.RunStore, (store) => store.load("r")),
  (state) =>
    Option.getOrThrow(state)
      .turns.flatMap(({ completed }) => completed)
      .map(({ output = [] }) => output.map(Content.toText).join(""))
)

/** Runs until the question, answers it from outside, and resumes. */
const answered = Effect.fnUntraced(function* (answer: { readonly approved: boolean; readonly values?: object }) {
  assert.strictEqual((yield* Effect.flip(Kernel.run(agent, "go", { runId: "r" })))._tag, "RunPaused")
  const [question] = yield* Kernel.questions("r")
  const { values, ...rest } = answer
  const given = values === undefined ? {} : { values: { ...values } }
  yield* Kernel.answer("r", [{ callId: question?.callId ?? "", ...rest, ...given }])
  yield* Kernel.resume(agent, "r")
  return question
})

layer(Support.platform, { excludeTestServices: true, timeout: "60 seconds" })("What a server asks a person", (it) => {
  describe("during a call of a run", () => {
    it.effect.each(["stdio", "streamableHttp", "sse"] as const)("is a question of the run, over %s", (transport) =>
      Effect.gen(function* () {
        const settings = transport === "stdio" ? stdio : { url: (yield* Everything.serve(transport)).url }
        const mock = MockProvider.make(asks, final("done"))
        yield* Effect.gen(function* () {
          const question = yield* answered({ approved: true, values: { name: "Ada", unknown: 1 } })
          assert.strictEqual(
            question?.asking?.message,
            "MCP server 's' asks: Please provide inputs for the following fields:"
          )
          assert.strictEqual(question?.name, "mcp_s__trigger-elicitation-request")
          assert.hasAnyKeys(question?.asking?.form, ["properties"])
          const [output] = yield* outputs
          assert.match(output!, /"action": "accept"/)
          assert.match(output!, /"name": "Ada"/)
          // Defaults of the form stand for what was not given, and nothing else is sent.
          assert.match(output!, /"firstLine": "/)
          assert.notMatch(output!, /unknown/)
        }).pipe(Effect.provide(kernel(mock, settings)))
      })
    )

    it.effect("is declined by the person", () =>
      Effect.gen(function* () {
        yield* answered({ approved: false })
        assert.match((yield* outputs)[0]!, /"action": "decline"/)
      }).pipe(Effect.provide(kernel(MockProvider.make(asks, final("done")), stdio)))
    )

    it.effect("is declined by the policy, and the run does not pause", () =>
      Effect.gen(function* () {
        yield* Kernel.run(agent, "go", { runId: "r" })
        assert.match((yield* outputs)[0]!, /"action": "decline"/)
      }).pipe(
        Effect.provide(
          kernel(
            MockProvider.make(asks, final("done")),
            stdio,
            {},
            Layer.orDie(Policy.layerRules({ deny: [{ name: "mcp_s/elicitation" }] }))
          )
        )
      )
    )

    it.effect("asks through the block, too", () =>
      Effect.gen(function* () {
        yield* answered({ approved: true, values: { name: "Ada" } })
        assert.match((yield* outputs)[0]!, /"name": "Ada"/)
      }).pipe(
        Effect.provide(
          kernel(
            MockProvider.make(
              `<block type="mcp">{"method":"tools/call","params":{"name":"trigger-elicitation-request"}}</block>`,
              final("done")
            ),
            stdio
          )
        )
      )
    )

    it.effect("may be an address to open, asked by a request or as the error of the call", () =>
      Effect.gen(function* () {
        const url = "https://example.com/sign"
        const opens = command("mcp_s__trigger-url-elicitation", { url, message: "Sign here", errorPath: true })
        yield* Effect.gen(function* () {
          yield* Effect.flip(Kernel.run(agent, "go", { runId: "r" }))
          const seen: Array<string | undefined> = []
          for (let left = 2; left > 0; left--) {
            const [question] = yield* Kernel.questions("r")
            seen.push(question?.asking?.url)
            yield* Kernel.answer("r", [{ callId: question?.callId ?? "", approved: true }])
            yield* Effect.ignore(Kernel.resume(agent, "r"))
          }
          assert.deepStrictEqual(seen, ["https://modelcontextprotocol.io/", url])
          assert.match((yield* outputs)[0]!, /User completed the URL elicitation flow/)
        }).pipe(Effect.provide(kernel(MockProvider.make(opens, final("done")), stdio)))
      })
    )
  })

  describe("with a handler", () => {
    it.effect("is answered while the call waits, however long that takes", () =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const elicit: McpHub.Elicit = (asking, server) =>
          Effect.delay(
            Effect.sync((): Skill.Reply => {
              asked.push(server)
              return { _tag: "Accepted", values: { name: `of ${asking.form === undefined ? "none" : "a form"}` } }
            }),
            "600 millis"
          )
        yield* Effect.gen(function* () {
          yield* Kernel.run(agent, "go", { runId: "r" })
          assert.match((yield* outputs)[0]!, /"name": "of a form"/)
          assert.deepStrictEqual(asked, ["s"])
        }).pipe(
          Effect.provide(
            kernel(MockProvider.make(asks, final("done")), { ...stdio, timeout: "500 millis" }, { elicit })
          )
        )
      })
    )

    it.effect("is dismissed with the call when the run is interrupted", () =>
      Effect.gen(function* () {
        const seen: Array<string> = []
        const elicit: McpHub.Elicit = () =>
          Effect.onInterrupt(
            Effect.andThen(
              Effect.sync(() => seen.push("asked")),
              Effect.never
            ),
            () => Effect.sync(() => void seen.push("interrupted"))
          )
        yield* Effect.gen(function* () {
          const run = yield* Effect.forkChild(Kernel.run(agent, "go"))
          yield* Support.until(() => seen.length > 0)
          yield* Fiber.interrupt(run)
        }).pipe(Effect.provide(kernel(MockProvider.make(asks, final("done")), stdio, { elicit })))
        yield* Support.until(() => seen.includes("interrupted"))
      })
    )
  })

  it.effect("is not announced by a server's config that forbids it, nor by a connection without a host", () =>
    Effect.gen(function* () {
      const names = (settings: { readonly [key: string]: unknown }) =>
        Effect.provide(Hub.skillNames, Hub.hub({ s: settings }))
      assert.include(yield* names(stdio), "mcp_s__trigger-elicitation-request")
      assert.notInclude(yield* names({ ...stdio, elicitation: false }), "mcp_s__trigger-elicitation-request")
      const bare = yield* Support.connect(stdio)
      assert.notInclude(
        (yield* bare.tools).map(({ name }) => name),
        "trigger-elicitation-request"
      )
    })
  )

  it.effect("is declined outside of a run", () =>
    Effect.gen(function* () {
      const result = yield* Hub.call("mcp_s__trigger-elicitation-request")
      assert.match(JSON.stringify(result), /decline/)
    }).pipe(Effect.provide(Hub.hub({ s: stdio })))
  )

  it.effect(
    "arrives as the answer of the call in revision 2026-07-28, and the call is sent again with the values",
    () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const seat = Effect.fnUntraced(function* () {
          const { inputResponses, requestState } = yield* McpSchema.McpRequestContext
          seen.push([inputResponses, requestState])
          return inputResponses === undefined
            ? new McpSchema.InputRequired({
                requestState: "opaque",
                inputRequests: {
                  seat: {
                    method: "elicitation/create",
                    params: {
                      mode: "form",
                      message: "Which seat?",
                      requestedSchema: { type: "object", properties: { seat: { type: "string" } }, required: ["seat"] }
                    }
                  }
                }
              })
            : new McpSchema.CallToolResult({ content: [{ type: "text", text: JSON.stringify(inputResponses) }] })
        })
        const tool = new McpSchema.Tool({ name: "book", inputSchema: { type: "object" } })
        const url = yield* Everything.modern(
          Layer.effectDiscard(
            McpServer.McpServer.use((server) =>
              server.addTool({ tool, annotations: Everything.noAnnotations, handle: () => seat() })
            )
          )
        )
        const settings = { url, protocolVersion: "2026-07-28" }
        yield* Effect.gen(function* () {
          yield* answered({ approved: true, values: { seat: "12A" } })
          assert.deepStrictEqual((yield* outputs)[0], `{"seat":{"action":"accept","content":{"seat":"12A"}}}`)
          const accepted = { seat: { action: "accept", content: { seat: "12A" } } }
          assert.deepStrictEqual(seen, [
            [undefined, undefined],
            [undefined, undefined],
            [accepted, "opaque"]
          ])
        }).pipe(Effect.provide(kernel(MockProvider.make(command("mcp_s__book"), final("done")), settings)))
      })
  )

  describe("a model", () => {
    const samples = command("mcp_s__trigger-sampling-request", { prompt: "2 + 2?", maxTokens: 50 })
    const usage = { inputTokens: { total: 10 }, outputTokens: { total: 2 } }

    it.effect("is asked only by a server that is granted it, within its limits", () =>
      Effect.gen(function* () {
        const mock = MockProvider.make(samples, { text: "four", usage }, final("done"))
        const settings = { ...stdio, sampling: { maxTokens: 20 } }
        yield* Effect.gen(function* () {
          const result = yield* Kernel.run(agent, "go", { runId: "r" })
          assert.match((yield* outputs)[0]!, /"text": "four"/)
          const [, sampled] = mock.calls
          assert.deepInclude(sampled?.generation, { maxTokens: 20, temperature: 0.7 })
          assert.deepStrictEqual(
            sampled?.messages.map(({ content, role }) => [role, content.map(Content.toText).join("")]),
            [
              ["system", "You are a helpful test server."],
              ["user", "Resource trigger-sampling-request context: 2 + 2?"]
            ]
          )
          const turns = result.perTurnUsage.reduce((sum, one) => sum + (one?.inputTokens ?? 0), 0)
          assert.strictEqual(result.usage.inputTokens - turns, 10)
        }).pipe(Effect.provide(kernel(mock, settings)))
        const refused = yield* Effect.provide(Hub.skillNames, Hub.hub({ s: stdio }))
        assert.notInclude(refused, "mcp_s__trigger-sampling-request")
      })
    )

    it.effect("is asked after a person confirmed it, where the policy wants that", () =>
      Effect.gen(function* () {
        const mock = MockProvider.make(samples, "four", final("done"))
        yield* Effect.gen(function* () {
          yield* answered({ approved: true })
          assert.match((yield* outputs)[0]!, /"text": "four"/)
        }).pipe(
          Effect.provide(
            kernel(
              mock,
              { ...stdio, sampling: {} },
              {},
              Layer.orDie(Policy.layerRules({ confirm: [{ name: "mcp_*/sampling" }] }))
            )
          )
        )
      })
    )

    it.effect("is refused by the policy: the server gets an error, and the call continues", () =>
      Effect.gen(function* () {
        const events = yield* Stream.runCollect(Kernel.stream(agent, "go"))
        assert.match(JSON.stringify(of([...events], "skill_error").concat()), /no models/)
      }).pipe(
        Effect.provide(
          kernel(
            MockProvider.make(samples, final("done")),
            { ...stdio, sampling: {} },
            {},
            Layer.orDie(Policy.layerRules({ deny: [{ name: "mcp_*/sampling", reason: "no models" }] }))
          )
        )
      )
    )
  })
})

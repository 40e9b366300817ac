import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Schema, Stream } from "effect"
import { AiError, LanguageModel, type Response } from "effect/ai"
import { TestClock } from "effect/testing"
import { Agent, Content, Model, Skill } from "kernai"
import { HostedTools, KernaiLanguageModel, LanguageModelProvider } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

const usage: Response.FinishPartEncoded["usage"] = {
  inputTokens: { total: 9, uncached: 5, cacheRead: 4, cacheWrite: 0 },
  outputTokens: { total: 2, text: 2, reasoning: 0 }
}

/** A model of effect/ai that says these parts, one reply for each call. */
const scripted = (...replies: ReadonlyArray<ReadonlyArray<Response.StreamPartEncoded>>) => {
  const asked: Array<LanguageModel.ProviderOptions> = []
  return Effect.map(
    LanguageModel.make({
      generateText: () => Effect.die(new Error("only streamed")),
      streamText: (options) => {
        asked.push(options)
        return Stream.fromIterable(replies[asked.length - 1] ?? [])
      }
    }),
    (model) => ({ model, asked })
  )
}

const finish: Response.StreamPartEncoded = { type: "finish", reason: "stop", usage }
const say = (text: string): Response.StreamPartEncoded => ({ type: "text-delta", id: "0", delta: text })

const add = Skill.make("add", {
  description: "Adds two numbers",
  input: Schema.Struct({ a: Schema.Number, b: Schema.Number }),
  effects: "read",
  execute: ({ a, b }) => Effect.succeed(a + b)
})

describe("LanguageModelProvider", () => {
  it.effect("runs an agent in blocks on any LanguageModel", () =>
    Effect.gen(function* () {
      const { asked, model } = yield* scripted(
        [say('<block type="command" name="add">{"a":1,"b":2}</block>'), finish],
        [say('<block type="final">3</block>'), finish]
      )
      const agent = Agent.make({ instructions: "Add.", model: "m", skills: "all" })
      const run = yield* told(agent, "1 + 2", { provider: LanguageModelProvider.fromModel(model) })
      assert.strictEqual(run.text, "3")
      assert.deepStrictEqual(
        asked[1]?.prompt.content.map((message) => message.role),
        ["system", "user", "assistant", "user"]
      )
      assert.strictEqual(of(run.events, "model_completed")[0]?.usage?.cachedTokens, 4)
    }).pipe(Effect.provide(kernel(add)))
  )

  it.effect("passes an image that the model made to the run", () =>
    Effect.gen(function* () {
      const { model } = yield* scripted([say("Here: "), { type: "file", mediaType: "image/png", data: "AQID" }, finish])
      const agent = Agent.make({ instructions: "Draw.", model: "m" })
      const run = yield* told(agent, "a cat", { provider: LanguageModelProvider.fromModel(model) })
      assert.strictEqual(run.text, "Here: ")
      const image = of(run.events, "model_completed")[0]?.message.content.find(({ type }) => type === "image")
      assert.deepInclude(image, { mediaType: "image/png" })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("replaces a medium without a valid address by a text, instead of dying", () =>
    Effect.gen(function* () {
      const { asked, model } = yield* scripted([say("ok"), finish])
      const agent = Agent.make({ instructions: "", model: Model.make("m", { capabilities: ["text", "vision"] }) })
      const image = Content.image({ url: "not an address", mediaType: "image/png" })
      const other = Content.image({ data: new Uint8Array([1, 2, 3]), mediaType: "image/png" })
      const run = yield* told(agent, [image, other, "What?"], { provider: LanguageModelProvider.fromModel(model) })
      assert.strictEqual(run.text, "ok")
      assert.include(JSON.stringify(asked[0]?.prompt.content), '"mediaType":"image/png","data":"AQID"')
      assert.include(JSON.stringify(asked[0]?.prompt.content), "[image unavailable: image/png]")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("sends no hosted tool, since a toolkit cannot contain one", () =>
    Effect.gen(function* () {
      const { asked, model } = yield* scripted([say("ok"), finish])
      const skills = [HostedTools.webSearch()]
      const agent = Agent.make({ instructions: "", model: "m", skills, dialect: "tools" })
      yield* told(agent, "go", { provider: LanguageModelProvider.fromModel(model, { name: "openai" }) })
      assert.deepStrictEqual(asked[0]?.tools, [])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("runs an agent in native calls, also parallel ones, and runs no tool itself", () =>
    Effect.gen(function* () {
      const call = (id: string, a: number): Response.StreamPartEncoded => ({
        type: "tool-call",
        id,
        name: "add",
        params: { a, b: 1 }
      })
      const { asked, model } = yield* scripted(
        [call("x", 1), call("x", 2), { ...finish, reason: "tool-calls" }],
        [say("2 and 3"), finish]
      )
      const agent = Agent.make({ instructions: "Add.", model: "m", skills: "all", dialect: "tools", concurrency: 2 })
      const run = yield* told(agent, "add", { provider: LanguageModelProvider.fromModel(model, { name: "ai" }) })
      assert.strictEqual(run.text, "2 and 3")
      assert.deepStrictEqual(
        of(run.events, "skill_result").map((event) => event.output),
        [2, 3]
      )
      assert.deepStrictEqual(
        asked[0]?.tools.map((tool) => tool.name),
        ["add"]
      )
      const second = asked[1]?.prompt.content.slice(2)
      assert.deepStrictEqual(
        second?.map((message) => [message.role, message.content.length]),
        [
          ["assistant", 2],
          ["tool", 2]
        ]
      )
    }).pipe(Effect.provide(kernel(add)))
  )

  it.effect(
    "sends a model its own thinking and the data it expects back with its calls, and no other model's (CP-9)",
    () =>
      Effect.gen(function* () {
        const { asked, model } = yield* scripted(
          [
            { type: "reasoning-start", id: "r", metadata: { vendor: { begun: true } } },
            { type: "reasoning-delta", id: "r", delta: "hm" },
            { type: "reasoning-end", id: "r", metadata: { vendor: { signature: "s" } } },
            { type: "tool-call", id: "x", name: "add", params: { a: 1, b: 1 }, metadata: { vendor: { signed: "c" } } },
            { ...finish, reason: "tool-calls" }
          ],
          [say("2"), finish],
          [say("2"), finish]
        )
        const agent = Agent.make({ instructions: "Add.", model: Model.make("m"), skills: "all", dialect: "tools" })
        const provider = LanguageModelProvider.fromModel(model, { name: "ai" })
        const run = yield* told(agent, "add", { provider })
        assert.strictEqual(run.text, "2")
        const answer = asked[1]?.prompt.content[2]
        assert.deepStrictEqual(
          answer?.role === "assistant" && answer.content.map((part) => [part.type, part.options]),
          [
            ["reasoning", { vendor: { begun: true, signature: "s" } }],
            ["tool-call", { vendor: { signed: "c" } }]
          ]
        )
        const history = of(run.events, "messages_sent")[1]?.messages.slice(1) ?? []
        const other = Agent.make({ instructions: "Add.", model: Model.make("other"), skills: "all", dialect: "tools" })
        yield* told(other, "again", { provider, history })
        const foreign = asked[2]?.prompt.content[2]
        assert.deepStrictEqual(
          foreign?.role === "assistant" && foreign.content.map((part) => [part.type, part.options]),
          [["tool-call", {}]]
        )
      }).pipe(Effect.provide(kernel(add)))
  )

  it.effect("skips calls that the vendor ran itself", () =>
    Effect.gen(function* () {
      const { model } = yield* scripted([
        { type: "tool-params-start", id: "w", name: "web_search", providerExecuted: true },
        { type: "tool-params-delta", id: "w", delta: "{}" },
        { type: "tool-params-end", id: "w" },
        say("found"),
        finish
      ])
      const run = yield* told(Agent.make({ instructions: "", model: "m", dialect: "tools" }), "search", {
        provider: LanguageModelProvider.fromModel(model)
      })
      assert.strictEqual(run.text, "found")
      assert.deepStrictEqual(of(run.events, "skill_error"), [])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("fails with a typed error for a reply without an end, an error part and an error of the model (AC-4)", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "m" })
      const failing = (reason: AiError.AiErrorReason) =>
        LanguageModel.make({
          generateText: () => Effect.die(new Error("only streamed")),
          streamText: () => Stream.fail(AiError.make({ module: "x", method: "y", reason }))
        })
      const limited = yield* failing(new AiError.RateLimitError({ retryAfter: Duration.seconds(90) }))
      const closed = yield* failing(new AiError.RateLimitError({ retryAfter: Duration.infinity }))
      const tooLong = yield* failing(
        new AiError.InvalidRequestError({ description: "prompt is too long: sk-SECRET-0123456789" })
      )
      const { model: cut } = yield* scripted([say("half")])
      const { model: erring } = yield* scripted([say("half"), { type: "error", error: "Bearer sk-SECRET-0123456789" }])
      const errors = []
      for (const model of [limited, closed, tooLong, cut, erring]) {
        const run = yield* told(agent, "hi", { provider: LanguageModelProvider.fromModel(model) })
        assert.strictEqual(run.failure?._tag, "ProviderError")
        if (run.failure?._tag === "ProviderError") errors.push([run.failure.reason, run.failure.retryAt])
        assert.notInclude(JSON.stringify(run.failure), "SECRET")
        assert.notInclude(run.failure?.message, "too long")
      }
      assert.deepStrictEqual(errors, [
        ["rate_limited", 90_000],
        ["rate_limited", 8.64e15],
        ["context_length", undefined],
        ["incomplete", undefined],
        ["server_error", undefined]
      ])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("asks again while the reply has no content, as the adapters do (R-13)", () =>
    Effect.gen(function* () {
      let asked = 0
      const overloaded = AiError.make({
        module: "x",
        method: "y",
        reason: new AiError.InternalProviderError({ description: "no" })
      })
      const model = yield* LanguageModel.make({
        generateText: () => Effect.die(new Error("only streamed")),
        streamText: () => (++asked < 3 ? Stream.fail(overloaded) : Stream.fromIterable([say("at last"), finish]))
      })
      const agent = Agent.make({ instructions: "", model: "m" })
      const fiber = yield* Effect.forkChild(told(agent, "hi", { provider: LanguageModelProvider.fromModel(model) }))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(fiber)).text, "at last")
      assert.strictEqual(asked, 3)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("returns the same reply through both bridges", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(
        { thinking: "hm", text: "adding", calls: [{ id: "1", name: "add", input: { a: 2, b: 2 } }] },
        "4"
      )
      const model = yield* KernaiLanguageModel.fromProvider(mock, { model: "m" })
      const agent = Agent.make({ instructions: "Add.", model: "m", skills: "all", dialect: "tools" })
      const run = yield* told(agent, "2 + 2", { provider: LanguageModelProvider.fromModel(model) })
      assert.strictEqual(run.text, "4")
      assert.deepStrictEqual(
        mock.lastCall?.messages.map((message) => message.role),
        ["system", "user", "assistant", "tool"]
      )
      assert.deepStrictEqual(mock.lastCall?.tools[0]?.inputSchema, add.inputSchema)
    }).pipe(Effect.provide(kernel(add)))
  )
})

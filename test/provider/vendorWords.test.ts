/** The vendor's own words on a failed call: where developers find them, and where nobody does. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, KernelError, Limits, Model, Skill } from "kernai"
import { Resilience } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { Layer } from "effect"
import { withVendorWords } from "../../src/internal/errors/failedCall.ts"
import refusals from "../fixtures/refusals/synthetic.json" with { type: "json" }
import { kernel, of } from "../support/kernel.ts"
import { key, read, request, serverSent, stub, vendor } from "../support/provider.ts"
import { told } from "../support/toolbox.ts"

const once = Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 1 })

/** How a call fails that each of these answers refuses in turn, the last one again and again. */
const failureOf = (name: string, ...answers: ReadonlyArray<() => Response>) =>
  Effect.gen(function* () {
    const http = stub((_, call) =>
      Effect.sync(() => (answers[Math.min(call, answers.length - 1)] ?? (() => new Response()))())
    )
    const provider = yield* Effect.provide(vendor(name)({}), http.layer)
    const fiber = yield* Effect.forkChild(Effect.flip(read(provider.stream(request()))))
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

const openAiRefusal = (message: string, status = 400) =>
  new Response(JSON.stringify({ error: { message, type: "invalid_request_error" } }), { status })

describe("a refused call", () => {
  for (const { body, headers, status, vendor: name, vendorWords } of refusals.refusals) {
    it.effect(`of ${name} carries the vendor's message, code, type, parameter and request id`, () =>
      Effect.gen(function* () {
        const answer = () =>
          new Response(JSON.stringify(body), { status, headers: new Headers(Object.entries(headers)) })
        const error = yield* failureOf(name, answer)
        assert.deepStrictEqual(error.vendor, vendorWords)
        assert.notInclude(error.message, vendorWords.message)
        assert.include(Cause.pretty(Cause.fail(error)), vendorWords.message)
        assert.include(withVendorWords(error), vendorWords.message)
      }).pipe(once)
    )
  }

  it.effect("carries the text of a gateway that answers without JSON, and nothing of a page", () =>
    Effect.gen(function* () {
      const plain = yield* failureOf("openai", () => new Response("upstream connect error\n", { status: 400 }))
      assert.deepStrictEqual(plain.vendor, { message: "upstream connect error" })
      const page = yield* failureOf("openai", () => new Response("<html>no</html>", { status: 400 }))
      assert.isUndefined(page.vendor)
    })
  )

  it.effect("cuts long text, and removes the key and every word with a piece of it", () =>
    Effect.gen(function* () {
      const long = yield* failureOf("openai", () => openAiRefusal("x".repeat(10_000)))
      assert.strictEqual(long.vendor?.message?.length, 2001)
      const said = "Incorrect API key provided: sk-SECRE*****cdef. Find it at platform"
      const masked = yield* failureOf("openai", () => openAiRefusal(said))
      assert.strictEqual(masked.vendor?.message, "Incorrect API key provided: <redacted> Find it at platform")
      const whole = yield* failureOf("openai", () =>
        openAiRefusal(`no: ${JSON.stringify(key)} Bearer 0123456789abcdef`)
      )
      assert.notInclude(JSON.stringify(whole), "0123456789")
    })
  )

  it.effect("in the middle of a reply carries the vendor's message too, with the request id of the response", () =>
    Effect.gen(function* () {
      const error = { error: { message: "The server had an error", type: "server_error" } }
      const answer = () => {
        const { body } = serverSent([{ choices: [{ delta: { content: "he" } }] }, error])
        return new Response(body, { headers: { "x-request-id": "req_7" } })
      }
      const failure = yield* failureOf("openai", answer)
      assert.deepStrictEqual(failure.vendor, {
        requestId: "req_7",
        message: "The server had an error",
        type: "server_error"
      })
    })
  )

  it.effect("names the calls that failed before it, oldest first, and when", () =>
    Effect.gen(function* () {
      const error = yield* failureOf(
        "openai",
        () => openAiRefusal("busy", 503),
        () => openAiRefusal("slow down", 429),
        () => openAiRefusal("no such field")
      )
      assert.deepStrictEqual(
        error.history?.map(({ reason, status, vendor }) => [reason, status, vendor?.message]),
        [
          ["overloaded", 503, "busy"],
          ["rate_limited", 429, "slow down"]
        ]
      )
      assert.deepStrictEqual(
        error.history?.map(({ failedAt }) => failedAt > 0),
        [false, true]
      )
      assert.strictEqual(error.attempts, 3)
      assert.strictEqual(error.vendor?.message, "no such field")
    })
  )
})

describe("whether a failure can be retried", () => {
  it.effect("follows from the reason, or from the vendor if it knows better", () =>
    Effect.gen(function* () {
      assert.isFalse((yield* failureOf("openai", () => openAiRefusal("no"))).isRetryable)
      assert.isTrue((yield* failureOf("openai", () => openAiRefusal("busy", 503))).isRetryable)
      const never = () => new Response("{}", { status: 503, headers: { "x-should-retry": "false" } })
      const error = yield* failureOf("openai", never)
      assert.isFalse(error.isRetryable)
      assert.isFalse(Resilience.isPassing(error))
      assert.strictEqual(error.attempts, 1)
    })
  )
})

describe("a run", () => {
  const words = { message: "Use 'max_completion_tokens' instead.", code: "unsupported_parameter" }
  const failure = new KernelError.ProviderError({
    provider: "openai",
    reason: "invalid_request",
    detail: "the request was refused",
    vendor: words
  })
  const agent = Agent.make({ instructions: "Answer.", model: Model.make("big"), skills: "all" })

  it.effect("carries the vendor's own text in its failure and in the event of the call", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make().onCall(() => Effect.fail(failure))
      const run = yield* told(agent, "hi", { provider })
      assert.deepStrictEqual(run.failure?._tag === "ProviderError" && run.failure.vendor, words)
      assert.deepStrictEqual(of(run.events, "model_call_failed")[0]?.vendor, words)
    }).pipe(Effect.provide(kernel().pipe(Layer.provideMerge(Resilience.layer(Resilience.retry())))))
  )

  const asking = Skill.make("ask", {
    description: "Asks another model",
    input: Schema.Struct({}),
    execute: () => Stream.runDrain(Stream.fail(failure))
  })

  it.effect("keeps the vendor's text from the model when a skill fails with it", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(
        `<block type="command" name="ask">{}</block>`,
        `<block type="final">no</block>`
      )
      const run = yield* told(agent, "hi", { provider })
      assert.strictEqual(run.text, "no")
      const prompts = JSON.stringify(of(run.events, "messages_sent").map(({ messages }) => messages))
      assert.include(prompts, "the request was refused")
      assert.notInclude(prompts, "max_completion_tokens")
    }).pipe(Effect.provide(kernel(asking)))
  )
})

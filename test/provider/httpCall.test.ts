/** One model call over HTTP: what arrives when, what is tried again, and what never leaks. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { inspect } from "node:util"
import { frameLength } from "../../src/kit/bounds.ts"
import * as Content from "../../src/Content.ts"
import type { ProviderError } from "../../src/KernelError.ts"
import * as Limits from "../../src/Limits.ts"
import * as Model from "../../src/Model.ts"
import type { ProviderShape } from "../../src/Provider.ts"
import { toError } from "../../src/provider/internal/providerFault.ts"
import { chunk } from "../support/chatStream.ts"
import { message, read, request, stub, vendor } from "../support/provider.ts"
import { answering, answeringAs, failure, outcome, sse, whole } from "../support/scriptedHttp.ts"

const listed = (provider: ProviderShape): NonNullable<ProviderShape["models"]> =>
  provider.models ?? Effect.die("no list")

describe("responses that are not replies", () => {
  const cases: ReadonlyArray<readonly [string, string, ProviderError["reason"]]> = [
    ["a web page", "<!doctype html><html>sign in</html>", "invalid_response"],
    ["an empty body", "", "incomplete"],
    ["blanks", " \n\n ", "incomplete"],
    ["an end mark and nothing else", "data: [DONE]\n\n", "incomplete"],
    ["a line of junk", `${chunk({ role: "assistant" })}data: {junk\n\n${whole("x")}`, "invalid_response"],
    ["a list instead of an object", "data: [1]\n\n", "invalid_response"],
    ["a cut event", `${chunk({ content: "he" })}data: {"choices":[{"del`, "incomplete"],
    ["a reply without an end", chunk({ content: "he" }), "incomplete"],
    [
      "an error in the stream",
      `${chunk({ content: "he" })}data: {"error":{"message":"x","code":500}}\n\n`,
      "server_error"
    ],
    [
      "an error in the older form",
      `${chunk({ content: "he" })}data: {"object":"error","code":400}\n\n`,
      "invalid_request"
    ],
    ["an event named error", `${chunk({ content: "he" })}event: error\ndata: upstream failed\n\n`, "server_error"],
    ["a cut document", `{"choices":[{"message":{"content":"he`, "incomplete"]
  ]
  for (const [what, body, reason] of cases) {
    it.effect(`${what}: ${reason}`, () =>
      Effect.gen(function* () {
        const { provider } = yield* answering(() => sse(body))
        assert.strictEqual((yield* failure(provider)).reason, reason)
      })
    )
  }

  it.effect("bytes that are not UTF-8: invalid_response", () =>
    Effect.gen(function* () {
      const { provider } = yield* answering(() => new Response(new Uint8Array([0x64, 0x61, 0xff, 0xfe, 0x0a])))
      assert.strictEqual((yield* failure(provider)).reason, "invalid_response")
    })
  )

  it.effect("accepts an end mark followed by white space", () =>
    Effect.gen(function* () {
      const { provider } = yield* answering(() => sse(whole("here").replace("[DONE]", "[DONE]  ")))
      assert.strictEqual((yield* Effect.fromResult(yield* outcome(provider))).text, "here")
    })
  )

  it.effect("reads a list of events, and a document over many lines, where a stream was asked for", () =>
    Effect.gen(function* () {
      const piece = (text: string) => ({ candidates: [{ content: { parts: [{ text }] }, finishReason: "STOP" }] })
      const google = yield* answeringAs("google", () => sse(JSON.stringify([piece("he"), piece("re")])))
      assert.strictEqual((yield* Effect.fromResult(yield* outcome(google.provider))).text, "here")
      const refused = yield* answeringAs("google", () => sse(JSON.stringify([{ error: { code: 400 } }])))
      assert.strictEqual((yield* failure(refused.provider)).reason, "invalid_request")
      const cut = yield* answeringAs("google", () => sse('[{"candidates":'))
      assert.strictEqual((yield* failure(cut.provider)).reason, "incomplete")
      const document = JSON.stringify({ message: { content: "here" }, done: true }, null, 2)
      const ollama = yield* answeringAs("ollama", () => sse(document))
      assert.strictEqual((yield* Effect.fromResult(yield* outcome(ollama.provider))).text, "here")
    })
  )

  it.effect("understands data: without a space, CR LF, comments and a missing last blank line", () =>
    Effect.gen(function* () {
      const body = whole("here").replaceAll("data: ", "data:").replaceAll("\n", "\r\n").trimEnd()
      const { provider } = yield* answering(() => sse(`: keep-alive\r\n\r\n${body}`))
      assert.strictEqual((yield* Effect.fromResult(yield* outcome(provider))).text, "here")
    })
  )

  it.effect("reads a last event without a line end", () =>
    Effect.gen(function* () {
      const { provider } = yield* answering(() => sse(whole("here").replace("data: [DONE]", "").trimEnd()))
      assert.strictEqual((yield* Effect.fromResult(yield* outcome(provider))).text, "here")
    })
  )

  it.effect("recognizes a document after a first read of white space", () =>
    Effect.gen(function* () {
      const document = JSON.stringify({ choices: [{ index: 0, message: { content: "here" }, finish_reason: "stop" }] })
      const body = () =>
        new ReadableStream({
          start(controller) {
            for (const piece of [" \n", document]) controller.enqueue(new TextEncoder().encode(piece))
            controller.close()
          }
        })
      const { provider } = yield* answering(() => new Response(body()))
      assert.strictEqual((yield* Effect.fromResult(yield* outcome(provider))).text, "here")
    })
  )

  it.effect("ignores an error after the end of a reply", () =>
    Effect.gen(function* () {
      const { provider } = yield* answering(() => sse(`${whole("here")}event: error\ndata: {}\n\n`))
      assert.strictEqual((yield* Effect.fromResult(yield* outcome(provider))).text, "here")
    })
  )

  it.effect("reports a cut reply when its body ends inside a character", () =>
    Effect.gen(function* () {
      const cut = new TextEncoder().encode(`${chunk({ content: "x" })}: ü`).slice(0, -1)
      const error = yield* failure((yield* answering(() => new Response(cut))).provider)
      assert.deepInclude(error, { reason: "incomplete", detail: "the reply was cut" })
    })
  )

  it.effect("keeps the meaning of a status although the body breaks off", () =>
    Effect.gen(function* () {
      const body = () => new ReadableStream({ pull: (controller) => controller.error(new Error("reset")) })
      const { provider } = yield* answering(() => new Response(body(), { status: 401 }))
      assert.strictEqual((yield* failure(provider)).reason, "authentication")
    })
  )

  const tooLong = "x".repeat(frameLength + 1)
  const frames = `frameLength is ${frameLength}`
  for (const [what, body, limits, told] of [
    ["one event", `data: ${tooLong}`, {}, frames],
    ["all that is said", whole("x".repeat(5_000)), { replyLength: 1_001 }, "replyLength is 1001"],
    ["all that is sent", ": keep-alive\n\n".repeat(10_000), { replyLength: 1_002 }, "replyLength is 1002"],
    ["white space before a reply", " ".repeat(frameLength + 1), {}, frames],
    ["a line of JSON", `{"x":"${tooLong}`, {}, frames]
  ] as const) {
    it.effect(`fails when ${what} exceeds its limit, naming it (R-20)`, () =>
      Effect.gen(function* () {
        const { provider } = yield* answeringAs(what === "a line of JSON" ? "ollama" : "openai", () => sse(body))
        const error = yield* failure(provider).pipe(
          Effect.provideService(Limits.Limits, { ...Limits.defaults, ...limits })
        )
        assert.strictEqual(error.reason, "limit_exceeded")
        assert.include(error.message, told)
      })
    )
  }
})

describe("data kept until the end of a reply (R-20)", () => {
  const long = "x".repeat(5_000)
  const events = (...all: ReadonlyArray<object>) =>
    [...all, ...all].map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")
  for (const [name, what, body] of [
    [
      "anthropic",
      "a signature",
      events({ type: "content_block_delta", delta: { type: "signature_delta", signature: long } })
    ],
    [
      "google-interactions",
      "a signature",
      events({ event_type: "step.delta", delta: { type: "thought_signature", signature: long } })
    ],
    ["openai", "ids of calls", chunk({ tool_calls: [{ index: 0, id: long }] })],
    ["openai", "the end of a thought", chunk({ reasoning_details: [{ type: "reasoning.encrypted", data: long }] })],
    ["openai", "many ends of thoughts", chunk({ reasoning_details: Array(50).fill({ type: "reasoning.encrypted" }) })]
  ] as const) {
    it.effect(`is bounded: ${what} of ${name}`, () =>
      Effect.gen(function* () {
        const { provider } = yield* answeringAs(name, () => sse(body))
        const error = yield* failure(provider).pipe(
          Effect.provideService(Limits.Limits, { ...Limits.defaults, replyLength: 4_999 })
        )
        assert.include(error.message, "replyLength is 4999")
      })
    )
  }
})

describe("the cost of a call", () => {
  it.effect("delivers all parts of one network read as one array", () =>
    Effect.gen(function* () {
      const { provider } = yield* answering(() => sse(chunk({ content: "a" }) + chunk({ content: "b" }) + whole("c")))
      const arrays: Array<number> = []
      yield* Stream.runForEachArray(provider.stream(request()), (parts) => Effect.sync(() => arrays.push(parts.length)))
      assert.deepStrictEqual(arrays, [7])
    })
  )

  it.effect("encodes a message once for a model, and again for another", () =>
    Effect.gen(function* () {
      let reads = 0
      const counted: Content.Content = {
        type: "text",
        get text() {
          reads += 1
          return "hi"
        }
      }
      const { asked, provider } = yield* answering(() => sse(whole("x")))
      const messages = [message("user", counted)]
      yield* read(provider.stream(request({ messages })))
      const once = reads
      yield* read(provider.stream(request({ messages: [...messages, message("assistant", "x")] })))
      assert.strictEqual(reads, once)
      yield* read(provider.stream(request({ messages, model: Model.make("other") })))
      assert.isAbove(reads, once)
      assert.deepStrictEqual((asked[2] as unknown as { body: { messages: unknown } }).body.messages, [
        { role: "user", content: [{ type: "text", text: "hi" }] }
      ])
    })
  )
})

describe("models on offer", () => {
  for (const [name, url, document] of [
    ["anthropic", "https://api.anthropic.com/v1/models?limit=1000", { data: [{ id: "claude-sonnet-4-20250514" }] }],
    ["openai", "https://api.openai.com/v1/models", { data: [{ id: "gpt-4o" }, { id: 7 }] }],
    ["compatible", "http://localhost:8080/v1/models", { data: [{ id: "m" }] }],
    ["ollama", "http://localhost:11434/api/tags", { models: [{ name: "llava" }] }],
    [
      "google",
      "https://generativelanguage.googleapis.com/v1beta/models?pageSize=1000",
      { models: [{ name: "models/gemini-2.5-pro" }] }
    ]
  ] as const) {
    it.effect(`${name} lists them, with the facts known about each`, () =>
      Effect.gen(function* () {
        const http = stub(() => Effect.succeed(new Response(JSON.stringify(document))))
        const provider = yield* Effect.provide(vendor(name)({}), http.layer)
        const models = yield* listed(provider)
        assert.strictEqual(http.asked[0]?.url, url)
        assert.strictEqual(models.length, 1)
        assert.strictEqual(models[0]?.provider, provider.name)
        assert.notInclude(models[0]?.id, "/")
        if (name !== "compatible") assert.isTrue(models[0]?.capabilities.includes("vision"))
      })
    )
  }

  it.effect("rejects a model list that is not a JSON object", () =>
    Effect.gen(function* () {
      const http = stub(() => Effect.succeed(new Response("[]")))
      const provider = yield* Effect.provide(vendor("openai")({}), http.layer)
      assert.strictEqual((yield* Effect.flip(listed(provider))).reason, "invalid_response")
    })
  )

  it.effect("fails for a refusal with the same error as a call", () =>
    Effect.gen(function* () {
      const http = stub(() => Effect.succeed(new Response("{}", { status: 401 })))
      const provider = yield* Effect.provide(vendor("openai")({}), http.layer)
      const error = yield* Effect.flip(listed(provider))
      assert.strictEqual(error.reason, "authentication")
    })
  )

  it.effect("fails for a list that is too long or stops arriving, and names the limit", () =>
    Effect.gen(function* () {
      const long = JSON.stringify({ data: [{ id: "m".repeat(200) }] })
      const silent = () =>
        new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('{"data":')) })
      const http = stub((_, call) => Effect.sync(() => new Response(call === 0 ? long : silent())))
      const provider = yield* Effect.provide(vendor("openai")({}), http.layer)
      const tooLong = yield* Effect.flip(listed(provider))
      assert.strictEqual(tooLong.reason, "limit_exceeded")
      assert.include(tooLong.message, "fetchedBytes is 100")
      const listing = yield* Effect.forkChild(Effect.flip(listed(provider)))
      // The body is real, so its first read takes a turn of the event loop.
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
      yield* TestClock.adjust("61 seconds")
      const late = yield* Fiber.join(listing)
      assert.strictEqual(late.reason, "timeout")
      assert.include(late.message, "idleTimeout is 1m")
    }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, fetchedBytes: 100 }))
  )
})

describe("time limits of a call", () => {
  it.effect("gives up on headers that do not come", () =>
    Effect.gen(function* () {
      const http = stub(() => Effect.never)
      const provider = yield* Effect.provide(vendor("openai")({}), http.layer)
      const error = yield* failure(provider).pipe(
        Effect.provideService(Limits.Limits, Limits.make({ headersTimeout: 10_000 }))
      )
      assert.strictEqual(error.reason, "timeout")
      assert.include(error.message, "headersTimeout is 10s")
      assert.strictEqual(http.asked.length, 3)
    })
  )

  it.effect("gives up on a stream that falls silent", () =>
    Effect.gen(function* () {
      const body = () =>
        new ReadableStream({
          start: (controller) => controller.enqueue(new TextEncoder().encode(chunk({ content: "he" })))
        })
      const { asked, provider } = yield* answering(() => new Response(body()))
      const said: Array<string> = []
      const fiber = yield* provider.stream(request()).pipe(
        Stream.runForEach((part) => Effect.sync(() => said.push(part.type))),
        Effect.flip,
        Effect.forkChild
      )
      // The body is real, so its first read takes a turn of the event loop.
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
      yield* TestClock.adjust("61 seconds")
      assert.strictEqual((yield* Fiber.join(fiber)).reason, "timeout")
      assert.deepStrictEqual(said.slice(-1), ["text-delta"])
      assert.strictEqual(asked.length, 1)
    })
  )
})

describe("keys in errors of a call (S-7)", () => {
  const secret = "sk-SECRET-0123456789abcdef"
  const bodies = [
    `invalid key Bearer ${secret}`,
    JSON.stringify({ error: { message: `invalid key Bearer ${secret}`, type: secret, code: secret } }),
    JSON.stringify({ error: { message: secret, code: secret.replaceAll("-", "_") } }),
    JSON.stringify({ error: secret })
  ]
  bodies.forEach((body, index) => {
    it.effect(`removes a key that the vendor repeats from the error (${index})`, () =>
      Effect.gen(function* () {
        for (const name of ["openai", "anthropic", "ollama", "google", "google-interactions", "compatible"]) {
          const http = stub(() => Effect.succeed(new Response(body, { status: 401, headers: { echo: secret } })))
          const provider = yield* Effect.provide(vendor(name)({}), http.layer)
          const exit = yield* Effect.exit(read(provider.stream(request())))
          assert.isTrue(Exit.isFailure(exit))
          const shown = [
            inspect(exit, { depth: 20, showHidden: true }),
            JSON.stringify(exit),
            Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
          ].join()
          assert.notInclude(shown, secret)
          assert.notInclude(shown, "SECRET")
          assert.include(shown, "the key was refused")
        }
      })
    )
  })

  it("removes a key that looks like an error code, whole, in pieces and within another word", () => {
    const detailOf = (code: string) => toError("mock", { reason: "unknown", code }, ["plain_key", ""], 1).detail
    for (const code of ["plain", "plain_key", "bad_plain_key_given"]) assert.notInclude(detailOf(code), code)
    assert.include(detailOf("bad_request"), "bad_request")
  })
})

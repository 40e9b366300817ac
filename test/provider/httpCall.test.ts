/** One model call over HTTP: what arrives when, what is tried again, and what never leaks. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { FetchHttpClient } from "effect/http"
import { inspect } from "node:util"
import * as zlib from "node:zlib"
import { frameLength } from "../../src/kit/bounds.ts"
import * as Content from "../../src/Content.ts"
import type { ProviderError } from "../../src/KernelError.ts"
import * as Limits from "../../src/Limits.ts"
import * as Model from "../../src/Model.ts"
import type { ProviderShape } from "../../src/Provider.ts"
import { OpenAiProvider } from "../../src/provider/index.ts"
import { retryAt, toError } from "../../src/provider/internal/providerFault.ts"
import { chunk, ending } from "../support/chatStream.ts"
import * as Loopback from "../support/loopback.ts"
import { bodyOf, finishOf, key, message, read, request, stub, vendor } from "../support/provider.ts"
import { quickly, times } from "../support/longRun.ts"

const whole = (text: string) => chunk({ content: text }) + ending

const sse = (body: string, init: ResponseInit = {}) =>
  new Response(body, { headers: { "content-type": "text/event-stream" }, ...init })

/** A provider over a stubbed client that answers the calls in turn, the last one again and again. */
const answering = (...answers: ReadonlyArray<() => Response>) => answeringAs("openai", ...answers)

const answeringAs = (name: string, ...answers: ReadonlyArray<() => Response>) =>
  Effect.gen(function* () {
    const http = stub((_, call) =>
      Effect.suspend(() => {
        const answer = answers[Math.min(call, answers.length - 1)]
        return answer === undefined ? Effect.fail("refused" as const) : Effect.succeed(answer())
      })
    )
    const provider = yield* Effect.provide(vendor(name)({}), http.layer)
    return { provider, asked: http.asked }
  })

/** Runs a call to its end under the test clock, however long its waits are. */
const outcome = (provider: ProviderShape) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(Effect.result(read(provider.stream(request()))))
    for (let turn = 0; turn < 10; turn++) {
      yield* Effect.yieldNow
      yield* TestClock.adjust("30 seconds")
    }
    return yield* Fiber.join(fiber)
  })

const failure = (provider: ProviderShape) =>
  Effect.flatMap(outcome(provider), (result) => Effect.flip(Effect.fromResult(result)))

describe("retried failures (R-13)", () => {
  for (const status of [408, 409, 429, 500, 502, 503, 529]) {
    it.effect(`asks again after status ${status}, up to three times`, () =>
      Effect.gen(function* () {
        const { asked, provider } = yield* answering(() => new Response("{}", { status }))
        const error = yield* failure(provider)
        assert.strictEqual(error.status, status)
        assert.strictEqual(error.attempts, 3)
        assert.strictEqual(asked.length, 3)
      })
    )
  }

  for (const [status, reason] of [
    [400, "invalid_request"],
    [401, "authentication"],
    [402, "quota_exhausted"],
    [403, "permission"],
    [404, "not_found"],
    [413, "invalid_request"],
    [422, "invalid_request"]
  ] as const) {
    it.effect(`gives up at once on status ${status}: ${reason}`, () =>
      Effect.gen(function* () {
        const { asked, provider } = yield* answering(() => new Response("{}", { status }))
        const error = yield* failure(provider)
        assert.strictEqual(error.reason, reason)
        assert.strictEqual(asked.length, 1)
      })
    )
  }

  for (const name of quickly(["anthropic", "google"], (name) => name === "anthropic")) {
    it.effect(`${name}: receives a message of more parts than a function takes arguments`, () =>
      Effect.gen(function* () {
        // More than 150,000 arguments overflow the stack.
        const length = times(600_000, 200_000)
        const content = Array.from({ length }, () => Content.text("p"))
        const body = yield* bodyOf(name, request({ messages: [{ role: "user", content }] }))
        assert.isAbove(JSON.stringify(body).length, length)
      })
    )
  }

  for (const name of ["anthropic", "openai", "google"]) {
    it.effect(`${name}: lets the status decide whether to retry, whatever the document says`, () =>
      Effect.gen(function* () {
        const code = { anthropic: "invalid_request_error", openai: "invalid_api_key", google: "INVALID_ARGUMENT" }[name]
        const passing = { anthropic: "overloaded_error", openai: "overloaded_error", google: "UNAVAILABLE" }[name]
        const document = (code: string | undefined) => JSON.stringify({ error: { type: code, status: code } })
        const later = yield* answeringAs(name, () => new Response(document(code), { status: 409 }))
        assert.strictEqual((yield* failure(later.provider)).reason, "overloaded")
        assert.strictEqual(later.asked.length, 3)
        const never = yield* answeringAs(name, () => new Response(document(passing), { status: 403 }))
        assert.strictEqual((yield* failure(never.provider)).reason, "permission")
        assert.strictEqual(never.asked.length, 1)
      })
    )
  }

  it.effect("answers as if nothing had happened when a later attempt succeeds", () =>
    Effect.gen(function* () {
      const { asked, provider } = yield* answering(
        () => new Response("{}", { status: 529 }),
        () => sse(whole("here"))
      )
      const { text } = yield* Effect.fromResult(yield* outcome(provider))
      assert.strictEqual(text, "here")
      assert.strictEqual(asked.length, 2)
    })
  )

  it.effect("asks again when the connection is lost before anything was said", () =>
    Effect.gen(function* () {
      const http = stub((_, call) => (call === 0 ? Effect.fail("refused") : Effect.succeed(sse(whole("here")))))
      const provider = yield* Effect.provide(vendor("openai")({}), http.layer)
      const { text } = yield* Effect.fromResult(yield* outcome(provider))
      assert.strictEqual(text, "here")
    })
  )

  it.effect("asks again when the reply breaks off before a word, but never after one", () =>
    Effect.gen(function* () {
      const silent = yield* answering(
        () => sse(chunk({ role: "assistant" })),
        () => sse(whole("here"))
      )
      assert.strictEqual((yield* Effect.fromResult(yield* outcome(silent.provider))).text, "here")

      const spoken = yield* answering(
        () => sse(chunk({ content: "he" })),
        () => sse(whole("here"))
      )
      const error = yield* failure(spoken.provider)
      assert.strictEqual(error.reason, "incomplete")
      assert.strictEqual(spoken.asked.length, 1)
    })
  )

  it.effect("does not retry when the quota is used up, although the status allows it", () =>
    Effect.gen(function* () {
      const { asked, provider } = yield* answering(
        () => new Response(JSON.stringify({ error: { code: "insufficient_quota" } }), { status: 429 })
      )
      const error = yield* failure(provider)
      assert.strictEqual(error.reason, "quota_exhausted")
      assert.include(error.message, "insufficient_quota")
      assert.strictEqual(asked.length, 1)
    })
  )

  it.effect("heeds x-should-retry: false", () =>
    Effect.gen(function* () {
      const { asked, provider } = yield* answering(
        () => new Response("{}", { status: 503, headers: { "x-should-retry": "false" } })
      )
      yield* failure(provider)
      assert.strictEqual(asked.length, 1)
    })
  )

  it.effect("takes its number of attempts from the limits", () =>
    Effect.gen(function* () {
      const { asked, provider } = yield* answering(() => new Response("{}", { status: 500 }))
      yield* failure(provider).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 1 }))
      assert.strictEqual(asked.length, 1)
    })
  )
})

describe("how long it waits (R-13)", () => {
  const waits = (headers: { readonly [name: string]: string }, milliseconds: number) =>
    Effect.gen(function* () {
      const { asked, provider } = yield* answering(
        () => new Response("{}", { status: 429, headers }),
        () => sse(whole("here"))
      )
      const fiber = yield* Effect.forkChild(read(provider.stream(request())))
      yield* TestClock.adjust(milliseconds - 1)
      assert.strictEqual(asked.length, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(fiber)).text, "here")
      assert.strictEqual(asked.length, 2)
    })

  it.effect("waits the seconds of retry-after", () => waits({ "retry-after": "30" }, 30_000))
  it.effect("waits until the date of retry-after", () =>
    waits({ "retry-after": new Date(45_000).toUTCString() }, 45_000)
  )
  it.effect("takes parts of a second, and any form of an HTTP date", () =>
    Effect.sync(() => {
      for (const [header, at] of [
        ["1.5", 1_500],
        ["0", 0],
        ["Thu, 01 Jan 1970 00:00:25 GMT", 25_000],
        ["Thursday, 01-Jan-70 00:00:25 GMT", 25_000],
        ["-5", undefined],
        ["in 3000", undefined],
        ["soon 5", undefined],
        ["", undefined]
      ] as const) {
        assert.strictEqual(retryAt({ "retry-after": header }, 0), at, header)
      }
    })
  )
  it.effect("waits about half a second, then about a second, if no wait is requested", () =>
    Effect.gen(function* () {
      // No body is read, which would take turns of the event loop.
      const { asked, provider } = yield* answering()
      const fiber = yield* Effect.forkChild(Effect.ignore(read(provider.stream(request()))))
      const askedBy: Array<number> = []
      for (const wait of [374, 126, 624, 376]) {
        yield* Effect.yieldNow
        yield* TestClock.adjust(wait)
        askedBy.push(asked.length)
      }
      assert.deepStrictEqual(askedBy, [1, 2, 2, 3])
      yield* Fiber.join(fiber)
    })
  )

  it.effect("waits the milliseconds of retry-after-ms before those of retry-after", () =>
    waits({ "retry-after": "50", "retry-after-ms": "2500" }, 2_500)
  )

  it.effect("fails at once, telling when, if the wait is longer than the limit", () =>
    Effect.gen(function* () {
      const { asked, provider } = yield* answering(
        () => new Response("{}", { status: 429, headers: { "retry-after": "3600" } })
      )
      const error = yield* Effect.flip(read(provider.stream(request())))
      assert.strictEqual(error.reason, "rate_limited")
      assert.strictEqual(error.retryAt, 3_600_000)
      assert.strictEqual(asked.length, 1)
    })
  )

  it.effect("gives the reason rate_limited to any failure that asks for a longer wait, whatever its status", () =>
    Effect.gen(function* () {
      for (const status of [500, 503, 529]) {
        const { asked, provider } = yield* answering(
          () => new Response("{}", { status, headers: { "retry-after": "3600" } })
        )
        const error = yield* Effect.flip(read(provider.stream(request())))
        assert.deepInclude(error, { reason: "rate_limited", status, retryAt: 3_600_000 })
        assert.strictEqual(asked.length, 1)
      }
    })
  )

  it.effect("reports a wait beyond all dates as one until the last date", () =>
    Effect.gen(function* () {
      const long = "9".repeat(400)
      const details = [{ retryDelay: `${long}s` }]
      for (const [name, body, headers] of [
        ["openai", {}, { "retry-after": long }],
        ["openai", {}, { "retry-after-ms": "99999999999999999999" }],
        ["google", { error: { code: 429, status: "RESOURCE_EXHAUSTED", details } }, {}]
      ] as const) {
        const { provider } = yield* answeringAs(
          name,
          () => new Response(JSON.stringify(body), { status: 429, headers: { ...headers } })
        )
        const error = yield* Effect.flip(read(provider.stream(request())))
        assert.strictEqual(error.reason, "rate_limited")
        assert.strictEqual(new Date(error.retryAt ?? 0).toISOString(), "+275760-09-13T00:00:00.000Z")
      }
    })
  )

  it.effect("reads how long to wait in Google's document, where no header says it", () =>
    Effect.gen(function* () {
      const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "3600.5s" }]
      const body = JSON.stringify({ error: { code: 429, status: "RESOURCE_EXHAUSTED", details } })
      const { asked, provider } = yield* answeringAs("google", () => new Response(body, { status: 429 }))
      const error = yield* Effect.flip(read(provider.stream(request())))
      assert.deepInclude(error, { reason: "rate_limited", retryAt: 3_600_500 })
      assert.strictEqual(asked.length, 1)
    })
  )

  it.effect("does not ask again within a day whose quota is used up, however short a wait the vendor names", () =>
    Effect.gen(function* () {
      const violations = ["GenerateRequestsPerMinutePerProjectPerModel", "GenerateRequestsPerDayPerProjectPerModel"]
      const details = [
        {
          "@type": "type.googleapis.com/google.rpc.QuotaFailure",
          violations: violations.map((quotaId) => ({ quotaId }))
        },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "20s" }
      ]
      const google = { error: { code: 429, status: "RESOURCE_EXHAUSTED", details } }
      const message = "Rate limit exceeded: free-models-per-day. Add credits to unlock more."
      for (const [name, body] of [
        ["google", google],
        ["openai", [google]],
        ["openai", { error: { message, code: 429 } }]
      ] as const) {
        const { asked, provider } = yield* answeringAs(name, () => new Response(JSON.stringify(body), { status: 429 }))
        const error = yield* failure(provider)
        assert.strictEqual(error.reason, "quota_exhausted")
        assert.isUndefined(error.retryAt)
        assert.strictEqual(asked.length, 1)
      }
      const [minute] = violations
      const passing = [{ ...details[0], violations: [{ quotaId: minute }] }]
      const body = JSON.stringify({ error: { ...google.error, details: passing } })
      const { provider } = yield* answeringAs("google", () => new Response(body, { status: 429 }))
      assert.strictEqual((yield* failure(provider)).reason, "rate_limited")
    })
  )

  it.effect("can be interrupted while it waits", () =>
    Effect.gen(function* () {
      const { asked, provider } = yield* answering(
        () => new Response("{}", { status: 429, headers: { "retry-after": "30" } })
      )
      const fiber = yield* Effect.forkChild(read(provider.stream(request())), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(asked.length, 1)
    })
  )
})

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

const listed = (provider: ProviderShape): NonNullable<ProviderShape["models"]> =>
  provider.models ?? Effect.die("no list")

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

// ---------------------------------------------------------------- over a real socket

const overHttp = <A, E>(
  answer: Loopback.Handle,
  use: (provider: ProviderShape, server: Loopback.Running) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const server = yield* Loopback.serve(answer)
    const provider = yield* OpenAiProvider.make({ apiKey: key, baseUrl: server.url() })
    return yield* use(provider, server)
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

describe("over a socket", () => {
  it.live("delivers the first event while the server holds back the second (W-12)", () =>
    Effect.gen(function* () {
      const { promise: seen, resolve } = Promise.withResolvers<void>()
      const text = yield* overHttp(
        (_, response) => {
          response.write(chunk({ content: "he" }))
          seen.then(() => response.end(chunk({ content: "re" }) + ending))
        },
        (provider) =>
          provider.stream(request()).pipe(
            Stream.tap((part) =>
              part.type === "text-delta" && part.delta === "he" ? Effect.sync(resolve) : Effect.void
            ),
            read,
            Effect.map((reply) => reply.text)
          )
      )
      assert.strictEqual(text, "here")
    })
  )

  it.live("aborts the request when its consumer stops", () =>
    overHttp(
      (_, response) => void response.write(chunk({ content: "he" })),
      (provider, server) =>
        Effect.andThen(
          provider.stream(request()).pipe(
            Stream.takeUntil((part) => part.type === "text-delta"),
            Stream.runDrain
          ),
          eventually(() => server.abandoned() === 1)
        )
    )
  )

  it.live("aborts the request when it is interrupted, with and without headers", () =>
    overHttp(
      (asked, response) => {
        if (asked.body.includes("headers")) response.write(": here\n\n")
      },
      (provider, server) =>
        Effect.gen(function* () {
          for (const [model, count] of [
            ["headers", 1],
            ["none", 2]
          ] as const) {
            const ask = request({ model: { id: model, capabilities: ["text"] } })
            const fiber = yield* Effect.forkChild(read(provider.stream(ask)))
            yield* eventually(() => server.seen.length === count)
            yield* Fiber.interrupt(fiber)
            yield* eventually(() => server.abandoned() === count)
          }
        })
    )
  )

  it.live("uses a connection again, also when the body ends a little after the reply (W-18)", () =>
    overHttp(
      (_, response) => {
        response.write(whole("here"))
        setTimeout(() => response.end(), 5)
      },
      (provider, server) =>
        Effect.gen(function* () {
          for (let call = 0; call < 8; call++) yield* read(provider.stream(request()))
          assert.strictEqual(server.seen.length, 8)
          assert.isBelow(server.connections(), 4)
        })
    )
  )

  for (const status of [301, 302, 303, 307, 308]) {
    it.live(`does not follow a ${status}: neither body nor key reach the second server (S-14)`, () =>
      Effect.gen(function* () {
        const second = yield* Loopback.serve((_, response) => response.end(whole("stolen")))
        yield* overHttp(
          (_, response) => response.writeHead(status, { location: second.url("/v1/chat/completions") }).end(),
          (provider, first) =>
            Effect.gen(function* () {
              const error = yield* Effect.flip(read(provider.stream(request())))
              assert.strictEqual(error.reason, "redirect")
              assert.strictEqual(first.seen.length, 1)
              assert.strictEqual(second.seen.length, 0)
            })
        )
      }).pipe(Effect.scoped)
    )
  }

  it.live("reports a reset after the first word as disconnected, without a retry", () =>
    overHttp(
      (_, response) => {
        response.write(chunk({ content: "he" }))
        setTimeout(() => response.destroy(), 20)
      },
      (provider, server) =>
        Effect.gen(function* () {
          const error = yield* Effect.flip(read(provider.stream(request())))
          assert.strictEqual(error.reason, "disconnected")
          assert.strictEqual(server.seen.length, 1)
        })
    )
  )

  it.live("reports an unreachable server as disconnected, and names only its host", () =>
    Effect.gen(function* () {
      const provider = yield* OpenAiProvider.make({ apiKey: key, baseUrl: "http://127.0.0.1:1/private" })
      const error = yield* Effect.flip(read(provider.stream(request())))
      assert.strictEqual(error.reason, "disconnected")
      assert.strictEqual(error.detail, "the connection was lost (no response from 127.0.0.1:1)")
    }).pipe(
      Effect.provide(FetchHttpClient.layer),
      Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 1 })
    )
  )

  it.live("reports an invalid address without showing it", () =>
    Effect.gen(function* () {
      const provider = yield* OpenAiProvider.make({ apiKey: key, baseUrl: "http://SECRET host/v1" })
      const error = yield* Effect.flip(read(provider.stream(request())))
      assert.strictEqual(error.reason, "invalid_request")
      assert.strictEqual(error.detail, "the request was refused (its address is not a URL)")
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("reports the system's error code when a server cannot be reached, and nothing else of the error", () =>
    Effect.gen(function* () {
      const gone = yield* Loopback.gone
      const unreachable = yield* OpenAiProvider.make({ apiKey: key, baseUrl: gone.url("/private") })
      const refused = yield* Effect.flip(read(unreachable.stream(request())))
      assert.strictEqual(
        refused.detail,
        `the connection was lost (ECONNREFUSED, no response from ${new URL(gone.url()).host})`
      )
      const certificate = Object.assign(new Error("certificate has expired, sk-SECRET"), { code: "CERT_HAS_EXPIRED" })
      const fetch = () => Promise.reject(new TypeError("fetch failed", { cause: certificate }))
      const expired = yield* Effect.flip(
        Effect.provideService(read(unreachable.stream(request())), FetchHttpClient.Fetch, fetch)
      )
      assert.match(expired.detail, /^the connection was lost \(CERT_HAS_EXPIRED, no response from [\d.:]+\)$/)
    }).pipe(
      Effect.provide(FetchHttpClient.layer),
      Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 1 }),
      Effect.scoped
    )
  )

  it.live("reads a reply that comes byte by byte", () =>
    overHttp(
      (_, response) => {
        const bytes = Buffer.from(whole("déjà"))
        const next = (at: number) => {
          if (at === bytes.length) return response.end()
          response.write(bytes.subarray(at, at + 1))
          setImmediate(next, at + 1)
        }
        next(0)
      },
      (provider) =>
        Effect.map(read(provider.stream(request())), ({ parts, text }) => {
          assert.strictEqual(text, "déjà")
          assert.strictEqual(finishOf(parts)?.reason, "stop")
        })
    )
  )

  for (const [encoding, pack] of [
    ["gzip", zlib.gzipSync],
    ["br", (bytes: Buffer) => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })]
  ] as const) {
    it.live(`stops unpacking a ${encoding} bomb at the limit (S-11)`, () =>
      overHttp(
        (_, response) =>
          response
            .writeHead(200, { "content-type": "text/event-stream", "content-encoding": encoding })
            .end(pack(Buffer.alloc(8 * 1024 * 1024, ":\n"))),
        (provider) =>
          Effect.map(Effect.flip(read(provider.stream(request()))), (error) => {
            assert.strictEqual(error.reason, "limit_exceeded")
            assert.include(error.message, "fetchedBytes")
          })
      ).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, fetchedBytes: 1024 * 1024 }))
    )
  }

  it.live("rejects a body that unpacks to more than a hundred times its length (S-11)", () => {
    const packed = zlib.gzipSync(Buffer.alloc(1024 * 1024, ":\n"))
    return overHttp(
      (_, response) =>
        response.writeHead(200, { "content-encoding": "gzip", "content-length": packed.length }).end(packed),
      (provider) =>
        Effect.map(Effect.flip(read(provider.stream(request()))), (error) => {
          assert.strictEqual(error.reason, "limit_exceeded")
          assert.include(error.message, "decompressionRatio is 100")
          assert.isBelow(packed.length * 100, 1024 * 1024)
        })
    )
  })

  it.live("requests no compression, sends the key in its header, and no trace headers", () =>
    overHttp(
      (_, response) => response.end(whole("here")),
      (provider, server) =>
        Effect.map(read(provider.stream(request())), () => {
          const [asked] = server.seen
          assert.strictEqual(asked?.method, "POST")
          assert.strictEqual(asked?.path, "/v1/chat/completions")
          assert.strictEqual(asked?.headers["authorization"], "Bearer sk-SECRET-0123456789abcdef")
          assert.strictEqual(asked?.headers["accept-encoding"], "identity")
          assert.strictEqual(asked?.headers["content-type"], "application/json")
          assert.notProperty(asked?.headers, "traceparent")
          assert.notProperty(asked?.headers, "b3")
        })
    )
  )
})

/** Waits until something on the other side of a socket has happened. */
const eventually = (happened: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (happened() ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(happened))))

import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Content from "../../src/Content.ts"
import * as Limits from "../../src/Limits.ts"
import { retryAt } from "../../src/provider/internal/providerFault.ts"
import { chunk } from "../support/chatStream.ts"
import { bodyOf, read, request, stub, vendor } from "../support/provider.ts"
import { quickly, times } from "../support/longRun.ts"
import { answering, answeringAs, failure, outcome, sse, whole } from "../support/scriptedHttp.ts"

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

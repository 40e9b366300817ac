/** Recordings with bytes changed at random: every answer is read or fails typed, and none takes long (F4). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { HttpClient } from "effect/http"
import type { ProviderError } from "../../src/KernelError.ts"
import * as Limits from "../../src/Limits.ts"
import { Cassette } from "../../src/testing/index.ts"
import { cassettes, finishOf, read, request, stub, vendor } from "../support/provider.ts"
import { times } from "../support/longRun.ts"

const rounds = times(60, 10)

/** A generator of numbers below one, the same for the same seed. */
const drawing = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

const pieces = [
  '"',
  "{",
  "}",
  "[",
  "]",
  "\\",
  "\n",
  "\n\n",
  "null",
  "-1",
  "1e999",
  '"__proto__":',
  "data: ",
  "\u0000",
  "😀"
]

const mutate = (body: string, draw: () => number): string => {
  let text = body
  for (let times = 1 + Math.floor(draw() * 4); times > 0; times--) {
    const at = Math.floor(draw() * text.length)
    const cut = draw() < 0.5 ? Math.floor(draw() * 30) : 0
    text = text.slice(0, at) + (pieces[Math.floor(draw() * pieces.length)] ?? "") + text.slice(at + cut)
  }
  return text
}

describe("changed recordings", () => {
  for (const folder of ["cassettes", "synthetic"]) {
    for (const { name, text } of cassettes(folder)) {
      it.effect(name, () =>
        Effect.gen(function* () {
          const cassette = yield* Cassette.parse(text)
          const draw = drawing(name.length)
          for (let round = 0; round < rounds; round++) {
            const exchange = cassette.interactions[round % cassette.interactions.length]
            assert.isDefined(exchange)
            const changed: Cassette.Exchange = {
              ...exchange,
              response: { ...exchange.response, body: mutate(exchange.response.body, draw) }
            }
            const provider = yield* Effect.provideService(
              vendor(cassette.vendor)({}),
              HttpClient.HttpClient,
              Cassette.player([changed], { cut: { seed: round } })
            )
            const exit = yield* Effect.exit(read(provider.stream(request())))
            if (Exit.isSuccess(exit)) assert.isDefined(finishOf(exit.value.parts))
            else assert.isTrue(exit.cause.reasons.every((reason) => reason._tag === "Fail" && isTyped(reason.error)))
          }
          assert.notProperty({}, "polluted")
        }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 1 }))
      )
    }
  }
})

describe("calls that nest too deeply", () => {
  const deep = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`
  const replies: ReadonlyArray<readonly [string, (params: string) => string]> = [
    [
      "anthropic",
      (params) =>
        `data: {"type":"content_block_start","content_block":{"type":"tool_use","name":"f","input":${params}}}\n\n`
    ],
    [
      "compatible",
      (params) => `data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":${params}}}]}}]}\n\n`
    ],
    ["ollama", (params) => `{"message":{"tool_calls":[{"function":{"name":"f","arguments":${params}}}]}}\n`],
    [
      "google",
      (params) => `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${params}}}]}}]}\n\n`
    ],
    [
      "google-interactions",
      (params) =>
        `data: {"event_type":"step.start","step":{"type":"function_call","name":"f","arguments":${params}}}\n\n`
    ]
  ]
  for (const [name, body] of replies) {
    it.effect(`${name}: fail at the limit, whole or hundred thousand deep`, () =>
      Effect.gen(function* () {
        for (const depth of [101, 100_000]) {
          const http = stub(() => Effect.succeed(new Response(body(deep(depth)))))
          const provider = yield* Effect.provide(vendor(name)({}), http.layer)
          const error = yield* Effect.flip(read(provider.stream(request())))
          assert.strictEqual(error.reason, "limit_exceeded")
          assert.include(error.message, "jsonDepth is 100")
        }
      })
    )
  }

  it.effect("stay text when their arguments arrive as text (R-11)", () =>
    Effect.gen(function* () {
      const params = deep(100_000)
      const call = { index: 0, id: "a", function: { name: "f", arguments: params } }
      const body = `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [call] }, finish_reason: "tool_calls" }] })}\n\n`
      const http = stub(() => Effect.succeed(new Response(body)))
      const provider = yield* Effect.provide(vendor("openai")({}), http.layer)
      const { parts } = yield* read(provider.stream(request()))
      assert.strictEqual(parts.find((part) => part.type === "tool-call")?.params, params)
    })
  )

  it.effect("fail as corrupt in a cassette", () =>
    Effect.map(Effect.flip(Cassette.parse(deep(100_000))), (error) => assert.strictEqual(error.reason, "corrupt"))
  )
})

const isTyped = (error: ProviderError): boolean => error._tag === "ProviderError" && error.detail !== ""

/** Every recording, at many cuts of its bodies, through the adapter of its vendor (W-12, R-12). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Stream } from "effect"
import { HttpClient } from "effect/http"
import * as BlockParser from "../../src/BlockParser.ts"
import * as Limits from "../../src/Limits.ts"
import type * as StreamPart from "../../src/StreamPart.ts"
import { Cassette } from "../../src/testing/index.ts"
import { cassettes, finishOf, read, request, vendor } from "../support/provider.ts"
import { isLong, quickly } from "../support/longRun.ts"

interface Expected {
  readonly content: string
  readonly deltas: ReadonlyArray<string>
  readonly usage: { readonly prompt_tokens: number | null; readonly completion_tokens: number | null } | null
  readonly reason?: string
  readonly calls?: ReadonlyArray<{ readonly name: string; readonly params: unknown }>
  /** The calls that the vendor ran, and the addresses of the pages they found. */
  readonly hosted?: ReturnType<typeof hostedIn>
  readonly thinking?: string
  readonly blocks: ReadonlyArray<{ readonly type: string; readonly name?: string; readonly content: string }>
}

const isOurs = (part: StreamPart.StreamPart): part is StreamPart.ToolCall =>
  part.type === "tool-call" && part.providerExecuted !== true

const hostedIn = (parts: ReadonlyArray<StreamPart.StreamPart>) =>
  parts.flatMap((part) => {
    if (part.type !== "tool-call" || part.providerExecuted !== true) return []
    const result = parts.find((other) => other.type === "tool-result" && other.id === part.id)
    const sources = result?.type === "tool-result" ? result.result.sources.map(({ url }) => url) : []
    return [{ name: part.name, params: part.params, sources }]
  })

const cuts = (size: number): ReadonlyArray<Cassette.Cut> => {
  const lengths =
    size > 16_384 ? quickly([7, 61], (length) => length === 61) : quickly([1, 2, 3, 7, 61], (length) => length === 1)
  return ["whole", "frames", ...lengths, ...quickly([1, 2, 3], (seed) => seed === 1).map((seed) => ({ seed }))]
}

for (const folder of ["cassettes", "synthetic"]) {
  describe(folder, () => {
    for (const { name, text } of cassettes(folder)) {
      it.effect(`${name} reads the same however the network cuts it`, () =>
        Effect.gen(function* () {
          const cassette = yield* Cassette.parse(text)
          assert.isNotEmpty(cassette.interactions)
          for (const exchange of cassette.interactions) {
            const expected = exchange.expected as unknown as Expected
            for (const cut of cuts(exchange.response.body.length)) {
              const provider = yield* Effect.provideService(
                vendor(cassette.vendor)({}),
                HttpClient.HttpClient,
                Cassette.player([exchange], { cut })
              )
              const { deltas, parts, text } = yield* read(
                provider.stream(request({ model: { id: cassette.model, capabilities: ["text"] } }))
              )
              assert.strictEqual(text, expected.content)
              assert.deepStrictEqual(deltas, expected.deltas)
              const finish = finishOf(parts)
              assert.strictEqual(parts.at(-1), finish)
              assert.strictEqual(finish?.reason, expected.reason ?? "stop")
              assert.strictEqual(finish?.usage.inputTokens.total, expected.usage?.prompt_tokens ?? undefined)
              assert.strictEqual(finish?.usage.outputTokens.total, expected.usage?.completion_tokens ?? undefined)
              assert.deepStrictEqual(
                parts.flatMap((part) => (isOurs(part) ? [{ name: part.name, params: part.params }] : [])),
                expected.calls ?? []
              )
              assert.deepStrictEqual(hostedIn(parts), expected.hosted ?? [])
              assert.strictEqual(
                parts.map((part) => (part.type === "reasoning-delta" ? part.delta : "")).join(""),
                expected.thinking ?? ""
              )
            }
            assert.deepStrictEqual(
              BlockParser.parse(expected.content).blocks.map(({ content, name, type }) =>
                name === null ? { type, content } : { type, name, content }
              ),
              expected.blocks.map(({ content, name, type }) =>
                name === undefined || name === null ? { type, content } : { type, name, content }
              )
            )
          }
        })
      )
    }
  })
}

describe("a body that is truncated without a connection error (R-10, W-13)", () => {
  for (const { name, text } of [...cassettes("cassettes"), ...cassettes("synthetic")]) {
    it.effect(`${name} is the whole reply from the stop reason on, and none before`, () =>
      Effect.gen(function* () {
        const cassette = yield* Cassette.parse(text)
        const model = { id: cassette.model, capabilities: ["text"] as const }
        for (const exchange of cassette.interactions) {
          const reply = Effect.fnUntraced(function* (body: string) {
            const client = Cassette.player([{ ...exchange, response: { ...exchange.response, body } }])
            const provider = yield* Effect.provideService(vendor(cassette.vendor)({}), HttpClient.HttpClient, client)
            return yield* Effect.result(Stream.runCollect(provider.stream(request({ model }))))
          })
          const said = (parts: ReadonlyArray<StreamPart.StreamPart>) =>
            parts.map((part) => (part.type === "finish" ? part.reason : part))
          const { body } = exchange.response
          const whole = said(Result.getOrThrow(yield* reply(body)))
          const lines = Array.from(body.matchAll(/\n/g), ({ index }) => index + 1).filter((end) => end < body.length)
          let incomplete = 0
          const late = lines.length - 8
          const ends = lines.filter((_, index) => isLong || index >= late || index % 8 === 0)
          for (const end of [...ends, Math.floor(body.length / 2)]) {
            const read = yield* reply(body.slice(0, end))
            // What follows the stop reason are counts, and the end mark of some.
            if (Result.isSuccess(read)) assert.deepStrictEqual(said(read.success), whole)
            else assert.strictEqual(read.failure.reason, "incomplete", `${end}`)
            if (Result.isFailure(read)) incomplete++
          }
          assert.isAbove(incomplete, 0)
        }
      }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 1 }))
    )
  }
})

import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { FetchHttpClient } from "effect/http"
import * as zlib from "node:zlib"
import * as Limits from "../../src/Limits.ts"
import type { ProviderShape } from "../../src/Provider.ts"
import { OpenAiProvider } from "../../src/provider/index.ts"
import { chunk, ending } from "../support/chatStream.ts"
import * as Loopback from "../support/loopback.ts"
import { finishOf, key, read, request } from "../support/provider.ts"
import { whole } from "../support/scriptedHttp.ts"

const overHttp = <A, E>(
  answer: Loopback.Handle,
  use: (provider: ProviderShape, server: Loopback.Running) => Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const server = yield* Loopback.serve(answer)
    const provider = yield* OpenAiProvider.make({ apiKey: key, baseUrl: server.url() })
    return yield* use(provider, server)
  }).pipe(Effect.scoped, Effect.provide(FetchHttpClient.layer))

/** Waits until something on the other side of a socket has happened. */
const eventually = (happened: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (happened() ? Effect.void : Effect.andThen(Effect.sleep(5), eventually(happened))))

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

import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Tracer } from "effect"
import { inspect } from "node:util"
import * as Limits from "../../src/Limits.ts"
import { read, request, stub, vendor, vendors } from "../support/provider.ts"

const secrets = ["S3CRET-query", "S3CRET+sign", "S3CRET-person"]
const query = "access=S3CRET-query&sig=S3CRET%2Bsign&api-version=2024-10-21"

/** Runs an effect and returns everything its spans show: names, attributes, events and how they ended. */
const traced = (effect: Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const spans: Array<Tracer.NativeSpan> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    const once = { ...Limits.defaults, modelAttempts: 1 }
    yield* Effect.exit(effect).pipe(
      Effect.provideService(Tracer.Tracer, tracer),
      Effect.provideService(Limits.Limits, once)
    )
    return spans.map((span) => {
      const { status } = span
      const ended =
        status._tag === "Ended" && status.exit._tag === "Failure"
          ? [Cause.pretty(status.exit.cause), inspect(status.exit, { depth: 8 }), JSON.stringify(status.exit)]
          : []
      return [span.name, inspect(Object.fromEntries(span.attributes)), inspect(span.events), ...ended].join("\n")
    })
  })

const outcomes: ReadonlyArray<readonly [string, Effect.Effect<Response, "refused">]> = [
  ["answers", Effect.sync(() => new Response("{}"))],
  ["refuses the key", Effect.sync(() => new Response("{}", { status: 401 }))],
  [
    "redirects",
    Effect.sync(() => new Response("", { status: 302, headers: { location: `https://a.test/?${query}` } }))
  ],
  ["cannot be reached", Effect.fail("refused" as const)]
]

describe("Spans show no key of a base URL's query", () => {
  for (const name of Object.keys(vendors)) {
    for (const [what, answer] of outcomes) {
      it.effect(`when ${name} ${what}`, () =>
        Effect.gen(function* () {
          const http = stub(() => answer)
          const baseUrl = `https://host.test/base?${query}`
          const provider = yield* Effect.provide(vendor(name)({ baseUrl }), http.layer)
          const spans = yield* traced(read(provider.stream(request())))
          const url = new URL(http.asked[0]?.url ?? "")
          assert.strictEqual(url.searchParams.get("access"), "S3CRET-query")
          assert.strictEqual(url.searchParams.get("sig"), "S3CRET+sign")
          assert.strictEqual(url.searchParams.get("api-version"), "2024-10-21")
          const shown = spans.join("\n")
          assert.include(shown, "http.request.method")
          assert.include(shown, "host.test/base")
          for (const secret of secrets) {
            assert.notInclude(shown, secret)
            assert.notInclude(shown, encodeURIComponent(secret))
          }
        })
      )
    }
  }

  it.effect("nor its user and password", () =>
    Effect.gen(function* () {
      const http = stub(() => Effect.sync(() => new Response("{}", { status: 500 })))
      const baseUrl = "https://S3CRET-person:S3CRET-person@host.test/base"
      const provider = yield* Effect.provide(vendor("openai")({ baseUrl }), http.layer)
      assert.notInclude((yield* traced(read(provider.stream(request())))).join("\n"), "S3CRET")
    })
  )
})

/** The switch that keeps tests from asking real models. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Kernel, Model, Provider } from "kernai"
import { AiSdkProvider } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { kernel, ports } from "../support/kernel.ts"
import { read, request, stub, vendor, vendors } from "../support/provider.ts"
import { told } from "../support/toolbox.ts"

const agent = Agent.make({ instructions: "", model: Model.make("m") })

const asking = (name: string) =>
  Effect.gen(function* () {
    const http = stub(() => Effect.fail("refused"))
    return { http, provider: yield* Effect.provide(vendor(name)({}), http.layer) }
  })

describe("Provider.forbidReal", () => {
  for (const name of Object.keys(vendors)) {
    it.effect(`fails a call of ${name} with a typed error, without a retry and before anything is sent`, () =>
      Effect.gen(function* () {
        const { http, provider } = yield* asking(name)
        const error = yield* Effect.flip(read(provider.stream(request())))
        assert.strictEqual(error.reason, "forbidden")
        assert.strictEqual(error.attempts, 1)
        assert.strictEqual((yield* Effect.flip(provider.models ?? Effect.die("no list")))._tag, "ProviderError")
        assert.deepStrictEqual(http.asked, [])
      }).pipe(Effect.provide(Provider.forbidReal))
    )
  }

  it.effect("fails a call of another package's model too, and lets a call through where it is allowed again", () =>
    Effect.gen(function* () {
      const provider = AiSdkProvider.fromModel(() => assert.fail("asked"))
      assert.strictEqual((yield* Effect.flip(read(provider.stream(request())))).reason, "forbidden")
      const { http, provider: allowed } = yield* asking("anthropic")
      yield* Effect.timeoutOption(Effect.ignore(read(allowed.stream(request()))), 0).pipe(
        Effect.provideService(Provider.ForbidReal, false)
      )
      assert.strictEqual(http.asked.length, 1)
    }).pipe(Effect.provide(Provider.forbidReal))
  )

  it.effect("allows scripted models, and applies to a kernel that was built with it", () =>
    Effect.gen(function* () {
      const { http, provider } = yield* asking("openai")
      const run = yield* told(agent, "hi", { provider })
      assert.strictEqual(run.failure?._tag === "ProviderError" && run.failure.reason, "forbidden")
      assert.deepStrictEqual(http.asked, [])
      const scripted = yield* told(agent, "hi", { provider: MockProvider.make("here") })
      assert.strictEqual(scripted.text, "here")
    }).pipe(
      Effect.provide(Kernel.layerNoProvider.pipe(Layer.provide(Provider.forbidReal), Layer.provideMerge(ports())))
    )
  )

  it.effect("is off unless it is provided", () =>
    Effect.gen(function* () {
      const { http, provider } = yield* asking("openai")
      yield* Effect.timeoutOption(Effect.ignore(told(agent, "hi", { provider })), 0)
      assert.strictEqual(http.asked.length, 1)
    }).pipe(Effect.provide(kernel()))
  )
})

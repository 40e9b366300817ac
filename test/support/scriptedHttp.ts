/** Providers over HTTP whose server answers as scripted. */
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { ProviderShape } from "../../src/Provider.ts"
import { chunk, ending } from "./chatStream.ts"
import { read, request, stub, vendor } from "./provider.ts"

export const whole = (text: string) => chunk({ content: text }) + ending

export const sse = (body: string, init: ResponseInit = {}) =>
  new Response(body, { headers: { "content-type": "text/event-stream" }, ...init })

/** A provider over a stubbed client that answers the calls in turn, the last one again and again. */
export const answering = (...answers: ReadonlyArray<() => Response>) => answeringAs("openai", ...answers)

export const answeringAs = (name: string, ...answers: ReadonlyArray<() => Response>) =>
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
export const outcome = (provider: ProviderShape) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(Effect.result(read(provider.stream(request()))))
    for (let turn = 0; turn < 10; turn++) {
      yield* Effect.yieldNow
      yield* TestClock.adjust("30 seconds")
    }
    return yield* Fiber.join(fiber)
  })

export const failure = (provider: ProviderShape) =>
  Effect.flatMap(outcome(provider), (result) => Effect.flip(Effect.fromResult(result)))

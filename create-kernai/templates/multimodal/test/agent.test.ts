import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Kernel } from "kernai"
import { agent } from "../src/agent.ts"
import { live } from "../src/live.ts"

describe("the agent", () => {
  it.effect("measures the picture it made itself", () =>
    Effect.gen(function* () {
      const result = yield* Kernel.run(agent, "Draw a dot and tell me its size.")
      assert.match(result.text, /has \d+ bytes/)
      assert.isTrue(result.calls.every((call) => !call.isError))
    }).pipe(Effect.provide(live))
  )
})

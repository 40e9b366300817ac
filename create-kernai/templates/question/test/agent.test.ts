import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Kernel } from "kernai"
import { MockProvider } from "kernai/testing"
import { agent, kernel } from "../src/agent.ts"

const asks = `<block type="command" name="send">{"to": "Oslo", "text": "Hello"}</block>`

describe("a letter", () => {
  for (const approved of [true, false]) {
    it.live(`is ${approved ? "" : "not "}sent when a person ${approved ? "approves" : "denies"} it`, () =>
      Effect.gen(function* () {
        const provider = MockProvider.make(asks, "<final>done</final>")
        const error = yield* Effect.flip(Kernel.run(agent, "Write to Oslo.", { provider, runId: "letter" }))
        assert.strictEqual(error._tag, "RunPaused")
        const answers = (yield* Kernel.questions("letter")).map(({ callId }) => ({
          callId,
          approved,
          by: "Ada"
        }))
        const result = yield* Kernel.resume(agent, "letter", { provider, answers })
        assert.strictEqual(result.calls[0]?.isError, !approved)
      }).pipe(Effect.provide(kernel(":memory:")))
    )
  }
})

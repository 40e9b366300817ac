import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Kernel, Message } from "kernai"
import { MockProvider } from "kernai/testing"
import { agent, live } from "../src/live.ts"

describe("the agent", () => {
  // A time limit against hanging: a busy machine takes long to start the server.
  const timeout = 120_000
  it.live(
    "asks the server which folders it may read",
    () => {
      const mock = MockProvider.make(
        `<block type="command" name="mcp_files__list_allowed_directories">{}</block>`,
        "<final>done</final>"
      )
      return Effect.gen(function* () {
        const result = yield* Kernel.run(agent, "What may you read?")
        assert.strictEqual(result.calls[0]?.isError, false)
        const told = mock.messagesAt(1)?.at(-1)
        assert.include(told === undefined ? "" : Message.text(told), process.cwd())
      }).pipe(Effect.provide(live(MockProvider.layerOf(mock))))
    },
    timeout
  )
})

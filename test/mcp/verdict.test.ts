import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { McpConfig } from "kernai/mcp"
import * as Verdict from "../../src/mcp/internal/verdict.ts"

describe("what is told of a server", () => {
  it.effect("holds neither the token of the moment nor the keys of the config, however many tokens there were", () =>
    Effect.gen(function* () {
      const headers = { "x-key": "the key of the config" }
      const { servers } = yield* McpConfig.fromValue({ servers: { it: { url: "https://a.example/mcp", headers } } })
      for (const server of servers.values()) {
        const teller = new Verdict.Teller(server)
        for (let count = 0; count < 3000; count++) teller.learn(`token-${count}`)
        teller.learn("token-2000")
        assert.strictEqual(
          teller.notFound("token-2999, token-2000, the key of the config").message,
          "<redacted>, <redacted>, <redacted>"
        )
      }
    })
  )
})

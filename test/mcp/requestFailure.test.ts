import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { HttpError, McpClientError } from "effect/ai/McpClientError"
import { McpConfig } from "kernai/mcp"
import { Failures } from "../../src/mcp/internal/requestFailure.ts"

describe("the errors of a server", () => {
  it.effect("hold neither current tokens nor keys of the config", () =>
    Effect.gen(function* () {
      const headers = { "x-key": "the key of the config" }
      const { servers } = yield* McpConfig.fromValue({ servers: { it: { url: "https://a.example/mcp", headers } } })
      for (const server of servers.values()) {
        const failures = new Failures(server)
        for (let count = 0; count < 3000; count++) failures.mask(`token-${count}`)
        failures.mask("token-2000")
        assert.strictEqual(
          failures.notFound("token-2999, token-2000, the key of the config").message,
          "<redacted>, <redacted>, <redacted>"
        )
      }
    })
  )

  it.effect("say when the server can be asked again", () =>
    Effect.gen(function* () {
      const { servers } = yield* McpConfig.fromValue({ servers: { it: { url: "https://a.example/mcp" } } })
      for (const server of servers.values()) {
        for (const [retryAfter, told] of [
          ["30", "; retry after 30 s"],
          ["Wed, 21 Oct 2026 07:28:00 GMT", "; retry at 2026-10-21T07:28:00.000Z"],
          ["soon (at 5)", ""],
          [undefined, ""]
        ] as const) {
          const error = new McpClientError({ reason: new HttpError({ status: 429, retryAfter }) })
          const { message, reason } = new Failures(server).of("tools/call", error)
          assert.strictEqual(reason, "remote")
          assert.strictEqual(message, `MCP server 'it' answered with HTTP status 429${told}`)
        }
      }
    })
  )
})

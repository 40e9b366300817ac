/** The arguments of a call over HTTP are text that every JSON reader takes. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as Support from "../support/mcp/connect.ts"
import * as Http from "../support/mcp/httpServer.ts"
import * as Hub from "../support/mcp/hub.ts"

layer(Support.platform, { excludeTestServices: true })("the arguments of a call over HTTP", (it) => {
  it.effect("hold no half of a surrogate pair, in keys and values", () =>
    Effect.gen(function* () {
      const calls: Array<string> = []
      const handle = Http.mcp(new Http.Notebook())
      const server = yield* Http.serve((request, response) => {
        if (request.body.includes("tools/call")) calls.push(request.body)
        return handle(request, response)
      })
      const half = "\u{1f3af}".slice(0, 1)
      const params = { [`key ${half}`]: [`value ${half}`] }
      // The server cuts some of its answers off; what it was asked is enough here.
      const called = Effect.ignore(Hub.call("mcp_house__read", params))
      yield* Effect.provide(called, Hub.hub({ house: { url: server.url() } }))
      assert.isNotEmpty(calls)
      const [call = ""] = calls
      assert.include(call, "value")
      assert.isTrue(call.isWellFormed())
      assert.notMatch(call, /\\ud[89ab]/i)
    }).pipe(Effect.scoped)
  )
})

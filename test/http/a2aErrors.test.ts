/** Errors of the A2A protocol: a JSON-RPC code and the details by which programs tell them apart. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { A2a } from "kernai/http"
import { final } from "../support/blocks.ts"
import { serve } from "../support/http.ts"

const post = (url: string, body: string) =>
  Effect.promise(async () => {
    const headers = { "content-type": "application/json", "a2a-version": "1.0" }
    const response = await fetch(`${url}/a2a`, { method: "POST", headers, body })
    const { error, id } = JSON.parse(await response.text())
    const [info] = error.data
    return [response.status, id, error.code, info["@type"], info.reason, info.domain]
  })

const call = (method: string, params: object = {}) => JSON.stringify({ jsonrpc: "2.0", id: "x", method, params })

describe("an error of A2A", () => {
  it.live("has a code, and the reason in an ErrorInfo", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ routes: A2a.layer(), replies: [final("Done.")] })
      for (const [body, id, code, reason] of [
        ["{", null, -32700, "PARSE_ERROR"],
        ["", null, -32700, "PARSE_ERROR"],
        ["[".repeat(100_000), null, -32700, "PARSE_ERROR"],
        ["[]", null, -32600, "INVALID_REQUEST"],
        ["17", null, -32600, "INVALID_REQUEST"],
        ['{"jsonrpc":"1.0","id":7,"method":"GetTask"}', 7, -32600, "INVALID_REQUEST"],
        ['{"jsonrpc":"2.0","id":{},"method":"GetTask"}', null, -32600, "INVALID_REQUEST"],
        ['{"jsonrpc":"2.0","id":"x","method":5}', "x", -32600, "INVALID_REQUEST"],
        [call("Surprise"), "x", -32601, "METHOD_NOT_FOUND"],
        [call("GetTask"), "x", -32602, "INVALID_PARAMS"],
        [call("GetTask", { id: "none" }), "x", -32001, "TASK_NOT_FOUND"],
        [call("CreateTaskPushNotificationConfig"), "x", -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"],
        [call("GetExtendedAgentCard"), "x", -32004, "UNSUPPORTED_OPERATION"],
        [call("message/send"), "x", -32009, "VERSION_NOT_SUPPORTED"]
      ] as const) {
        const type = "type.googleapis.com/google.rpc.ErrorInfo"
        const expected = [200, id, code, type, reason, "a2a-protocol.org"]
        assert.deepStrictEqual(yield* post(url, body), expected, body.slice(0, 100))
      }
    }).pipe(Effect.scoped)
  )
})

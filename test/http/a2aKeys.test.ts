/** Keys that an agent of another service repeats in its errors. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { A2aClient } from "kernai/http"
import * as Remote from "../support/a2aAgent.ts"
import { encodings, leftOf } from "../support/encodings.ts"

// It has the form of no vendor's key, so that only who knows it can find it.
const key = "Zq7vKd3mRw9xTb2nYc5hLp8g"
const headers = {
  bearer: { authorization: Redacted.make(`Bearer ${key}`) },
  basic: { authorization: Redacted.make(`Basic ${Buffer.from(`user:${key}`).toString("base64")}`) },
  plain: { "x-key": Redacted.make(key) }
}

/** Asks an agent whose reply to every call is the same, and returns the error and every task that was shown. */
const asked = Effect.fnUntraced(function* (body: object, sent: A2aClient.Options["headers"]) {
  const { url } = yield* Remote.run({
    turn: () => Promise.resolve(),
    intercept: ({ method }, response) => {
      if (method !== "POST") return false
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }))
      return true
    }
  })
  const client = yield* A2aClient.makeFetch({ url, headers: sent })
  const shown: Array<A2aClient.Task> = []
  const onChange = (task: A2aClient.Task) => Effect.sync(() => void shown.push(task))
  const error = yield* Effect.flip(client.ask("How much?", { onChange }))
  return JSON.stringify([error.reason, error.detail, shown])
})

describe("A key that an agent repeats", () => {
  for (const [name, sent] of Object.entries(headers)) {
    it.live(`leaves nothing of it in an error or a failed task, sent as ${name}`, () =>
      Effect.gen(function* () {
        for (const [kind, encode] of Object.entries(encodings)) {
          const form = encode(key)
          // The rest of a document is not the key's.
          const part = kind === "base64 of a document" ? form.slice(26, -24) : form
          const said = `invalid key ${form}, see the docs`
          const status = {
            state: "TASK_STATE_FAILED",
            message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: said }] }
          }
          for (const body of [
            { error: { code: -32603, message: said } },
            { result: { task: { id: "t", contextId: "c", status } } }
          ]) {
            const text = yield* asked(body, sent)
            assert.isUndefined(leftOf(text, part), `${kind}: ${text}`)
            assert.include(text, "see the docs")
          }
        }
      }).pipe(Effect.scoped)
    )
  }
})

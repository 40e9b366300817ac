/** Checks the errors of a provider for refusals. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { ProviderReason } from "../../../KernelError.ts"
import { answering, demand, type ProviderCheck, readAll } from "./providerCheck.ts"

const refusals: ReadonlyArray<readonly [status: number, reason: ProviderReason]> = [
  [401, "authentication"],
  [429, "rate_limited"],
  [500, "server_error"]
]

export const refusalChecks: ReadonlyArray<ProviderCheck> = [
  {
    name: "names the reason and the status of a refusal",
    body: Effect.fnUntraced(function* ({ open }) {
      for (const [status, reason] of refusals) {
        const { client } = answering(() => new Response("{}", { status }))
        const error = yield* failureOf(readAll(yield* open(client)))
        yield* demand(error.reason === reason, `status ${status} is ${error.reason}`)
        yield* demand(error.status === status, `status ${status} is ${error.status ?? "no status"}`)
      }
    })
  },
  {
    name: "does not show its key in errors",
    body: Effect.fnUntraced(function* ({ open, secret }) {
      for (const [status] of refusals) {
        const body = JSON.stringify({ error: { message: `no: ${secret}`, code: secret } })
        const { client } = answering(() => new Response(body, { status }))
        const error = yield* failureOf(readAll(yield* open(client)))
        const shown = `${Cause.pretty(Cause.fail(error))} ${JSON.stringify(error)}`
        yield* demand(!shown.includes(secret), `the error of status ${status} shows the key`)
      }
    })
  }
]

const failureOf = <A, E>(read: Effect.Effect<A, E>): Effect.Effect<E> =>
  Effect.matchEffect(read, { onFailure: Effect.succeed, onSuccess: () => Effect.die(new Error("a refusal succeeds")) })

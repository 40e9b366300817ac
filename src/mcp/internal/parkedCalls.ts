/**
 * Keeps calls that wait for the next request of their client: in the revision without a handshake, the question is the
 * response of the call, and the answer arrives in the repeated call.
 *
 * The call itself keeps waiting here in between. It is interrupted if its client does not return.
 */

import * as McpSchema from "effect/ai/McpSchema"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { Input, Send } from "./clientAsks.ts"

type Outcome = McpSchema.CallToolResult | McpSchema.InputRequired

/** A call in progress, and the request that receives its next outcome. */
interface Parked {
  outcome: Deferred.Deferred<Outcome>
  answer: Deferred.Deferred<unknown>
  readonly fiber: Fiber.Fiber<unknown, unknown>
}

export interface ParkedCalls {
  /** Runs a call until its result or its first question. `body` receives the functions that ask the client. */
  readonly start: <E, R>(
    body: (send: Send) => Effect.Effect<McpSchema.CallToolResult, E, R>
  ) => Effect.Effect<Outcome, E, R>
  /** Continues the call that waits under this state. Returns undefined if there is none. */
  readonly resume: (state: string, responses: Readonly<Record<string, unknown>>) => Effect.Effect<Outcome> | undefined
}

/** Creates an empty table. Waiting calls end when the scope closes. */
export const make = Effect.fnUntraced(function* (
  patience: Duration.Input
): Effect.fn.Return<ParkedCalls, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const waiting = new Map<string, Parked>()

  const ask = (call: () => Parked | undefined): Send =>
    Effect.fnUntraced(function* (input: Input) {
      const parked = call()
      if (parked === undefined || waiting.size >= most) return undefined
      const state = crypto.randomUUID()
      parked.answer = Deferred.makeUnsafe<unknown>()
      waiting.set(state, parked)
      yield* Deferred.succeed(
        parked.outcome,
        new McpSchema.InputRequired({ inputRequests: { [key]: input }, requestState: state })
      )
      const answered = yield* Effect.ensuring(
        Effect.timeoutOption(Deferred.await(parked.answer), patience),
        Effect.sync(() => waiting.delete(state))
      )
      // No request waits for the result any more.
      return Option.isSome(answered) ? answered.value : yield* Effect.interrupt
    })

  return {
    start: (body) =>
      Effect.suspend(() => {
        let parked: Parked | undefined
        const outcome = Deferred.makeUnsafe<Outcome>()
        const ran = body(ask(() => parked))
        return Effect.flatMap(Effect.forkIn(ran, scope), (fiber) => {
          parked = { outcome, answer: Deferred.makeUnsafe<unknown>(), fiber }
          return Effect.onInterrupt(Effect.raceFirst(Fiber.join(fiber), Deferred.await(outcome)), () =>
            Fiber.interrupt(fiber)
          )
        })
      }),
    resume: (state, responses) => {
      const parked = waiting.get(state)
      if (parked === undefined) return undefined
      waiting.delete(state)
      return Effect.suspend(() => {
        parked.outcome = Deferred.makeUnsafe<Outcome>()
        const next = Effect.andThen(
          Deferred.succeed(parked.answer, responses[key]),
          Effect.raceFirst(Effect.orDie(resultOf(parked.fiber)), Deferred.await(parked.outcome))
        )
        return Effect.onInterrupt(next, () => Fiber.interrupt(parked.fiber))
      })
    }
  }
})

const resultOf = (fiber: Parked["fiber"]): Effect.Effect<Outcome, unknown> =>
  Effect.flatMap(Fiber.join(fiber), (result) =>
    result instanceof McpSchema.CallToolResult ? Effect.succeed(result) : Effect.die("a call gave no result")
  )

const key = "answer"

// Maximum number of waiting calls of all clients.
const most = 1_000

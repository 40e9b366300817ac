/**
 * Keeps calls that wait for the next request of their client: in the revision without a handshake, questions are the
 * response of the call, and the answers arrive in the repeated call.
 *
 * The call itself keeps waiting here in between. It may have several open questions, each with a key of its own. The
 * call is interrupted if its client does not return.
 */

import * as McpSchema from "effect/ai/McpSchema"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { own } from "../../kit/json.ts"
import type { Input, Send } from "./clientAsks.ts"

type Outcome = McpSchema.CallToolResult | McpSchema.InputRequired

interface Question {
  readonly input: Input
  readonly answer: Deferred.Deferred<unknown>
}

/** A call in progress. */
interface Parked {
  /** The tool and its arguments, which the client repeats. */
  readonly call: string
  readonly open: Map<string, Question>
  asked: number
  /** The request that receives the next outcome. Undefined while the client has to return. */
  request: Deferred.Deferred<Outcome> | undefined
  fiber: Fiber.Fiber<unknown, unknown> | undefined
}

export interface ParkedCalls {
  /** Runs a call until its result or its first questions. `body` receives the functions that ask the client. */
  readonly start: <E, R>(
    call: string,
    body: (send: Send) => Effect.Effect<McpSchema.CallToolResult, E, R>
  ) => Effect.Effect<Outcome, E, R>
  /** Continues the call that waits under this state. Returns undefined if there is none, or if it is another call. */
  readonly resume: (
    call: string,
    state: string,
    responses: Readonly<Record<string, unknown>>
  ) => Effect.Effect<Outcome> | undefined
}

/** Creates an empty table. Waiting calls end when the scope closes. */
export const make = Effect.fnUntraced(function* (
  patience: Duration.Input
): Effect.fn.Return<ParkedCalls, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const waiting = new Map<string, Parked>()

  /** Responds with all open questions, and ends the call if its client does not return in time. */
  const suspend = Effect.fnUntraced(function* (parked: Parked) {
    const { request } = parked
    if (request === undefined || parked.open.size === 0) return
    parked.request = undefined
    const state = crypto.randomUUID()
    waiting.set(state, parked)
    const inputRequests = Object.fromEntries(Array.from(parked.open, ([key, { input }]) => [key, input]))
    yield* Deferred.succeed(request, new McpSchema.InputRequired({ inputRequests, requestState: state }))
    const expired = Effect.suspend(() => (waiting.delete(state) ? end(parked) : Effect.void))
    yield* Effect.forkIn(Effect.delay(expired, patience), scope)
  })

  const ask = (parked: Parked): Send =>
    Effect.fnUntraced(function* (input: Input) {
      if (parked.request !== undefined && waiting.size >= most) return undefined
      const { answer, key } = addQuestion(parked, input)
      // Questions that the call asks at the same time are sent together.
      yield* Effect.forkIn(Effect.andThen(Effect.yieldNow, suspend(parked)), scope)
      return yield* Effect.ensuring(
        Deferred.await(answer),
        Effect.sync(() => parked.open.delete(key))
      )
    })

  return {
    start: (call, body) =>
      Effect.suspend(() => {
        const request = Deferred.makeUnsafe<Outcome>()
        const parked: Parked = { call, open: new Map(), asked: 0, request, fiber: undefined }
        return Effect.flatMap(Effect.forkIn(body(ask(parked)), scope), (fiber) => {
          parked.fiber = fiber
          return Effect.onInterrupt(Effect.raceFirst(Fiber.join(fiber), Deferred.await(request)), () => end(parked))
        })
      }),
    resume: (call, state, responses) => {
      const parked = waiting.get(state)
      if (parked === undefined || parked.call !== call) return undefined
      waiting.delete(state)
      return Effect.suspend(() => {
        const request = Deferred.makeUnsafe<Outcome>()
        parked.request = request
        const next = Effect.andThen(
          answer(parked, responses),
          Effect.andThen(
            Effect.forkIn(Effect.andThen(Effect.yieldNow, suspend(parked)), scope),
            Effect.raceFirst(Effect.orDie(resultOf(parked.fiber)), Deferred.await(request))
          )
        )
        return Effect.onInterrupt(next, () => end(parked))
      })
    }
  }
})

const addQuestion = (parked: Parked, input: Input) => {
  const key = `question-${++parked.asked}`
  const answer = Deferred.makeUnsafe<unknown>()
  parked.open.set(key, { input, answer })
  return { answer, key }
}

/** Gives the answers to their questions. Questions without one stay open, and are asked again. */
const answer = ({ open }: Parked, responses: Readonly<Record<string, unknown>>): Effect.Effect<void> =>
  Effect.forEach(
    [...open],
    ([key, question]) => {
      const response = own(responses, key)
      if (response === undefined) return Effect.void
      open.delete(key)
      return Deferred.succeed(question.answer, response)
    },
    { discard: true }
  )

const end = ({ fiber }: Parked): Effect.Effect<void> => (fiber === undefined ? Effect.void : Fiber.interrupt(fiber))

const resultOf = (fiber: Parked["fiber"]): Effect.Effect<Outcome, unknown> =>
  fiber === undefined
    ? Effect.die("a call gave no result")
    : Effect.flatMap(Fiber.join(fiber), (result) =>
        result instanceof McpSchema.CallToolResult ? Effect.succeed(result) : Effect.die("a call gave no result")
      )

// Maximum number of waiting calls of all clients.
const most = 1_000

/**
 * Shares one session with a server and replaces it when it ends. A failed session is closed when its last user leaves,
 * so the failure of one request never affects another.
 */

import { isMcpClientError, type McpClientError } from "effect/ai/McpClientError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as RcRef from "effect/RcRef"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { shorten, visible } from "../../kit/text.ts"
import type { McpError } from "../../KernelError.ts"
import type { Session } from "./mcpSession.ts"
import { challengeOf, type Failures, fateOf } from "./requestFailure.ts"

type Request<A> = (session: Session) => Effect.Effect<A, McpClientError | McpError>

/**
 * Runs a request in the current session, and connects first if there is none. `mayRepeat` decides whether a request
 * that was cut off is sent again in a new session.
 */
export type Use = <A>(operation: string, mayRepeat: () => boolean, request: Request<A>) => Effect.Effect<A, McpError>

/** Creates `use`, which is valid until the scope closes. */
export const make = Effect.fnUntraced(function* (options: {
  readonly failures: Failures
  readonly open: Effect.Effect<Session, McpClientError, Scope.Scope>
  /** Tries to get a new access token. Returns true if there is one. */
  readonly renew: (challenge: string) => Effect.Effect<boolean, McpError>
}): Effect.fn.Return<Use, never, Scope.Scope> {
  const { failures } = options
  const sessions = yield* openSessions(noticed(options.open, `MCP server '${failures.server.name}' to connect`))
  let renewals = 0
  return Effect.fnUntraced(function* <A>(operation: string, mayRepeat: () => boolean, request: Request<A>) {
    // One repetition for a lost session, and one for a token that has expired or lacks scopes.
    for (let repetitions = 2; ; repetitions--) {
      const before = renewals
      let session: Session | undefined
      const attempt = yield* Effect.result(
        sessions.use((open) => {
          session = open
          return noticed(
            request(open),
            `MCP server '${failures.server.name}' to answer ${visible(shorten(operation, 80))}`
          )
        })
      )
      if (Result.isSuccess(attempt)) return attempt.success
      const error = attempt.failure
      if (!isMcpClientError(error)) return yield* error
      const challenge = challengeOf(error)
      if (challenge !== undefined) {
        // A token that was renewed in between may not be the refused one.
        const mayRetry = repetitions > 0 && (renewals !== before || (yield* options.renew(challenge)))
        if (!mayRetry) return yield* failures.of(operation, error)
        renewals++
        continue
      }
      if (session === undefined) return yield* failures.unreachable(error)
      const fate = fateOf(error)
      if (fate === "answered") return yield* failures.of(operation, error)
      if (error.reason._tag !== "HttpError" || fate === "refused") yield* sessions.retire(session)
      if (fate !== "refused" && !mayRepeat()) return yield* failures.unknownOutcome(operation, error)
      if (repetitions === 0) return yield* failures.of(operation, error)
    }
  })
})

/** Logs once after 5 seconds what an effect is waiting for. */
const noticed = <A, E, R>(effect: Effect.Effect<A, E, R>, what: string): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkChild(Effect.delay(Effect.logInfo(`waiting for ${what}`), "5 seconds")), (notice) =>
    Effect.ensuring(effect, Fiber.interrupt(notice))
  )

/** The current session, shared by its users. */
const openSessions = Effect.fnUntraced(function* (open: Effect.Effect<Session, McpClientError, Scope.Scope>) {
  const outer = yield* Effect.scope
  let current: Session | undefined
  let closing = Effect.void
  let wasConnected = false

  const acquire = Effect.gen(function* () {
    // Only the next session waits for this one to close, so that two never run at the same time.
    yield* closing
    const scope = yield* Scope.fork(outer)
    yield* Effect.addFinalizer((exit) =>
      Effect.map(Effect.forkIn(Effect.uninterruptible(Scope.close(scope, exit)), outer), (fiber) => {
        closing = Effect.asVoid(Fiber.await(fiber))
      })
    )
    // A restarted server may need a moment until it responds again.
    const session = yield* Effect.retry(open, {
      while: (error) => wasConnected && fateOf(error) !== "answered",
      schedule: Schedule.exponential("100 millis"),
      times: 3
    }).pipe(
      Scope.provide(scope),
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
    wasConnected = true
    return (current = session)
  })
  const ref = yield* RcRef.make({ acquire, idleTimeToLive: "Infinity" })

  const retire = (session: Session) =>
    Effect.suspend(() => {
      if (current !== session) return Effect.void
      current = undefined
      return RcRef.invalidate(ref)
    })
  const attempt = <A>(request: Request<A>) =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* RcRef.get(ref)
        if (yield* session.isOpen) return Option.some(yield* request(session))
        yield* retire(session)
        return Option.none<A>()
      })
    )
  const use = <A>(request: Request<A>): Effect.Effect<A, McpClientError | McpError> =>
    Effect.flatMap(attempt(request), Option.match({ onNone: () => use(request), onSome: Effect.succeed }))
  return { use, retire }
})

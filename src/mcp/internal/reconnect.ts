/**
 * A session that is replaced when it dies, and the rule for asking twice.
 *
 * Whoever uses a session holds it open: a session that others still use is
 * retired, not closed, so that the failure of one request never decides the
 * fate of another.
 */

import { isMcpClientError, type McpClientError } from "effect/ai/McpClientError"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { McpError } from "../../KernelError.ts"
import type { Session } from "./mcpSession.ts"
import { Shared } from "./sharedWork.ts"
import * as Verdict from "./requestFailure.ts"

/** A list as it was read, until it is known to have changed. */
export class Kept<A> {
  private value: A | undefined
  private reading = new Shared<A, McpClientError>()

  isKept(): boolean {
    return this.value !== undefined
  }

  forget(): void {
    this.value = undefined
    this.reading = new Shared()
  }

  /**
   * What is kept, or what the effect reads, once for all who ask meanwhile. A list that changes while it is read is not
   * kept, and who asks after that reads it anew.
   */
  orRead(read: Effect.Effect<A, McpClientError>): Effect.Effect<A, McpClientError> {
    return Effect.suspend(() => {
      if (this.value !== undefined) return Effect.succeed(this.value)
      const { reading } = this
      return reading.get(
        Effect.tap(read, (value) =>
          Effect.sync(() => {
            if (reading === this.reading) this.value = value
          })
        )
      )
    })
  }
}

/** A server's lists as they were read over one session. */
export interface Lists {
  readonly tools: Kept<ReadonlyArray<McpSchema.Tool>>
  readonly resources: Kept<ReadonlyArray<McpSchema.Resource>>
  readonly resourceTemplates: Kept<ReadonlyArray<McpSchema.ResourceTemplate>>
  readonly prompts: Kept<ReadonlyArray<McpSchema.Prompt>>
}

/** One session in use, and what was learned over it. */
export interface Held {
  readonly session: Session
  readonly lists: Lists
}

/**
 * Uses the session of the moment, connecting first if there is none. When the body was cut off,
 * `mayRepeat` tells whether it may run again on another session.
 */
export type Use = <A>(
  operation: string,
  mayRepeat: () => boolean,
  body: (held: Held) => Effect.Effect<A, McpClientError | McpError>
) => Effect.Effect<A, McpError>

interface Entry extends Held {
  readonly scope: Scope.Closeable
  users: number
  retired: boolean
}

/** Makes `use` out of a way to connect. */
export const make = (options: {
  readonly teller: Verdict.Teller
  readonly scope: Scope.Scope
  /** Opens a session whose notifications concern the lists. */
  readonly open: (lists: Lists) => Effect.Effect<Session, McpClientError | McpError, Scope.Scope>
  readonly onConnect: Effect.Effect<void>
  /** Tries to get another token; true when there is one. */
  readonly renew: (challenge: string) => Effect.Effect<boolean, McpError>
}): Use => {
  const { teller } = options
  const connecting = new Shared<Entry, McpClientError | McpError>()
  let current: Entry | undefined
  let closing = Effect.void
  let connectedBefore = false
  let renewals = 0

  // Nobody waits for a session to end but the next one, so that two never run side by side.
  const close = (entry: Entry) =>
    Effect.map(Effect.forkIn(Effect.uninterruptible(Scope.close(entry.scope, Exit.void)), options.scope), (fiber) => {
      closing = Effect.asVoid(Fiber.await(fiber))
    })

  // Once nobody knows of it any more, nobody else would close it.
  const retire = (entry: Entry) =>
    Effect.uninterruptible(
      Effect.suspend(() => {
        if (current === entry) current = undefined
        entry.retired = true
        return entry.users === 0 ? close(entry) : Effect.void
      })
    )

  const leave = (entry: Entry) =>
    Effect.suspend(() => {
      entry.users--
      return entry.retired && entry.users === 0 ? close(entry) : Effect.void
    })

  const connectOnce = Effect.gen(function* () {
    if (current !== undefined) {
      if (yield* current.session.isOpen) return current
      yield* retire(current)
    }
    yield* closing
    const lists: Lists = {
      tools: new Kept(),
      resources: new Kept(),
      resourceTemplates: new Kept(),
      prompts: new Kept()
    }
    // A session that nobody hears of, because it was given up as it came to be there, ends at once.
    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const scope = yield* Scope.fork(options.scope)
        // A server that was just restarted may need a moment until it answers again.
        const opening = Effect.retry(options.open(lists), {
          while: (error) => connectedBefore && isMcpClientError(error) && Verdict.fateOf(error) !== "answered",
          schedule: Schedule.exponential("100 millis"),
          times: 3
        })
        const session = yield* restore(opening).pipe(
          Scope.provide(scope),
          Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
        )
        current = { session, lists, scope, users: 0, retired: false }
        connectedBefore = true
        yield* options.onConnect
        return current
      })
    )
  })

  // Who waited for a session may come when it has ended again.
  const connect: Effect.Effect<Entry, McpClientError | McpError> = Effect.flatMap(
    connecting.get(connectOnce),
    (entry) => (entry.retired ? connect : Effect.succeed(entry))
  )

  return Effect.fnUntraced(function* <A>(
    operation: string,
    mayRepeat: () => boolean,
    body: (held: Held) => Effect.Effect<A, McpClientError | McpError>
  ) {
    // Once for a session that is gone, once for a token that is, or allows too little.
    for (let again = 2; ; again--) {
      let entry: Entry | undefined
      const before = renewals
      const attempt = yield* Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(connect), (held) => {
          entry = held
          held.users++
          return Effect.ensuring(restore(body(held)), leave(held))
        })
      ).pipe(Effect.result)
      if (attempt._tag === "Success") return attempt.success
      const error = attempt.failure
      if (!isMcpClientError(error)) return yield* error

      const challenge = Verdict.challengeOf(error)
      if (challenge !== undefined) {
        // A token that was renewed meanwhile need not be the one that was refused.
        if (again === 0 || (renewals === before && !(yield* options.renew(challenge)))) {
          return yield* teller.tell(operation, error)
        }
        renewals++
        continue
      }
      if (entry === undefined) return yield* teller.unreachable(error)

      const fate = Verdict.fateOf(error)
      if (fate === "answered") return yield* teller.tell(operation, error)
      if (error.reason._tag !== "HttpError" || fate === "refused") yield* retire(entry)
      const harmless = fate === "refused" || mayRepeat()
      if (!harmless) return yield* teller.unknownOutcome(operation, error)
      if (again === 0) return yield* teller.tell(operation, error)
    }
  })
}

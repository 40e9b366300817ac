/**
 * The listener of a run: none, or a stream that its host pulls.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Stream from "effect/Stream"
import type { Agent } from "../../Agent.ts"
import type { Content } from "../../Content.ts"
import type { KernelError, RunCancelled, RunPaused } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { Media } from "../../Media.ts"
import type { RunEvent } from "../../RunEvent.ts"
import { isStreamed } from "../../RunEvent.ts"
import type { AnySkill } from "../../Skill.ts"
import { attempt } from "../base/foreignCode.ts"
import * as Streams from "../base/streams.ts"
import type { Input } from "../../RunOptions.ts"

/** Receives the events of a run. */
export interface Sink {
  readonly publish: (event: RunEvent) => void
  /** Is the buffer full? */
  readonly isFull: () => boolean
  readonly batch: <A>(body: () => A) => A
}

/** A run without a listener. */
export const silent: Sink = { publish: () => {}, isFull: () => false, batch: (body) => body() }

/** An input as a list. */
export const listOf = (input: Input): ReadonlyArray<string | Media | Content> => (isList(input) ? input : [input])

const isList = (input: Input): input is ReadonlyArray<string | Media | Content> =>
  attempt(() => Array.isArray(input), false)

/** A run as a stream of its events. */
export const events = <Output, S extends AnySkill<unknown>, E extends KernelError, R>(
  _agent: Agent<Output, S, unknown, unknown>,
  start: (sink: Sink) => Effect.Effect<unknown, E, R>
): Stream.Stream<RunEvent<Output, S>, Exclude<E, Rest>, R> =>
  Streams.begin((scope) =>
    Effect.gen(function* () {
      const { liveEvents } = yield* Limits
      const mailbox = Streams.mailbox<RunEvent, Exclude<E, Rest>>({
        limit: liveEvents,
        keep: (event) => !isStreamed(event)
      })
      yield* Effect.forkIn(
        Effect.onExit(start({ publish: mailbox.offer, isFull: mailbox.isFull, batch: mailbox.batch }), (exit) =>
          Effect.sync(() => (Exit.isFailure(exit) && isFailure(exit.cause) ? mailbox.fail(exit.cause) : mailbox.end()))
        ),
        scope,
        { startImmediately: true }
      )
      // Events are made from the agent's skills and output schema, so they have the types of these.
      return mailbox.stream as Stream.Stream<RunEvent<Output, S>, Exclude<E, Rest>>
    })
  )

/** Errors that events report: a stream that ends with such an event has not failed. */
type Rest = RunPaused | RunCancelled

const isRest = (error: KernelError): boolean => error._tag === "RunPaused" || error._tag === "RunCancelled"

const isFailure = <E extends KernelError>(cause: Cause.Cause<E>): cause is Cause.Cause<Exclude<E, Rest>> =>
  !cause.reasons.some((reason) => Cause.isFailReason(reason) && isRest(reason.error))

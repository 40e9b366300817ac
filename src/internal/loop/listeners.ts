/**
 * Between a run and its host: what is said to the run while it runs, and what the run tells.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as MutableList from "effect/MutableList"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import type * as Stream from "effect/Stream"
import type { Agent } from "../../Agent.ts"
import type { Content } from "../../Content.ts"
import type { KernelError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { Media } from "../../Media.ts"
import type * as MediaStore from "../../MediaStore.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import type { RunEvent } from "../../RunEvent.ts"
import { isStreamed } from "../../RunEvent.ts"
import type { AnySkill } from "../../Skill.ts"
import * as Mailbox from "../base/mailbox.ts"
import type { Input } from "./runOptions.ts"
import type { Steering } from "./run.ts"
import * as Streams from "../base/streams.ts"

/** Where a run tells what happens, and whether whoever listens is behind. */
export interface Sink {
  readonly tell: (event: RunEvent) => void
  readonly isFull: () => boolean
  readonly batch: <A>(body: () => A) => A
}

/** Nobody listens. */
export const silent: Sink = { tell: () => {}, isFull: () => false, batch: (body) => body() }

/** An input as the list it stands for. */
export const listOf = (input: Input): ReadonlyArray<string | Media | Content> => (isList(input) ? input : [input])

const isList = (input: Input): input is ReadonlyArray<string | Media | Content> => Array.isArray(input)

/** What waits in the host's queue, as messages of the user; the queue may end. */
export const steeringOf = (
  queue: Queue.Dequeue<Input, unknown> | undefined,
  media: MediaStore.MediaStoreShape
): Steering | undefined =>
  queue === undefined ? undefined : { isWaiting: () => Queue.sizeUnsafe(queue) > 0, look: lookInto(queue, media) }

/**
 * Looks at each message, its media stored. One whose media cannot be stored stays where it is: those before it are
 * given, and when it is the next, the run fails with the reason.
 */
const lookInto = Effect.fnUntraced(function* (queue: Queue.Dequeue<Input, unknown>, media: MediaStore.MediaStoreShape) {
  const messages: Array<Message> = []
  const inputs = MutableList.toArrayN(queue.messages, Queue.sizeUnsafe(queue))
  for (const input of inputs) {
    const parts = yield* Effect.result(media.admit(listOf(input)))
    if (Result.isFailure(parts)) {
      if (messages.length > 0) break
      return yield* Effect.fail(parts.failure)
    }
    messages.push(Messages.user(parts.success))
  }
  const take = () => {
    for (const input of inputs.slice(0, messages.length)) {
      // A queue that slides may have dropped it by now.
      if (peek(queue) === input) Queue.takeUnsafe(queue)
    }
  }
  return { messages, take }
})

const peek = (queue: Queue.Dequeue<Input, unknown>): Input | undefined => MutableList.toArrayN(queue.messages, 1)[0]

/** The same run, told through a mailbox to whoever pulls. */
export const events = <Output, S extends AnySkill<unknown>, R>(
  _agent: Agent<Output, S, R>,
  start: (sink: Sink) => Effect.Effect<unknown, KernelError, R>
): Stream.Stream<RunEvent<Output, S>, KernelError, R> =>
  Streams.begin((scope) =>
    Effect.gen(function* () {
      const { liveEvents } = yield* Limits
      const mailbox = Mailbox.make<RunEvent, KernelError>({ limit: liveEvents, keep: (event) => !isStreamed(event) })
      yield* Effect.forkIn(
        Effect.onExit(start({ tell: mailbox.offer, isFull: mailbox.isFull, batch: mailbox.batch }), (exit) =>
          Effect.sync(() => (Exit.isFailure(exit) && !isPause(exit.cause) ? mailbox.fail(exit.cause) : mailbox.end()))
        ),
        scope,
        { startImmediately: true }
      )
      // Events are made from the agent's own skills and output schema: this is where their types meet.
      return mailbox.stream as Stream.Stream<RunEvent<Output, S>, KernelError>
    })
  )

/** A pause is told as an event; a stream that ends with it has not failed. */
const isPause = (cause: Cause.Cause<KernelError>): boolean =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && reason.error._tag === "RunPaused")

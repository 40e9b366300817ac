/**
 * Steering: messages that arrive between two turns of an active run, from its host and from its background calls.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as MutableList from "effect/MutableList"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type * as MediaStore from "../../MediaStore.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import { flush, record } from "../run/commit.ts"
import type { FlushError } from "../../store-kit/internal/storeGuard.ts"
import { listOf } from "../run/listeners.ts"
import type { MediaError, Run, Steering, TaskError } from "../run/run.ts"
import { hasEnded, takeEnded } from "../call/background.ts"
import type { Input } from "../../RunOptions.ts"

/** Returns whether a message waits for this run: one of the host, or the result of a background call. */
export const isSteered = (run: Run): boolean => hasEnded(run) || isSent(run)

/** Tasks receive no messages of the host. */
const isSent = ({ state, steering }: Run): boolean =>
  steering !== undefined && state.depth === 0 && steering.isWaiting()

/** Opens a turn with the waiting messages. Those of the host leave their queue once they are stored. */
export const takeSteering = Effect.fnUntraced(function* (
  run: Run,
  turnId: string
): Effect.fn.Return<void, FlushError | MediaError | TaskError> {
  yield* flush(run)
  const ended = yield* takeEnded(run)
  const { messages, take } = isSent(run) && run.steering !== undefined ? yield* run.restore(run.steering.look) : nothing
  record(run, {
    type: "turn_started",
    turnId,
    ...(messages.length === 0 ? {} : { steering: messages }),
    ...(ended.length === 0 ? {} : { ended })
  })
  const { revision } = run.state
  const stored = yield* Effect.exit(flush(run))
  if (Exit.isSuccess(stored) || (yield* isStored(run, revision))) take()
  yield* stored
})

const nothing = { messages: [], take: () => {} }

/** Returns whether the store has our record although it reported a failure. False if the store cannot be read. */
const isStored = ({ state, store, workerId }: Run, revision: number): Effect.Effect<boolean> =>
  Effect.catchCause(
    Effect.map(Stream.runCollect(store.read(state.runId, revision - 1)), ([record]) => record?.workerId === workerId),
    () => Effect.succeed(false)
  )

/** Reads steering messages from a host's queue, which the host may end. */
export const steeringOf = (
  queue: Queue.Dequeue<Input, unknown> | undefined,
  media: MediaStore.MediaStoreShape
): Steering | undefined =>
  queue === undefined
    ? undefined
    : {
        isWaiting: () => Queue.sizeUnsafe(queue) > 0,
        look: look(queue, media),
        // A queue that the host has ended brings nothing more.
        arrival: Effect.matchCauseEffect(Queue.peek(queue), {
          onFailure: () => Effect.never,
          onSuccess: () => Effect.void
        })
      }

/**
 * Reads the waiting messages and stores their media. A message whose media cannot be stored stays in the queue, and
 * fails the run once it is first.
 */
const look = Effect.fnUntraced(function* (queue: Queue.Dequeue<Input, unknown>, media: MediaStore.MediaStoreShape) {
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
      // A sliding queue may have dropped it by now.
      if (first(queue) === input) Queue.takeUnsafe(queue)
    }
  }
  return { messages, take }
})

const first = (queue: Queue.Dequeue<Input, unknown>): Input | undefined => MutableList.toArrayN(queue.messages, 1)[0]

/** Sends messages to an agent of another service and follows its tasks, over connections that may break. */

import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { A2aError } from "../A2aError.ts"
import type { Found } from "./a2aCard.ts"
import * as Line from "./a2aLine.ts"
import * as Views from "./a2aView.ts"
import * as Wire from "./a2aWire.ts"

/** An agent, its card, and the schedule for reopening a broken stream. */
export interface Talk {
  readonly peer: Line.Peer
  readonly found: Effect.Effect<Found, A2aError>
  readonly reconnect: Schedule.Schedule<unknown>
}

/** Retries for about a minute, first after 100 milliseconds. */
export const patiently = Schedule.upTo(
  Schedule.min([Schedule.exponential("100 millis", 1.5), Schedule.spaced("5 seconds")]),
  { times: 20 }
)

// ---------------------------------------------------------------- one request

/** Returns the current state of a task. */
export const get = (talk: Talk, taskId: string): Effect.Effect<Views.View, A2aError> =>
  Effect.map(about(talk, "GetTask", taskId), Views.ofTask)

/** Cancels a task, unless it has ended. */
export const cancel = (talk: Talk, taskId: string): Effect.Effect<void, A2aError> =>
  Effect.asVoid(about(talk, "CancelTask", taskId))

const about = (talk: Talk, method: "GetTask" | "CancelTask", id: string) =>
  Effect.flatMap(talk.found, ({ endpoint }) =>
    Effect.flatMap(Line.call(talk.peer, endpoint, method, { id }), (result) => Line.read(talk.peer, Wire.Task, result))
  )

// ---------------------------------------------------------------- streams

/** Sends a message, and emits its task after each update until it is at rest. */
export const stream = (talk: Talk, sent: Wire.Sent): Stream.Stream<Views.View, A2aError> =>
  Stream.unwrap(
    Effect.map(talk.found, ({ card, endpoint }) => {
      const params = Wire.paramsOf(sent, endpoint.version)
      const method = card.isStreaming ? "SendStreamingMessage" : "SendMessage"
      const first = Line.updates(talk.peer, endpoint, method, params)
      return whole(talk, { first, taskId: sent.taskId, isMessage: true })
    })
  )

/** Emits a task, then emits it again after each update until it is at rest. */
export const follow = (talk: Talk, taskId: string): Stream.Stream<Views.View, A2aError> =>
  whole(talk, { first: again(talk, taskId), taskId, isMessage: false })

type Change = Views.View | Wire.Update

const isView = (change: Change): change is Views.View => "state" in change

/** The first connection, and its task if that is known already. */
interface Beginning {
  readonly first: Stream.Stream<Change, A2aError>
  readonly taskId: string | undefined
  /** Whether it sends a message, which must not be sent twice. */
  readonly isMessage: boolean
}

/** Emits views until one is at rest. Later connections only follow the task. */
const whole = (talk: Talk, beginning: Beginning): Stream.Stream<Views.View, A2aError> =>
  Stream.suspend(() => {
    const { first, isMessage, taskId } = beginning
    let view: Views.View = { ...Views.unknown, taskId }
    let isFirst = true
    let isReceived = false
    const take = (change: Change): Effect.Effect<Views.View, A2aError> => {
      isReceived = true
      view = isView(change) ? change : Views.advance(view, change)
      const { replyLength } = talk.peer.limits
      return Views.sizeOf(view) > replyLength
        ? Effect.fail(Line.failure(talk.peer, "limit_exceeded", `sent more than ${replyLength} characters`))
        : Effect.succeed(view)
    }
    const once: Stream.Stream<Views.View, A2aError> = Stream.suspend(() => {
      const isSending = isFirst && isMessage
      const connection = isFirst || view.taskId === undefined ? first : again(talk, view.taskId)
      isFirst = false
      const views = Stream.mapEffect(connection, take).pipe(
        // A task that waited for the message may still be shown as waiting.
        Stream.takeUntil((now, index) => Views.isAtRest(now) && !(isSending && taskId !== undefined && index === 0))
      )
      const rest = Stream.suspend(() =>
        isReceived && Views.isAtRest(view)
          ? Stream.empty
          : Stream.fail(Line.failure(talk.peer, "disconnected", "ended its answer before the task was over"))
      )
      return Stream.concat(views, rest)
    })
    const mayRepeat = () => view.taskId !== undefined && (isReceived || !isMessage)
    return Stream.retry(once, ($) =>
      Schedule.while($(talk.reconnect), ({ input }) => mayRepeat() && isBroken(input))
    ).pipe(
      Stream.mapError((error) =>
        isMessage && !isReceived && error.reason === "disconnected" ? unconfirmed(talk.peer) : error
      )
    )
  })

/** Returns true if another connection may help. */
const isBroken = ({ reason }: A2aError): boolean =>
  reason === "disconnected" || reason === "connect" || reason === "timeout"

const unconfirmed = (peer: Line.Peer) =>
  Line.failure(
    peer,
    "outcome_unknown",
    "closed the connection before it confirmed the message, which may have arrived and was not repeated"
  )

/** Emits a task, then its updates if the agent streams them. */
const again = (talk: Talk, taskId: string): Stream.Stream<Change, A2aError> =>
  Stream.unwrap(
    Effect.map(Effect.all([talk.found, get(talk, taskId)]), ([{ card, endpoint }, view]) => {
      const now = Stream.make<[Change]>(view)
      if (Views.isAtRest(view)) return now
      if (!card.isStreaming) return Stream.concat(now, polled(talk, taskId))
      const subscribed = Line.updates(talk.peer, endpoint, "SubscribeToTask", { id: taskId })
      // In version 1.0 a subscription begins with the task. In 0.3, updates between reading the task and subscribing
      // may be lost.
      const grown: Stream.Stream<Change, A2aError> =
        endpoint.version === "1.0"
          ? subscribed
          : Stream.concat(Stream.drain(subscribed), Stream.fromEffect(get(talk, taskId)))
      // A task that has ended by then accepts no subscriber.
      const isOver = ({ reason }: A2aError) => reason === "not_supported"
      return Stream.concat(
        now,
        Stream.catchIf(grown, isOver, () => polled(talk, taskId))
      )
    })
  )

/** Polls a task, at growing intervals. */
const polled = (talk: Talk, taskId: string): Stream.Stream<Change, A2aError> =>
  Stream.fromSchedule(looks).pipe(
    Stream.mapEffect(() => get(talk, taskId)),
    Stream.takeUntil(Views.isAtRest)
  )

const looks = Schedule.min([Schedule.exponential("100 millis", 1.5), Schedule.spaced("5 seconds")])

// ---------------------------------------------------------------- asking

/** Sends a message and waits until its task is at rest. Cancels the task if it is interrupted before. */
export const ask = Effect.fnUntraced(function* (
  talk: Talk,
  sent: Wire.Sent,
  options: {
    readonly timeout: Duration.Input
    readonly onView: ((view: Views.View) => Effect.Effect<void>) | undefined
  }
): Effect.fn.Return<Views.View, A2aError> {
  const { onView, timeout } = options
  let last: Views.View | undefined
  const known = yield* Deferred.make<void>()
  const reading = Stream.runForEach(stream(talk, sent), (view) => {
    last = view
    const told = view.taskId === undefined ? Effect.void : Deferred.succeed(known, undefined)
    return onView === undefined ? told : Effect.andThen(told, onView(view))
  }).pipe(Effect.onExit(() => Deferred.succeed(known, undefined)))
  // The agent may have started a task whose id has not arrived yet.
  const stopped = Effect.suspend(() => Deferred.await(known)).pipe(
    Effect.andThen(
      Effect.suspend(() =>
        last?.taskId === undefined || Views.isAtRest(last) ? Effect.void : cancel(talk, last.taskId)
      )
    ),
    Effect.timeoutOption(talk.peer.limits.cleanUpTimeout),
    Effect.ignore
  )
  yield* Effect.scoped(
    Effect.flatMap(Effect.forkScoped(reading), (fiber) =>
      Effect.onExit(inTime(talk.peer, timeout, Fiber.join(fiber)), (exit) =>
        Exit.isSuccess(exit) ? Effect.void : stopped
      )
    )
  )
  return last ?? Views.unknown
})

const inTime = <A>(peer: Line.Peer, duration: Duration.Input, effect: Effect.Effect<A, A2aError>) =>
  Effect.timeoutOrElse(effect, {
    duration,
    orElse: () => Effect.fail(Line.failure(peer, "timeout", "did not complete its task in time"))
  })

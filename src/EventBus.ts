/**
 * Publishes events to subscribers by topic, and sends messages from agent to agent.
 *
 * One subscription to `agent.progress/<root run id>` receives every event of a whole tree of runs, in order. Publishing
 * is synchronous and never waits: a slow subscriber loses stream parts, never phase events, and a subscriber that fails
 * does not affect the run.
 *
 * @since 0.1.0
 */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { AgentId, TopicId } from "./Address.ts"
import { closeOver, failureIn, messageOf } from "./kit/foreignCode.ts"
import * as Streams from "./kit/streams.ts"
import type { Mailbox } from "./kit/streams.ts"
import { AgentIdConflict, AgentNotFoundError, HandlerError } from "./KernelError.ts"
import * as Limits from "./Limits.ts"
import type { Message } from "./Message.ts"
import type { RunEvent } from "./RunEvent.ts"
import { isStreamed } from "./RunEvent.ts"

export { AgentIdConflict, AgentNotFoundError, HandlerError }

/**
 * Handles a message to an agent. A returned message goes back to the sender.
 *
 * @category models
 * @since 0.1.0
 */
export type Handler<E = unknown, R = never> = (message: Message) => Effect.Effect<Message | undefined | void, E, R>

/**
 * The operations of a bus.
 *
 * @category models
 * @since 0.1.0
 */
export interface EventBusShape {
  /**
   * Publishes an event of a run on its topics: `address` is the running agent. Both topics use its namespace, and
   * `agent.stream` uses its key as the source. With a topic as the address, publishes the event on that topic alone.
   */
  readonly publish: (event: RunEvent, address?: AgentId | TopicId) => void
  /**
   * Subscribes to a topic from the moment the stream runs until its scope closes. It does not end by itself.
   *
   * Runs publish on `TopicId.progress` and `TopicId.stream`; on any other topic only the host publishes. When more than
   * `Limits.liveEvents` events wait, the oldest stream parts are dropped; phase events never are.
   */
  readonly subscribe: (topic: TopicId) => Stream.Stream<RunEvent>
  /** Receives messages for an agent until the scope closes. An address has one receiver. */
  readonly register: <E, R>(
    agentId: AgentId,
    handler: Handler<E, R>
  ) => Effect.Effect<void, AgentIdConflict, R | Scope.Scope>
  /** Sends a message to its agent and waits for the reply. The handler runs in the sender's fiber. */
  readonly send: (
    agentId: AgentId,
    message: Message
  ) => Effect.Effect<Message | undefined, AgentNotFoundError | HandlerError>
}

/**
 * Routes events by topic and messages by address.
 *
 * @category services
 * @since 0.1.0
 */
export class EventBus extends Context.Service<EventBus, EventBusShape>()("kernai/EventBus") {}

/**
 * Returns the address under which an agent of this name streams: `agent/<name>`, percent-encoded where needed.
 *
 * Names are cut at 255 characters, so longer names with the same beginning share an address. Throws for an empty name
 * and for a namespace that is not an `Address.Segment`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const agentIdOf = (name: string, namespace = "default"): AgentId =>
  new AgentId({ type: "agent", key: encodeURIComponent(name.toWellFormed()).slice(0, 255), namespace })

/**
 * Creates a bus in this process. Its subscriptions end with the scope; later ones end at once.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<EventBusShape, never, Scope.Scope> = Effect.gen(function* () {
  const progress: Followers = new Map()
  const streams: Followers = new Map()
  const others: Followers = new Map()
  let isClosed = false

  const place = (topic: TopicId): readonly [followers: Followers, name: string] => {
    if (topic.type === "agent.progress") return [progress, key(topic.namespace, topic.source)]
    if (topic.type === "agent.stream") return [streams, key(topic.namespace, topic.source)]
    return [others, topic.toString()]
  }

  const publish = (event: RunEvent, address?: AgentId | TopicId): void => {
    if (address instanceof TopicId) {
      const [followers, name] = place(address)
      return deliver(followers.get(name), event)
    }
    if (progress.size > 0) deliver(progress.get(key(address?.namespace, event.rootRunId)), event)
    if (streams.size > 0 && address !== undefined && isStreamed(event)) {
      deliver(streams.get(key(address.namespace, address.key)), event)
    }
  }

  const subscribe = (topic: TopicId): Stream.Stream<RunEvent> => {
    const [followers, name] = place(topic)
    const subscription = Effect.flatMap(Limits.Limits, ({ liveEvents }) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const mailbox = Streams.mailbox<RunEvent>({ limit: liveEvents, keep: isKept })
          if (isClosed) mailbox.end()
          else follow(followers, name, mailbox)
          return mailbox
        }),
        (mailbox) => Effect.sync(() => leave(followers, name, mailbox))
      )
    )
    return Stream.unwrap(Effect.map(subscription, (mailbox) => mailbox.stream))
  }

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      for (const followers of [progress, streams, others]) {
        for (const mailboxes of followers.values()) for (const mailbox of mailboxes) mailbox.end()
        followers.clear()
      }
    })
  )
  return { publish, subscribe, ...makeMessages() }
})

/**
 * Provides a bus in this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<EventBus> = Layer.effect(EventBus, make)

// ---------------------------------------------------------------- helpers

const makeMessages = (): Pick<EventBusShape, "register" | "send"> => {
  const handlers = new Map<string, Handler>()

  const register = Effect.fnUntraced(function* <E, R>(agentId: AgentId, handler: Handler<E, R>) {
    const address = agentId.toString()
    const provide = closeOver(yield* Effect.context<R>())
    const closed: Handler = (message) => provide(Effect.suspend(() => handler(message)))
    yield* Effect.acquireRelease(
      Effect.suspend(() => {
        if (handlers.has(address)) return Effect.fail(new AgentIdConflict({ agentId: address }))
        handlers.set(address, closed)
        return Effect.void
      }),
      () => Effect.sync(() => handlers.delete(address))
    )
  })

  const send = Effect.fnUntraced(function* (agentId: AgentId, message: Message) {
    const address = agentId.toString()
    const handler = handlers.get(address)
    if (handler === undefined) return yield* new AgentNotFoundError({ agentId: address })
    const answer = yield* Effect.catchCause(handler(message), (cause) =>
      Effect.fail(new HandlerError({ agentId: address, detail: detailOf(cause) }))
    )
    return answer === undefined ? undefined : answer
  })

  return { register, send }
}

/** Subscribers to topics of one type. */
type Followers = Map<string, Set<Mailbox<RunEvent>>>

// Address segments hold no control characters, so no two addresses share a key. The default namespace needs no new
// string.
const key = (namespace = "default", source: string): string =>
  namespace === "default" ? source : `${namespace}\0${source}`

const follow = (followers: Followers, name: string, mailbox: Mailbox<RunEvent>): void => {
  const mailboxes = followers.get(name)
  if (mailboxes === undefined) followers.set(name, new Set([mailbox]))
  else mailboxes.add(mailbox)
}

const leave = (followers: Followers, name: string, mailbox: Mailbox<RunEvent>): void => {
  const mailboxes = followers.get(name)
  if (mailboxes?.delete(mailbox) === true && mailboxes.size === 0) followers.delete(name)
}

const deliver = (mailboxes: Iterable<Mailbox<RunEvent>> | undefined, event: RunEvent): void => {
  if (mailboxes !== undefined) for (const mailbox of mailboxes) mailbox.offer(event)
}

const isKept = (event: RunEvent): boolean => !isStreamed(event)

/** Returns the message of an expected failure only, since a defect may hold secrets. */
const detailOf = (cause: Cause.Cause<unknown>): string => {
  if (cause.reasons.some(Cause.isFailReason)) return messageOf(failureIn(cause))
  return Cause.hasDies(cause) ? "an unexpected defect" : "it was interrupted"
}

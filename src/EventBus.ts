/**
 * Told once, heard by whoever follows (CP-13); and messages from agent to agent.
 *
 * One subscription to `agent.progress/<root run id>` hears every event of a
 * whole tree of runs in the order it happened. Publishing is synchronous and
 * never waits: a slow subscriber loses stream parts, never phase events, and a
 * failing one changes nothing.
 *
 * @since 0.1.0
 */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { TopicId } from "./Address.ts"
import { AgentId } from "./Address.ts"
import { closeOver } from "./internal/base/effects.ts"
import { failureIn, messageOf } from "./internal/base/foreignValue.ts"
import type { Mailbox } from "./internal/base/mailbox.ts"
import * as Mailboxes from "./internal/base/mailbox.ts"
import { AgentIdConflict, AgentNotFoundError, HandlerError } from "./KernelError.ts"
import * as Limits from "./Limits.ts"
import type { Message } from "./Message.ts"
import type { RunEvent } from "./RunEvent.ts"
import { isStreamed } from "./RunEvent.ts"

export { AgentIdConflict, AgentNotFoundError, HandlerError }

/**
 * What an agent does with a message. Its answer, if it gives one, goes back to the sender.
 *
 * @category models
 * @since 0.1.0
 */
export type Handler<E = unknown, R = never> = (message: Message) => Effect.Effect<Message | undefined | void, E, R>

/**
 * The verbs of a bus.
 *
 * @category models
 * @since 0.1.0
 */
export interface EventBusShape {
  /**
   * Tells an event to those who follow its topics. `from` names the agent that runs: its namespace is that of both
   * topics, its key the source of `agent.stream`.
   */
  readonly publish: (event: RunEvent, from?: AgentId) => void
  /**
   * Follows a topic from the moment the stream is run until its scope closes. It does not end by itself.
   *
   * Events are told on `TopicId.progress` and `TopicId.stream`; on other topics only the end of the bus is heard.
   * When more than `Limits.liveEvents` events wait, the oldest stream parts are dropped; phase events never are.
   */
  readonly subscribe: (topic: TopicId) => Stream.Stream<RunEvent>
  /** Receives an agent's messages until the scope closes. An address has one receiver. */
  readonly register: <E, R>(
    agentId: AgentId,
    handler: Handler<E, R>
  ) => Effect.Effect<void, AgentIdConflict, R | Scope.Scope>
  /** Gives a message to its agent and waits for what it answers; the handler runs in the sender's fiber. */
  readonly send: (
    agentId: AgentId,
    message: Message
  ) => Effect.Effect<Message | undefined, AgentNotFoundError | HandlerError>
}

/**
 * Events by topic, messages by address.
 *
 * @category services
 * @since 0.1.0
 */
export class EventBus extends Context.Service<EventBus, EventBusShape>()("kernai/EventBus") {}

/**
 * The address under which an agent of this name streams: `agent/<name>`, with what an address cannot hold
 * percent-encoded.
 *
 * A name is cut at 255 characters, so long ones that begin alike share an address. An empty name throws, and so does a
 * namespace that is no `Address.Segment`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const agentIdOf = (name: string, namespace = "default"): AgentId =>
  new AgentId({ type: "agent", key: encodeURIComponent(name.toWellFormed()).slice(0, 255), namespace })

/**
 * Makes a bus within this process. Its subscriptions end with the scope; one made later ends at once.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<EventBusShape, never, Scope.Scope> = Effect.gen(function* () {
  const progress: Followers = new Map()
  const streams: Followers = new Map()
  // Nothing is published about other topics: who follows one hears the end.
  const others: Followers = new Map()
  const handlers = new Map<string, Handler>()
  let isClosed = false

  const publish = (event: RunEvent, from?: AgentId): void => {
    if (progress.size > 0) tell(progress.get(key(from?.namespace, event.rootRunId)), event)
    if (streams.size > 0 && from !== undefined && isStreamed(event)) {
      tell(streams.get(key(from.namespace, from.key)), event)
    }
  }

  const subscribe = (topic: TopicId): Stream.Stream<RunEvent> => {
    const followers = topic.type === "agent.progress" ? progress : topic.type === "agent.stream" ? streams : others
    const name = key(topic.namespace, topic.source)
    const subscription = Effect.flatMap(Limits.Limits, ({ liveEvents }) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const mailbox = Mailboxes.make<RunEvent>({ limit: liveEvents, keep: isKept })
          if (isClosed) mailbox.end()
          else follow(followers, name, mailbox)
          return mailbox
        }),
        (mailbox) => Effect.sync(() => leave(followers, name, mailbox))
      )
    )
    return Stream.unwrap(Effect.map(subscription, (mailbox) => mailbox.stream))
  }

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

  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      for (const followers of [progress, streams, others]) {
        for (const mailboxes of followers.values()) for (const mailbox of mailboxes) mailbox.end()
        followers.clear()
      }
    })
  )
  return { publish, subscribe, register, send }
})

/**
 * A bus within this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<EventBus> = Layer.effect(EventBus, make)

// ---------------------------------------------------------------- helpers

/** Who follows the topics of one type. */
type Followers = Map<string, Set<Mailbox<RunEvent>>>

// No address segment holds a control character, so no two addresses share a key. The usual namespace costs no new string.
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

const tell = (mailboxes: Iterable<Mailbox<RunEvent>> | undefined, event: RunEvent): void => {
  if (mailboxes !== undefined) for (const mailbox of mailboxes) mailbox.offer(event)
}

const isKept = (event: RunEvent): boolean => !isStreamed(event)

/** A defect may hold anything; only what a handler failed with on purpose is repeated (S-7). */
const detailOf = (cause: Cause.Cause<unknown>): string => {
  if (cause.reasons.some(Cause.isFailReason)) return messageOf(failureIn(cause))
  return Cause.hasDies(cause) ? "an unexpected defect" : "it was interrupted"
}

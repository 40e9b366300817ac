/**
 * What was said in one conversation, over any number of runs (AC-7).
 *
 * Messages are read in the order they were appended. An append may have a key,
 * so that one made again after a crash changes nothing. What a run said can also
 * be read from its journal at any commit, and is then a conversation every
 * provider accepts: a call without a result gets one that says so.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Call } from "./Call.ts"
import * as Calls from "./Call.ts"
import { refusal } from "./internal/chat/chatText.ts"
import * as KeptSummary from "./internal/prompt/keptSummary.ts"
import { StoreError } from "./KernelError.ts"
import type { Message } from "./Message.ts"
import type { RunState, Turn } from "./RunState.ts"
import * as RunStates from "./RunState.ts"
import { RunStore } from "./RunStore.ts"

export { StoreError }

// ---------------------------------------------------------------- models

/**
 * The verbs of a history.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChatHistoryShape {
  /**
   * Adds a message, or several as one. The same key a second time adds nothing. What is no JSON fails with a
   * `StoreError` whose reason is `invalid`.
   */
  readonly append: (messages: Message | ReadonlyArray<Message>, key?: string) => Effect.Effect<void, StoreError>
  /** Every message, oldest first; a history need not hold them all at once. */
  readonly stream: Stream.Stream<Message, StoreError>
  readonly toArray: Effect.Effect<ReadonlyArray<Message>, StoreError>
  readonly size: Effect.Effect<number, StoreError>
  /** The last `n` messages, oldest first: all when there are fewer, none when `n` is not positive. */
  readonly last: (n: number) => Effect.Effect<ReadonlyArray<Message>, StoreError>
  /** Forgets the messages and the keys. */
  readonly clear: Effect.Effect<void, StoreError>
}

/**
 * One conversation.
 *
 * @category services
 * @since 0.1.0
 */
export class ChatHistory extends Context.Service<ChatHistory, ChatHistoryShape>()("kernai/ChatHistory") {}

// ---------------------------------------------------------------- constructors

/**
 * A history in this process, which begins with what was said before.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory = (before: ReadonlyArray<Message> = []): Effect.Effect<ChatHistoryShape> =>
  Effect.sync(() => {
    const kept = new Kept(before)
    const toArray = Effect.sync(() => kept.messages())
    return {
      append: kept.append,
      stream: Stream.unwrap(Effect.map(toArray, Stream.fromIterable)),
      toArray,
      size: Effect.map(toArray, (messages) => messages.length),
      last: (n) => Effect.map(toArray, (messages) => lastOf(messages, n)),
      clear: kept.clear
    }
  })

/**
 * The history of runs that follow each other, read from their journals as they
 * stand now, and what is appended beside them.
 *
 * The first run brings the history it began with, the others what they added.
 * What is appended under a run's own key, `<runId>` or `<runId>:…`, is read from
 * its journal as soon as the run is there. The rest is kept in this process, and
 * `clear` is known in it alone: journals stay as they are.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeRunStore = Effect.fnUntraced(function* (
  runIds: ReadonlyArray<string>
): Effect.fn.Return<ChatHistoryShape, never, RunStore> {
  const store = yield* RunStore
  const beside = new Kept([])
  let forgotten = 0

  const states = Effect.map(
    Effect.forEach(runIds, (runId) => store.load(runId)),
    (states) => states.flatMap(Option.toArray)
  )
  const journals = (states: ReadonlyArray<RunState>) =>
    states
      .reduce<ReadonlyArray<Message>>(
        (before, state, index) =>
          KeptSummary.keep(state, before.concat(ofState(state).slice(index === 0 ? 0 : state.history))),
        []
      )
      .slice(forgotten)
  const owns = (states: ReadonlyArray<RunState>) => (key: string) =>
    states.some(({ runId }) => key === runId || key.startsWith(`${runId}:`))
  const toArray = Effect.map(states, (states) => [...journals(states), ...beside.messages(owns(states))])

  return {
    append: (messages, key) =>
      key === undefined
        ? beside.append(messages)
        : Effect.flatMap(states, (states) => (owns(states)(key) ? Effect.void : beside.append(messages, key))),
    stream: Stream.unwrap(Effect.map(toArray, Stream.fromIterable)),
    toArray,
    size: Effect.map(toArray, (messages) => messages.length),
    last: (n) => Effect.map(toArray, (messages) => lastOf(messages, n)),
    clear: Effect.andThen(
      beside.clear,
      Effect.map(states, (states) => {
        forgotten += journals(states).length
      })
    )
  }
})

// ---------------------------------------------------------------- from a run

/**
 * Everything said in a run so far, with what was said before it.
 *
 * At any commit this is a conversation that every provider accepts, so that a
 * stopped run can be the history of another: a call that has no result yet is
 * answered with what is known of it.
 *
 * @category combinators
 * @since 0.1.0
 */
export const ofState = (state: RunState): ReadonlyArray<Message> => {
  const closed = state.turns.flatMap(RunStates.messagesOf)
  const open = state.currentTurn === undefined ? [] : RunStates.messagesOf(closedTurn(state.currentTurn))
  return [...state.input.map(KeptSummary.unmarked), ...closed, ...open]
}

const closedTurn = (turn: Turn): Turn => ({
  ...turn,
  pending: [],
  inFlight: [],
  completed: [
    ...turn.completed,
    ...turn.inFlight.map((call) => unfinished(call, "This call was interrupted. Whether it ran is not known.")),
    ...turn.pending.map((call) => unfinished(call, "This call was not run."))
  ]
})

const unfinished = (call: Call, message: string) => Calls.failed(call, Calls.error("Interrupted", message))

// ---------------------------------------------------------------- layers

/**
 * A conversation kept in this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<ChatHistory> = Layer.effect(ChatHistory, makeMemory())

/**
 * The conversation of runs in the store.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRunStore = (runIds: ReadonlyArray<string>): Layer.Layer<ChatHistory, never, RunStore> =>
  Layer.effect(ChatHistory, makeRunStore(runIds))

// ---------------------------------------------------------------- helpers

/** What was appended in this process, each message with its key. */
class Kept {
  #all: Array<{ readonly message: Message; readonly key: string | undefined }>
  readonly #keys = new Set<string>()

  constructor(before: ReadonlyArray<Message>) {
    this.#all = before.map((message) => ({ message, key: undefined }))
  }

  readonly append: ChatHistoryShape["append"] = (given, key) =>
    Effect.suspend(() => {
      const added = listOf(given)
      const refused = refusal(added)
      if (refused !== undefined) return Effect.fail(refused)
      if (key === undefined || !this.#keys.has(key)) for (const message of added) this.#all.push({ message, key })
      if (key !== undefined) this.#keys.add(key)
      return Effect.void
    })

  readonly clear: Effect.Effect<void> = Effect.sync(() => {
    this.#all = []
    this.#keys.clear()
  })

  /** All but those of keys that are told elsewhere. */
  messages(isTold: (key: string) => boolean = () => false): ReadonlyArray<Message> {
    return this.#all.flatMap(({ key, message }) => (key !== undefined && isTold(key) ? [] : [message]))
  }
}

const listOf = (messages: Message | ReadonlyArray<Message>): ReadonlyArray<Message> =>
  "role" in messages ? [messages] : messages

const lastOf = (messages: ReadonlyArray<Message>, n: number): ReadonlyArray<Message> =>
  n > 0 ? messages.slice(-Math.ceil(n)) : []

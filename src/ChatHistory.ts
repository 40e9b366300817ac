/**
 * Keeps the messages of one conversation, over any number of runs.
 *
 * Messages are read in the order they were appended. An append may have a key: appending again under the same key, such
 * as after a crash, changes nothing. The messages of a run can also be read from its journal at any revision. They
 * always form a conversation that providers accept: a call without a result gets a result that says so.
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
import * as MessageText from "./store-kit/MessageText.ts"
import { extended } from "./internal/words/messageFacts.ts"
import * as KeptSummary from "./internal/prompt/keptSummary.ts"
import { StoreError } from "./KernelError.ts"
import type { Message } from "./Message.ts"
import type { RunState, Turn } from "./RunState.ts"
import * as RunStates from "./RunState.ts"
import { RunStore } from "./RunStore.ts"

export { StoreError }

// ---------------------------------------------------------------- models

/**
 * The operations of a history.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChatHistoryShape {
  /**
   * Appends a message, or several at once. A key that was used before appends nothing. Fails with a `StoreError` of
   * reason `invalid` if a message is not JSON.
   */
  readonly append: (messages: Message | ReadonlyArray<Message>, key?: string) => Effect.Effect<void, StoreError>
  /** Emits every message, oldest first, without holding all of them in memory. */
  readonly stream: Stream.Stream<Message, StoreError>
  readonly toArray: Effect.Effect<ReadonlyArray<Message>, StoreError>
  readonly size: Effect.Effect<number, StoreError>
  /** Returns the last `n` messages, oldest first: all if there are fewer, none if `n` is not positive. */
  readonly last: (n: number) => Effect.Effect<ReadonlyArray<Message>, StoreError>
  /** Deletes all messages and keys. */
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
 * Creates a history in this process, starting with earlier messages.
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
      size: Effect.sync(() => kept.size()),
      last: (n) => Effect.sync(() => kept.last(n)),
      clear: kept.clear
    }
  })

/**
 * Creates the history of consecutive runs, read from their journals as they are now, with the messages appended beside
 * them.
 *
 * The first run contributes its own history and messages, later runs the messages they added. Messages appended under a
 * key of a run, `<runId>` or `<runId>:…`, are read from its journal as soon as the run exists. Other messages are kept
 * in this process. `clear` affects this process only: journals do not change.
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
  const toArray = Effect.map(states, (states) => [...journals(states), ...beside.messagesExcept(owns(states))])

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
 * Returns all messages of a run so far, including its history.
 *
 * At any revision this is a conversation that every provider accepts, so a stopped run can be the history of another
 * one: a call without a result gets a result that says whether it was interrupted or never run.
 *
 * @category converting
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
 * Keeps a conversation in this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<ChatHistory> = Layer.effect(ChatHistory, makeMemory())

/**
 * Reads the conversation of runs in the store.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRunStore = (runIds: ReadonlyArray<string>): Layer.Layer<ChatHistory, never, RunStore> =>
  Layer.effect(ChatHistory, makeRunStore(runIds))

// ---------------------------------------------------------------- helpers

/** A message appended in this process, with its key. */
interface Added {
  readonly message: Message
  readonly key: string | undefined
}

/** Messages appended in this process. */
class Kept {
  #all: Array<Added>
  /** The messages that were appended when all were last read. */
  #read: ReadonlyArray<Message> = []
  readonly #keys = new Set<string>()

  constructor(before: ReadonlyArray<Message>) {
    this.#all = before.map((message) => ({ message, key: undefined }))
  }

  readonly append: ChatHistoryShape["append"] = (given, key) =>
    Effect.suspend(() => {
      const added = listOf(given)
      const refused = MessageText.refusal(added)
      if (refused !== undefined) return Effect.fail(refused)
      if (key === undefined || !this.#keys.has(key)) for (const message of added) this.#all.push({ message, key })
      if (key !== undefined) this.#keys.add(key)
      return Effect.void
    })

  readonly clear: Effect.Effect<void> = Effect.sync(() => {
    this.#all = []
    this.#read = []
    this.#keys.clear()
  })

  /** All messages. The same list until a message is appended. */
  messages(): ReadonlyArray<Message> {
    const added = this.#all.slice(this.#read.length).map(messageOf)
    return (this.#read = extended(this.#read, added))
  }

  size(): number {
    return this.#all.length
  }

  last(n: number): ReadonlyArray<Message> {
    return lastOf(this.#all, n).map(messageOf)
  }

  /** All messages except those whose keys are read from journals. */
  messagesExcept(isInJournal: (key: string) => boolean): ReadonlyArray<Message> {
    return this.#all.flatMap(({ key, message }) => (key !== undefined && isInJournal(key) ? [] : [message]))
  }
}

const listOf = (messages: Message | ReadonlyArray<Message>): ReadonlyArray<Message> =>
  "role" in messages ? [messages] : messages

const messageOf = ({ message }: Added): Message => message

const lastOf = <A>(items: ReadonlyArray<A>, n: number): ReadonlyArray<A> => (n > 0 ? items.slice(-Math.ceil(n)) : [])

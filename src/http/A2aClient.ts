/**
 * Calls agents of other services over the A2A protocol 1.0 or 0.3 with JSON-RPC.
 *
 * A message begins a task, or continues one that waits for input. A stream that breaks is reopened, so that no part of
 * an answer is lost. Requests follow no redirects, and the address in an agent's card must be of the card's origin, so
 * that credentials reach no other server. Addresses of files are shown and never fetched.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as Duration from "effect/Duration"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Random from "effect/Random"
import type * as Redacted from "effect/Redacted"
import type * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { Content } from "../Content.ts"
import * as Contents from "../Content.ts"
import { remover } from "../kit/encodedSecrets.ts"
import { randomId } from "../kit/randomId.ts"
import { deep } from "../kit/redact.ts"
import * as Secrets from "../kit/secrets.ts"
import { Limits } from "../Limits.ts"
import { A2aError } from "./A2aError.ts"
import * as Cards from "./internal/a2aCard.ts"
import * as Line from "./internal/a2aLine.ts"
import * as Talk from "./internal/a2aTalk.ts"
import * as Views from "./internal/a2aView.ts"
import * as Wire from "./internal/a2aWire.ts"

// ---------------------------------------------------------------- models

/**
 * Options of a client.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The name of the agent in errors. Default: the host of its address. */
  readonly name?: string | undefined
  /** The address of the service, whose card is at `/.well-known/agent-card.json` below it, or of a card that ends in `.json`. */
  readonly url: string
  /** Headers of every request, such as `authorization`. */
  readonly headers?: { readonly [name: string]: Redacted.Redacted } | undefined
  /** Further origins that the address in the card may have. They receive the headers, too. */
  readonly origins?: ReadonlyArray<string> | undefined
  /** Time for `ask`. Default: `Limits.skillTimeout`. */
  readonly timeout?: Duration.Input | undefined
  /** The schedule for reopening a broken stream. Default: for about a minute, first after 100 milliseconds. */
  readonly reconnect?: Schedule.Schedule<unknown> | undefined
}

/**
 * An agent as described by its card. The texts come from the agent.
 *
 * @category models
 * @since 0.1.0
 */
export type Card = Cards.Card

/**
 * A message to an agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Message {
  /** A text, or texts, data and media. */
  readonly content: string | ReadonlyArray<Content>
  /** The task that waits for this message. Default: a new task. */
  readonly taskId?: string | undefined
  /** The conversation to continue. Default: that of the task, or a new one. */
  readonly contextId?: string | undefined
  /** The id of the message, by which an agent may recognize a repeated message. Default: random. */
  readonly messageId?: string | undefined
}

/**
 * The state of a task.
 *
 * @category models
 * @since 0.1.0
 */
export type TaskState = Views.TaskState

/**
 * The current state of a task. An agent that replies at once has no task, and its reply is `completed`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Task {
  readonly taskId: string | undefined
  readonly contextId: string | undefined
  readonly state: TaskState
  /** The message about the state: a question while it is `input_required`. */
  readonly message: ReadonlyArray<Content>
  /** The results of the task so far. */
  readonly content: ReadonlyArray<Content>
  /** The results as one text. */
  readonly text: string
}

/**
 * A client of one agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface A2aClient {
  readonly name: string
  /** Returns the card, which is fetched once. */
  readonly card: Effect.Effect<Card, A2aError>
  /**
   * Sends a message and waits until its task is completed or requires input. Fails with reason `not_completed` if the
   * task ends otherwise. An interruption or a timeout cancels the task. `onChange` receives every update of the task.
   */
  readonly ask: (
    message: string | Message,
    options?: { readonly onChange?: ((task: Task) => Effect.Effect<void>) | undefined }
  ) => Effect.Effect<Task, A2aError>
  /**
   * Sends a message and emits its task after each update, until it is at rest. Leaving the stream does not cancel the
   * task.
   */
  readonly stream: (message: string | Message) => Stream.Stream<Task, A2aError>
  /** Emits a task, then emits it again after each update, until it is at rest. */
  readonly follow: (taskId: string) => Stream.Stream<Task, A2aError>
  readonly task: (taskId: string) => Effect.Effect<Task, A2aError>
  readonly cancel: (taskId: string) => Effect.Effect<void, A2aError>
}

// ---------------------------------------------------------------- constructors

/**
 * Creates a client that sends its requests with the `HttpClient` in context. Fails with reason `config` for an invalid
 * address or header.
 *
 * @example
 * const billing = yield* A2aClient.make({ url: "https://billing.example" })
 * const { text } = yield* billing.ask("What do I owe?")
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<A2aClient, A2aError, HttpClient.HttpClient> {
  const limits = yield* Limits
  const place = yield* Effect.fromResult(Cards.placeOf(options))
  const { name } = place
  const headers = options.headers ?? {}
  const clean = remover(Secrets.ofHeaders(Object.values(headers)))
  const peer = { name, limits, clean, client: Cards.clientOf(yield* HttpClient.HttpClient, headers) }
  const found = Cards.reader(peer, place)
  const talk: Talk.Talk = { peer, found, reconnect: options.reconnect ?? Talk.patiently }
  const sent = (message: string | Message) => Effect.map(Random.Random, (random) => sentOf(message, random))
  const stream: A2aClient["stream"] = (message) =>
    Stream.unwrap(Effect.map(sent(message), (sent) => Stream.map(Talk.stream(talk, sent), shown)))
  const shown = (view: Views.View) => taskOf(view, clean)
  const timeout = options.timeout ?? limits.skillTimeout
  return {
    name,
    card: Effect.map(found, ({ card }) => card),
    stream,
    follow: (taskId) => Stream.map(Talk.follow(talk, taskId), shown),
    task: (taskId) => Effect.map(Talk.get(talk, taskId), shown),
    cancel: (taskId) => Talk.cancel(talk, taskId),
    ask: (message, { onChange } = {}) =>
      Effect.flatMap(sent(message), (sent) =>
        Talk.ask(talk, sent, {
          timeout,
          onView: onChange === undefined ? undefined : (view) => onChange(shown(view))
        })
      ).pipe(Effect.flatMap((view) => completed(peer, shown(view))))
  }
})

/**
 * Creates a client that sends its requests with `fetch`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeFetch = (options: Options): Effect.Effect<A2aClient, A2aError> =>
  Effect.provide(make(options), FetchHttpClient.layer)

const sentOf = (message: string | Message, random: Random.Random): Wire.Sent => {
  const { content, contextId, messageId, taskId } = typeof message === "string" ? { content: message } : message
  return {
    messageId: messageId ?? randomId(random, 4),
    contextId,
    taskId,
    content: typeof content === "string" ? [Contents.text(content)] : content
  }
}

/** Shows a task. What it says besides the results of a completed one may be about an error, which may repeat a key. */
const taskOf = (view: Views.View, clean: (text: string) => string): Task => {
  const made = Views.madeBy(view)
  const content = view.state === "completed" ? made : deep(made, clean)
  return {
    taskId: view.taskId,
    contextId: view.contextId,
    state: view.state,
    message: deep(Views.contentsOf(view.said), clean),
    content,
    text: Views.textOf(content)
  }
}

/** Returns the task, or fails if it ended without an answer. */
const completed = (peer: Line.Peer, task: Task): Effect.Effect<Task, A2aError> => {
  if (task.state === "completed" || task.state === "input_required") return Effect.succeed(task)
  const said = Views.textOf(task.message)
  const why = said === "" ? "" : `: ${said}`
  return Effect.fail(
    task.state === "auth_required"
      ? Line.failure(peer, "needs_sign_in", `wants a sign-in before it continues its task${why}`)
      : Line.failure(peer, "not_completed", `did not complete its task, which is ${task.state}${why}`)
  )
}

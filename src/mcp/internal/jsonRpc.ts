/**
 * Sends JSON-RPC requests over one two-way line. A response goes to the request with its id, once; foreign, repeated
 * and early responses are dropped. A request that was never sent fails as an expired session, so it may be sent again;
 * a request that was cut off fails as a transport error, since the server may have acted on it.
 */

import type * as McpClient from "effect/ai/McpClient"
import {
  ClosedError,
  LimitError,
  McpClientError,
  ProtocolError,
  TransportError,
  UnsupportedError
} from "effect/ai/McpClientError"
import * as McpSchema from "effect/ai/McpSchema"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Bounds from "../../kit/bounds.ts"
import { forkNow } from "../../kit/foreignCode.ts"
import { isRecord, own, parseJson } from "../../kit/json.ts"
import { wellFormedJson } from "../../kit/soundText.ts"
import type { Limits } from "../../Limits.ts"

/** Receives every notification. */
export type OnNotification = (method: string, params?: unknown) => Effect.Effect<void>

/** Receives every request, and the function that sends the reply. */
type OnRequest = (
  message: McpSchema.JsonRpcRequest,
  send: (response: McpSchema.JsonRpcResponse) => Effect.Effect<void>
) => Effect.Effect<void>

/** Receives the messages that the server sends by itself. */
export interface Receivers {
  readonly onNotification: OnNotification
  readonly onRequest: OnRequest
}

export interface Line extends Pick<McpClient.Transport, "request" | "notify"> {
  /** Takes the text of one message or one batch. */
  readonly receive: (text: string) => Effect.Effect<void, McpClientError>
  /** Accepts no further requests. Those in progress may still be answered. */
  readonly refuse: Effect.Effect<void>
  /** Ends the line and fails the requests in progress with the error. */
  readonly close: (error: McpClientError) => Effect.Effect<void>
  readonly isOpen: Effect.Effect<boolean>
}

/** Opens a line over a function that sends one encoded message. */
export const make = (options: {
  readonly send: (text: string) => Effect.Effect<void, McpClientError>
  readonly receivers: Receivers
  readonly limits: Limits
  /** Skips text that is not a message, for a server that also prints logs on the line. */
  readonly hasLogs?: boolean
}): Line => {
  const { hasLogs = false, limits, receivers } = options
  const pending: Pending = new Map()
  let closed = false
  const send = (message: McpSchema.JsonRpcMessage) => Effect.flatMap(encode(message), options.send)
  const take = Effect.fnUntraced(function* (value: unknown) {
    const decoded = decodeMessage(value)
    if (Option.isNone(decoded)) return yield* broken("the server sent something that is not a JSON-RPC message")
    const message = decoded.value
    // Responses may still arrive after the line has stopped sending.
    if (isRequest(message)) return yield* receivers.onRequest(message, (response) => Effect.ignore(send(response)))
    if ("method" in message) return yield* receivers.onNotification(message.method, message.params)
    yield* settle(pending, message)
  })

  // The protocol forbids cancelling the first request.
  const cancel = ({ id, method }: McpSchema.JsonRpcRequest) =>
    method === "initialize" || !pending.has(id) ? Effect.void : unawaited(send(cancelled(id)), limits)

  return {
    isOpen: Effect.sync(() => !closed),
    refuse: Effect.sync(() => void (closed = true)),
    close: (error) =>
      Effect.suspend(() => {
        closed = true
        return failAll(pending, error)
      }),
    notify: (message) => (closed ? Effect.fail(notSent) : send(message)),
    receive: Effect.fnUntraced(function* (text) {
      const value = parseJson(text, Bounds.jsonDepth)
      if (Result.isSuccess(value)) {
        const messages: ReadonlyArray<unknown> = Array.isArray(value.success) ? value.success : [value.success]
        yield* eachOf(messages, (message) => (!hasLogs || isMessage(message, pending) ? take(message) : Effect.void))
      } else if (!hasLogs || beginsMessage(text)) {
        return yield* broken(`the server sent unreadable JSON: ${value.failure}`)
      }
    }),
    request: Effect.fnUntraced(function* (message) {
      if (closed) return yield* notSent
      const answer = yield* Deferred.make<McpSchema.JsonRpcResponse, McpClientError>()
      pending.set(message.id, answer)
      return yield* send(message).pipe(
        Effect.andThen(Deferred.await(answer)),
        Effect.onInterrupt(() => cancel(message)),
        Effect.ensuring(Effect.sync(() => pending.delete(message.id)))
      )
    })
  }
}

/** Sends without waiting for it, since the server may have stopped reading. */
const unawaited = (send: Effect.Effect<void, McpClientError>, limits: Limits): Effect.Effect<void> =>
  forkNow(Effect.ignore(Effect.timeoutOption(send, Duration.times(limits.cleanUpTimeout, 1 / 5))), () => Effect.void)

const failAll = (pending: Pending, error: McpClientError): Effect.Effect<void> => {
  const waiting = [...pending.values()]
  pending.clear()
  return Effect.forEach(waiting, (answer) => Deferred.fail(answer, error), { discard: true })
}

/** Takes every item, even after a failure, then fails with the first failure. */
export const eachOf = Effect.fnUntraced(function* <A>(
  items: ReadonlyArray<A>,
  take: (item: A) => Effect.Effect<void, McpClientError>
): Effect.fn.Return<void, McpClientError> {
  let first: McpClientError | undefined
  for (const item of items) {
    const taken = yield* Effect.result(take(item))
    if (Result.isFailure(taken)) first ??= taken.failure
  }
  if (first !== undefined) return yield* first
})

type Pending = Map<McpSchema.RequestId, Deferred.Deferred<McpSchema.JsonRpcResponse, McpClientError>>

const cancelled = (requestId: McpSchema.RequestId) =>
  ({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } }) as const

const settle = Effect.fnUntraced(function* (pending: Pending, message: McpSchema.JsonRpcResponse) {
  // An error without an id may belong to any request.
  if (message.id === undefined || message.id === null) return yield* broken("the server could not read a message")
  const answer = pending.get(message.id)
  pending.delete(message.id)
  if (answer !== undefined) yield* Deferred.succeed(answer, message)
})

/** Creates the error of a request whose line broke. The cause is for `errorCode` only, since it may hold secrets. */
export const lost = (description: string, cause?: unknown) =>
  new McpClientError({ reason: new TransportError({ description, cause }) })

export const notSent = new McpClientError({ reason: new ClosedError({ sessionExpired: true }) })

/** Creates the error of a message that is larger than a limit. */
export const tooLarge = (description: string) => new McpClientError({ reason: new LimitError({ description }) })

export const frameTooLong = tooLarge(`a message exceeds ${Bounds.frameLength} characters`)

/** The error of a request that needs an answer which is not available now. */
export const inputRequired = new McpClientError({
  reason: new UnsupportedError({ description: "it asks for more input before it answers" })
})

export const broken = (description: string) => new McpClientError({ reason: new ProtocolError({ description }) })

/** Returns true for a message, which names the protocol or responds to a request. A log entry may also have an id. */
const isMessage = (value: unknown, pending: ReadonlyMap<unknown, unknown>): boolean =>
  isRecord(value) &&
  (own(value, "jsonrpc") !== undefined ||
    (pending.has(own(value, "id")) && (Object.hasOwn(value, "result") || Object.hasOwn(value, "error"))))

/** Returns true for unreadable text whose first key belongs to a message and which names the protocol. */
const beginsMessage = (text: string): boolean =>
  /^\s*(?:\[\s*)?\{\s*"(?:jsonrpc|id|method|params|result|error)"\s*:/.test(text) && text.includes('"jsonrpc"')

/** Decodes a message. Some servers write null for omitted parameters. */
export const decodeMessage = (value: unknown): Option.Option<McpSchema.JsonRpcMessage> => {
  if (!isRecord(value) || own(value, "params") !== null) return decode(value)
  const { params: _, ...message } = value
  return decode(message)
}

const decode = Schema.decodeUnknownOption(McpSchema.JsonRpcMessage)

export const isRequest = (message: McpSchema.JsonRpcMessage): message is McpSchema.JsonRpcRequest =>
  "method" in message && "id" in message

const encode = Effect.fnUntraced(function* (message: McpSchema.JsonRpcMessage) {
  const text = yield* Effect.try({
    try: () => wellFormedJson(JSON.stringify(message)),
    catch: () => broken("the request is not JSON")
  })
  return text.length > Bounds.frameLength ? yield* frameTooLong : text
})

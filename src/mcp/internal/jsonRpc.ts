/**
 * Requests and their answers over one two-way line of JSON-RPC messages.
 *
 * An answer reaches only the request whose id it carries, once: foreign,
 * repeated and early answers are dropped (S-18). Server requests are declined,
 * except `ping`. A request that was refused before anything was sent fails as
 * an expired session, so that a caller knows it may be sent again; one that was
 * cut off fails as a transport error, and nobody knows what became of it.
 */

import type * as McpClient from "effect/ai/McpClient"
import { ClosedError, LimitError, McpClientError, ProtocolError, TransportError } from "effect/ai/McpClientError"
import * as McpSchema from "effect/ai/McpSchema"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Bounds from "../../internal/base/bounds.ts"
import { isRecord, own, parseJson } from "../../internal/base/json.ts"
import type { Limits } from "../../Limits.ts"

/** What a transport is told to do besides carrying requests. */
export interface Listener {
  /** Called for every notification; must not block. */
  readonly onNotification: (method: string) => void
}

/** One line to a server. */
export interface Exchange {
  readonly request: McpClient.Transport["request"]
  readonly notify: McpClient.Transport["notify"]
  /** Takes one message, or one batch, as it came. */
  readonly receive: (text: string) => Effect.Effect<void, McpClientError>
  /** Takes no further request; those under way may still be answered. */
  readonly refuse: Effect.Effect<void>
  /** Ends the line; whatever is under way fails with the error. */
  readonly close: (error: McpClientError) => Effect.Effect<void>
  readonly isOpen: Effect.Effect<boolean>
}

/** Opens a line over a function that sends one encoded message. */
export const make = (options: {
  readonly send: (text: string) => Effect.Effect<void, McpClientError>
  readonly listener: Listener
  readonly limits: Limits
  /** Whether the server prints its logs on the line as well: what is no message is passed over. */
  readonly hasLogs?: boolean
}): Exchange => {
  const { hasLogs = false, limits } = options
  const { cleanUpTimeout } = limits
  const pending = new Map<McpSchema.RequestId, Deferred.Deferred<McpSchema.JsonRpcResponse, McpClientError>>()
  let closed = false

  const send = (message: McpSchema.JsonRpcMessage) =>
    Effect.flatMap(encode(message, Bounds.frameLength), (text) => options.send(text))

  const refuse = Effect.sync(() => {
    closed = true
  })
  const close = (error: McpClientError) =>
    Effect.andThen(
      refuse,
      Effect.suspend(() => {
        const waiting = [...pending.values()]
        pending.clear()
        return Effect.forEach(waiting, (answer) => Deferred.fail(answer, error), { discard: true })
      })
    )

  const take = Effect.fnUntraced(function* (value: unknown) {
    const decoded = decodeMessage(value)
    if (Option.isNone(decoded)) return yield* broken("the server sent something that is no JSON-RPC message")
    const message = decoded.value
    // Where nothing is sent any more, what is under way may still be answered.
    if (isRequest(message)) return yield* Effect.catchIf(send(reply(message)), isUnsent, () => Effect.void)
    if (isNotification(message)) return options.listener.onNotification(message.method)
    // An error that names no request may be the answer to any of them.
    if (message.id === undefined || message.id === null) return yield* broken("the server could not read a message")
    const answer = pending.get(message.id)
    if (answer === undefined) return
    pending.delete(message.id)
    yield* Deferred.succeed(answer, message)
  })

  return {
    isOpen: Effect.sync(() => !closed),
    refuse,
    close,
    notify: (message) => (closed ? Effect.fail(notSent) : send(message)),
    receive: Effect.fnUntraced(function* (text) {
      const value = parseJson(text, Bounds.jsonDepth)
      if (Result.isFailure(value)) {
        if (hasLogs && !beginsMessage(text)) return
        return yield* broken(`the server sent unreadable JSON: ${value.failure}`)
      }
      const messages: ReadonlyArray<unknown> = Array.isArray(value.success) ? value.success : [value.success]
      for (const message of messages) if (!hasLogs || isMessage(message, pending)) yield* take(message)
    }),
    request: Effect.fnUntraced(function* (message) {
      if (closed) return yield* notSent
      const answer = yield* Deferred.make<McpSchema.JsonRpcResponse, McpClientError>()
      pending.set(message.id, answer)
      return yield* send(message).pipe(
        Effect.andThen(Deferred.await(answer)),
        Effect.onInterrupt(() =>
          // The protocol forbids cancelling the first request. Who takes nothing in any longer is not waited for.
          message.method === "initialize" || !pending.has(message.id)
            ? Effect.void
            : Effect.ignore(Effect.timeoutOption(send(cancelled(message.id)), Duration.times(cleanUpTimeout, 1 / 5)))
        ),
        Effect.ensuring(Effect.sync(() => pending.delete(message.id)))
      )
    })
  }
}

/** The line broke while something was under way. The cause is for `errorCode` only: it may hold secrets. */
export const lost = (description: string, cause?: unknown) =>
  new McpClientError({ reason: new TransportError({ description, cause }) })

/** Nothing was sent: the line was closed before. */
export const notSent = new McpClientError({ reason: new ClosedError({ sessionExpired: true }) })

const isUnsent = (error: McpClientError): boolean => error === notSent

/** A message is larger than a frame may be. */
export const tooLarge = (limit: number) =>
  new McpClientError({ reason: new LimitError({ description: `a message exceeds ${limit} bytes` }) })

/** The server does not keep to the protocol. */
export const broken = (description: string) => new McpClientError({ reason: new ProtocolError({ description }) })

/** The server answered with an error. */
export const refused = (error: { readonly code: number; readonly message: string; readonly data?: unknown }) =>
  new McpClientError({ reason: new ProtocolError({ code: error.code, description: error.message, data: error.data }) })

/** What a server's own request gets: kernai offers no sampling, no elicitation, no roots. */
export const reply = (request: McpSchema.JsonRpcRequest): McpSchema.JsonRpcResponse =>
  request.method === "ping"
    ? { jsonrpc: "2.0", id: request.id, result: {} }
    : {
        jsonrpc: "2.0",
        id: request.id,
        error: { code: McpSchema.METHOD_NOT_FOUND_ERROR_CODE, message: `Method not found: ${request.method}` }
      }

/** Whether this means to be a message: it names its protocol, or answers what is asked. Logs have ids, too. */
const isMessage = (value: unknown, asked: ReadonlyMap<unknown, unknown>): boolean =>
  isRecord(value) &&
  (own(value, "jsonrpc") !== undefined ||
    (asked.has(own(value, "id")) && (Object.hasOwn(value, "result") || Object.hasOwn(value, "error"))))

/** The same of what cannot be read: its first key is one of a message, and it names the protocol. */
const beginsMessage = (text: string): boolean =>
  /^\s*(?:\[\s*)?\{\s*"(?:jsonrpc|id|method|params|result|error)"\s*:/.test(text) && text.includes('"jsonrpc"')

/** Reads a message, if it is one. Some write null for parameters they leave out. */
export const decodeMessage = (value: unknown): Option.Option<McpSchema.JsonRpcMessage> => {
  if (!isRecord(value) || own(value, "params") !== null) return decode(value)
  const { params: _, ...message } = value
  return decode(message)
}

const decode = Schema.decodeUnknownOption(McpSchema.JsonRpcMessage)

/** Asks for an answer. */
export const isRequest = (message: McpSchema.JsonRpcMessage): message is McpSchema.JsonRpcRequest =>
  "method" in message && "id" in message && message.id !== undefined

/** Tells something, and waits for nothing. */
export const isNotification = (message: McpSchema.JsonRpcMessage): message is McpSchema.JsonRpcNotification =>
  "method" in message && !isRequest(message)

const cancelled = (requestId: McpSchema.RequestId): McpSchema.JsonRpcNotification => ({
  jsonrpc: "2.0",
  method: "notifications/cancelled",
  params: { requestId }
})

const encode = Effect.fnUntraced(function* (message: McpSchema.JsonRpcMessage, limit: number) {
  const text = yield* Effect.try({
    try: () => JSON.stringify(message),
    catch: () => broken("the request is no JSON")
  })
  if (text.length > limit) return yield* tooLarge(limit)
  return text
})

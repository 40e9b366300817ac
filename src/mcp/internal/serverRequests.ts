/**
 * Answers the requests of a server during calls, each by the host of the call that it belongs to.
 *
 * A request in the stream of a call belongs to that call. On a line, a request belongs to the last call, as long as all
 * calls are of one run. A call with an open question ends, after the server has received a cancelled answer.
 */

import type * as McpClient from "effect/ai/McpClient"
import type { McpClientError } from "effect/ai/McpClientError"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import type * as Scope from "effect/Scope"
import { isRecord, type Json, own } from "../../kit/json.ts"
import { SamplingRefused } from "../../KernelError.ts"
import type { HostTime } from "./hostTime.ts"
import * as JsonRpc from "./jsonRpc.ts"
import { begunBefore } from "./requestFailure.ts"
import * as Asks from "./serverAsks.ts"

/** The host for the calls of a fiber. */
export interface Caller {
  readonly host: Asks.Host
  /** The id of the calling run. On a line with calls of several runs, requests cannot be assigned. */
  readonly run: string | undefined
  readonly time: HostTime | undefined
}

/** The caller of a fiber. Undefined: the host of the connection answers. */
export const Caller = Context.Reference<Caller | undefined>("kernai/mcp/Caller", { defaultValue: () => undefined })

/** A request to the server that is in progress. */
interface Under extends Caller {
  /** Completed when a person has to answer first. */
  readonly pending: Deferred.Deferred<void>
}

const Current = Context.Reference<Under | undefined>("kernai/mcp/CurrentRequest", { defaultValue: () => undefined })

/** Sends a reply to the server. */
type Send = (response: McpSchema.JsonRpcResponse) => Effect.Effect<void>

export interface Requests {
  /**
   * Creates a transport that remembers the hosts of requests in progress, and sends a request again if it needs more
   * input.
   */
  readonly over: (inner: McpClient.Transport) => McpClient.Transport
  /** Receives a request of the server that names no call. */
  readonly receive: (message: McpSchema.JsonRpcRequest, send: Send) => Effect.Effect<void>
  /** Receives the server's notice that it no longer waits for a reply. */
  readonly cancelled: (params: unknown) => Effect.Effect<void>
  /** Returns the receiver for requests in the event stream of this fiber's request. */
  readonly ofCall: (send: Send) => Effect.Effect<(message: McpSchema.JsonRpcRequest) => Effect.Effect<void>>
}

/** Creates the requests of a session. `host` answers for fibers without a caller. */
export const make = Effect.fnUntraced(function* (host: Asks.Host): Effect.fn.Return<Requests, never, Scope.Scope> {
  const replies = yield* FiberMap.make<McpSchema.RequestId>()
  const under = new Set<Under>()
  const own: Caller = { host, run: undefined, time: undefined }

  const reply = (caller: Caller & Partial<Under>, message: McpSchema.JsonRpcRequest, send: Send) => {
    const { id, method, params } = message
    const respond = (replied: Asks.Replied) => send({ jsonrpc: "2.0", id, ...replied })
    const replied = Effect.matchEffect(timed(caller, Asks.replyTo(caller.host, method, params)), {
      onSuccess: respond,
      onFailure: () =>
        Effect.andThen(
          respond(Asks.undecided(method)),
          caller.pending === undefined ? Effect.void : Deferred.succeed(caller.pending, undefined)
        )
    })
    if (method === "ping") return replied
    return Effect.flatMap(FiberMap.size(replies), (count) =>
      count >= most ? respond(busy) : Effect.asVoid(FiberMap.run(replies, id, replied, { onlyIfMissing: true }))
    )
  }

  return {
    receive: (message, send) => {
      const callers = [...under]
      const [first] = callers
      return callers.some(({ run }) => run !== first?.run)
        ? reply({ ...own, host: ambiguous }, message, send)
        : reply(callers.at(-1) ?? own, message, send)
    },
    cancelled: (params) => {
      const id = isRecord(params) ? params["requestId"] : undefined
      return typeof id === "string" || typeof id === "number" ? FiberMap.remove(replies, id) : Effect.void
    },
    ofCall: (send) => Effect.map(Current, (current) => (message) => reply(current ?? own, message, send)),
    over: (inner) => ({
      ...inner,
      request: (message, tool) =>
        methods.has(message.method)
          ? Effect.flatMap(Caller, (caller) => {
              const entry: Under = { ...(caller ?? own), pending: Deferred.makeUnsafe<void>() }
              under.add(entry)
              const answered = Effect.provideService(rounds(inner, entry, message, tool), Current, entry)
              const pending = Effect.andThen(Deferred.await(entry.pending), Effect.fail(JsonRpc.inputRequired))
              return Effect.ensuring(
                Effect.raceFirst(answered, pending),
                Effect.sync(() => under.delete(entry))
              )
            })
          : Effect.filterOrFail(inner.request(message, tool), isComplete, () => JsonRpc.inputRequired)
    })
  }
})

// Methods during which a server may send requests.
const methods: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read"])

// Maximum number of open requests of one session.
const most = 64
const busy: Asks.Replied = { error: { code: -1, message: "too many requests are open" } }

const ambiguous: Asks.Host = {
  elicit: () => Effect.succeed({ _tag: "Dismissed" }),
  sample: () =>
    Effect.fail(new SamplingRefused({ reason: "denied", detail: "several runs use this connection; ask for one call" }))
}

const timed = <A, E>({ time }: Caller, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  time === undefined ? effect : time.during(effect)

const isComplete = ({ result }: McpSchema.JsonRpcResponse): boolean =>
  !isRecord(result) || own(result, "resultType") !== "input_required"

/** Sends a request, and again with the input that its result asks for, until the result is complete. */
const rounds = Effect.fnUntraced(function* (
  inner: McpClient.Transport,
  caller: Caller,
  message: McpSchema.JsonRpcRequest,
  tool: McpSchema.Tool | undefined
): Effect.fn.Return<McpSchema.JsonRpcResponse, McpClientError> {
  let next = message
  for (let round = 1; round <= maxRounds; round++) {
    const request = inner.request(next, tool)
    const response = yield* round === 1 ? request : Effect.mapError(request, begunBefore)
    const more = yield* timed(caller, moreFor(caller.host, response))
    if (more === undefined) return { ...response, id: message.id }
    next = { ...message, id: `${message.id}-${round}`, params: { ...message.params, ...more } }
  }
  return yield* JsonRpc.inputRequired
})

const maxRounds = 16

/** Returns the input with which a request is sent again, or undefined if its result is final. */
const moreFor = Effect.fnUntraced(function* (
  host: Asks.Host,
  { error, result }: McpSchema.JsonRpcResponse
): Effect.fn.Return<{ readonly [key: string]: Json } | undefined, McpClientError> {
  const reply = (method: string, params: unknown) =>
    Effect.catchTag(Asks.replyTo(host, method, params), "AnswerPending", () => Effect.fail(JsonRpc.inputRequired))
  const addresses = host.elicit === undefined ? undefined : Asks.addressesOf(error)
  if (addresses !== undefined) {
    for (const params of addresses) {
      const replied = yield* reply("elicitation/create", { mode: "url", ...params })
      if ("error" in replied || replied.result["action"] !== "accept") return undefined
    }
    return {}
  }
  if (!isRecord(result) || own(result, "resultType") !== "input_required") return undefined
  const requests = Asks.inputRequests(result)
  if (requests === undefined) return yield* JsonRpc.inputRequired
  const inputResponses: { [key: string]: Json } = {}
  for (const [key, method, params] of requests) {
    const replied = yield* reply(method, params)
    if ("error" in replied) return yield* JsonRpc.inputRequired
    inputResponses[key] = replied.result
  }
  const state = own(result, "requestState")
  return { inputResponses, ...(typeof state === "string" ? { requestState: state } : {}) }
})

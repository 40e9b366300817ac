/**
 * JSON-RPC with a client over lines: requests in both directions, notifications, and cancelled requests.
 */

import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Stdio } from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import { isRecord, type Json, type JsonObject, own, parseJson } from "../../kit/json.ts"
import { wellFormedJson } from "../../kit/soundText.ts"
import { flat, shorten } from "../../kit/text.ts"
import { type Line, linesOf } from "./acpLines.ts"
import * as Problems from "./acpProblem.ts"
import { AcpProblem } from "./acpProblem.ts"

/** The messages that this side sends. */
export interface Peer {
  readonly notify: (method: string, params: JsonObject) => Effect.Effect<void>
  /** Sends a request and decodes its result. An interrupted request is cancelled. */
  readonly request: <A>(method: string, params: JsonObject, result: Schema.Decoder<A>) => Effect.Effect<A, AcpProblem>
}

/** Answers the requests and notifications of the client. */
export interface Receiver<R> {
  /** Returns the result of a request, or undefined if there is no such method. */
  readonly request: (method: string, params: unknown) => Effect.Effect<JsonObject, AcpProblem, R> | undefined
  readonly notification: (method: string, params: unknown) => Effect.Effect<void>
}

type Id = string | number | null

/** Requests of a client that are answered at once. */
const maxRequests = 100

/** Lines that wait for the client to read them. */
const maxLines = 1_000

/** Serves a client until its input ends. Requests in progress are then interrupted. */
export const serve = Effect.fnUntraced(function* <R>(
  stdio: Stdio,
  receiverOf: (peer: Peer) => Receiver<R>
): Effect.fn.Return<void, never, R | Scope.Scope> {
  const lines = yield* Queue.bounded<string>(maxLines)
  const connection = new Connection(lines)
  const receiver = receiverOf(connection)
  const write = Stream.run(Stream.fromQueue(lines), stdio.stdout({ endOnDone: false }))
  const read = Stream.runForEach(linesOf(stdio.stdin), (line) => connection.receive(line, receiver))
  // A client that is gone has ended its input as well. What still waits to be sent is dropped then.
  yield* Effect.ensuring(Effect.ignore(Effect.raceFirst(read, Effect.andThen(write, Effect.never))), connection.end)
})

class Connection implements Peer {
  readonly #lines: Queue.Enqueue<string>
  /** Requests to the client, by id. */
  readonly #asked = new Map<number, Deferred.Deferred<unknown, AcpProblem>>()
  /** Requests of the client that are in progress. */
  readonly #answering = new Map<Id, Fiber.Fiber<unknown> | undefined>()
  #requests = 0

  constructor(lines: Queue.Enqueue<string>) {
    this.#lines = lines
  }

  /** Ends the connection. Requests to a client that is gone fail. */
  readonly end = Effect.suspend(() => {
    for (const asked of this.#asked.values()) Deferred.doneUnsafe(asked, Effect.fail(left()))
    return Queue.shutdown(this.#lines)
  })

  notify(method: string, params: JsonObject): Effect.Effect<void> {
    return Effect.asVoid(this.#send({ method, params }))
  }

  request<A>(method: string, params: JsonObject, result: Schema.Decoder<A>): Effect.Effect<A, AcpProblem> {
    return Effect.suspend(() => {
      const id = ++this.#requests
      const asked = Deferred.makeUnsafe<unknown, AcpProblem>()
      this.#asked.set(id, asked)
      return this.#send({ id, method, params }).pipe(
        Effect.flatMap((isSent) => (isSent ? Deferred.await(asked) : Effect.fail(left()))),
        Effect.onInterrupt(() => this.notify("$/cancel_request", { requestId: id })),
        Effect.ensuring(Effect.sync(() => this.#asked.delete(id))),
        Effect.flatMap((value) => decode(result, value))
      )
    })
  }

  /** Receives a line of the client. */
  receive<R>(line: Line, receiver: Receiver<R>): Effect.Effect<void, never, R | Scope.Scope> {
    if (line === undefined) return this.#fail(null, Problems.invalidRequest("the line is too long"))
    const message = parseJson(line, Bounds.jsonDepth)
    if (Result.isFailure(message)) return this.#fail(null, Problems.parseError())
    if (!isRecord(message.success)) return this.#fail(null, Problems.invalidRequest("the message is no object"))
    const id = own(message.success, "id")
    const method = own(message.success, "method")
    const params = own(message.success, "params")
    if (method === undefined) return this.#answered(message.success)
    if (typeof method !== "string") return this.#fail(null, Problems.invalidRequest("the method is no text"))
    if (id === undefined) {
      return method === "$/cancel_request" ? this.#cancel(params) : receiver.notification(method, params)
    }
    if (!isId(id)) return this.#fail(null, Problems.invalidRequest("the id is no text and no number"))
    return this.#answer(id, receiver.request(method, params))
  }

  /** Answers a request of the client, while others are received. */
  #answer<R>(
    id: Id,
    work: Effect.Effect<JsonObject, AcpProblem, R> | undefined
  ): Effect.Effect<void, never, R | Scope.Scope> {
    if (work === undefined) return this.#fail(id, Problems.unknownMethod())
    if (this.#answering.has(id)) return this.#fail(id, Problems.invalidRequest("a request with this id is in progress"))
    if (this.#answering.size >= maxRequests) return this.#fail(id, Problems.failed("too many requests are in progress"))
    const answering = work.pipe(
      Effect.flatMap((result) => Effect.asVoid(this.#send({ id, result }))),
      Effect.catch((problem) => this.#fail(id, problem)),
      Effect.catchDefect((defect) =>
        Effect.andThen(Effect.logError(defect), this.#fail(id, Problems.failed("the agent failed")))
      ),
      Effect.onInterrupt(() => this.#fail(id, Problems.requestCancelled())),
      Effect.ensuring(Effect.sync(() => this.#answering.delete(id)))
    )
    this.#answering.set(id, undefined)
    // Starts at once, so that a prompt knows of its cancellation in the next line.
    return Effect.map(Effect.forkScoped(answering, { startImmediately: true }), (fiber) => {
      if (this.#answering.has(id)) this.#answering.set(id, fiber)
    })
  }

  #cancel(params: unknown): Effect.Effect<void> {
    const id = isRecord(params) ? own(params, "requestId") : undefined
    const fiber = isId(id) ? this.#answering.get(id) : undefined
    return fiber === undefined ? Effect.void : Effect.sync(() => fiber.interruptUnsafe())
  }

  /** Completes a request to the client. A response that nobody waits for is dropped. */
  #answered(message: Record<string, unknown>): Effect.Effect<void> {
    const id = own(message, "id")
    const asked = typeof id === "number" ? this.#asked.get(id) : undefined
    if (asked === undefined) return Effect.void
    const error = own(message, "error")
    if (error === undefined) return Effect.asVoid(Deferred.succeed(asked, own(message, "result") ?? null))
    const text = isRecord(error) ? own(error, "message") : undefined
    const reason = typeof text === "string" ? shorten(flat(text), 400) : "the client refused"
    return Effect.asVoid(Deferred.fail(asked, Problems.failed(reason)))
  }

  #fail(id: Id, { code, message }: AcpProblem): Effect.Effect<void> {
    return Effect.asVoid(this.#send({ id, error: { code, message } }))
  }

  /** Sends a message. Returns false after the end. */
  #send(message: { readonly [key: string]: Json }): Effect.Effect<boolean> {
    const line = wellFormedJson(JSON.stringify({ jsonrpc: "2.0", ...message }))
    return Queue.offer(this.#lines, `${line}\n`)
  }
}

const left = () => Problems.failed("the editor has left")

const isId = (value: unknown): value is Id =>
  value === null || typeof value === "number" || (typeof value === "string" && value.length <= 1_000)

/** Decodes what the client sent. */
export const decode = <A>(schema: Schema.Decoder<A>, value: unknown): Effect.Effect<A, AcpProblem> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(value), (error) =>
    Problems.invalidParams(shorten(flat(error.message), 400))
  )

/**
 * Makes one model call over HTTP: sends the request, waits, retries, and delivers the parts as they arrive.
 *
 * A call is repeated only as long as nothing of the reply has been delivered. All parts of one network read are
 * delivered as one array. The request ends with the stream: interrupting the consumer aborts it. Redirects are never
 * followed, since they would forward the body and the key.
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import { errorCode } from "../../kit/failedRequest.ts"
import type { ProviderError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { Request } from "../../Provider.ts"
import type { StreamPart } from "../../StreamPart.ts"
import { VendorPropagation } from "../../Telemetry.ts"
import * as StreamParts from "../../StreamPart.ts"
import { patiently } from "./attempts.ts"
import {
  allowed,
  type Fault,
  limitFault,
  refusal,
  retryAt,
  statusReason,
  type FaultFacts,
  toError
} from "./providerFault.ts"
import { type Decoder, type Framing, make as makeFrames } from "./frames.ts"
import { type Fields, isFields, parse } from "./readFields.ts"
import { isSubstance, Reply } from "./replyParts.ts"
import { requestIdOf, wordsOf } from "./vendorWords.ts"

/** The destination of a request, and the meaning of its refusals. */
export interface Service {
  readonly name: string
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  readonly headers: () => { readonly [name: string]: string }
  /** Classifies an error document and its status. */
  readonly fault: (document: unknown, status: number) => FaultFacts
}

/** The details of one vendor. */
export interface Vendor extends Service {
  readonly framing: Framing
  /** Whether it may load a model before it replies. Its headers then have at least five minutes. */
  readonly startsSlowly?: boolean | undefined
  readonly url: (request: Request) => string
  /** The JSON text of the request. */
  readonly body: (request: Request) => Effect.Effect<string, ProviderError>
  readonly decoder: (reply: Reply) => Decoder
}

type Parts = Arr.NonEmptyReadonlyArray<StreamPart>
type PartsPull = Pull.Pull<Parts, Fault>

/** Makes the `stream` of a provider. */
export const stream =
  (client: HttpClient.HttpClient, vendor: Vendor) =>
  (request: Request): Stream.Stream<StreamPart, ProviderError> =>
    Stream.unwrap(call(client, vendor, request))

/** Requests a document once, such as the list of models. */
export const document = Effect.fnUntraced(
  function* (client: HttpClient.HttpClient, service: Service, url: string) {
    const limits = yield* Limits
    const get = HttpClientRequest.get(url, { headers: { accept: "application/json", ...service.headers() } })
    const response = yield* send(client, get, limits, Duration.zero)
    if (!isOk(response)) return yield* refused(service, response, limits)
    const value = parse(yield* bodyOf(response, limits))
    return isFields(value)
      ? value
      : yield* Effect.fail<Fault>({ reason: "invalid_response", note: "not a JSON object" })
  },
  (effect, _client, service) =>
    Effect.mapError(effect, (fault) =>
      toError(
        service.name,
        fault,
        service.secrets.map((secret) => Redacted.value(secret)),
        1
      )
    )
)

const call = Effect.fnUntraced(function* (client: HttpClient.HttpClient, vendor: Vendor, request: Request) {
  const limits = yield* Limits
  const secrets = vendor.secrets.map((secret) => Redacted.value(secret))
  const body = yield* vendor.body(request)
  const post = HttpClientRequest.post(vendor.url(request), {
    headers: { "accept-encoding": "identity", ...vendor.headers() }
  }).pipe(HttpClientRequest.bodyText(body, "application/json"))
  return yield* patiently(vendor.name, secrets, begin(client, vendor, post, limits))
})

/** Makes one attempt. Succeeds when the first part with content has arrived. */
const begin = Effect.fnUntraced(function* (
  client: HttpClient.HttpClient,
  vendor: Vendor,
  post: HttpClientRequest.HttpClientRequest,
  limits: Limits
) {
  const response = yield* send(client, post, limits, vendor.startsSlowly === true ? slowStart : Duration.zero)
  if (!isOk(response)) {
    const isReply = ({ isReply }: Fault) => isReply === true
    return yield* Effect.catchIf(refused(vendor, response, limits), isReply, () => Effect.succeed(failedReply))
  }

  const pull = yield* read(vendor, response, limits)
  let held = yield* firstOf(pull)
  while (!held.some(isSubstance)) held = Arr.appendAll(held, yield* firstOf(pull))
  let isFirst = true
  return Stream.fromPull(
    Effect.succeed(
      Effect.suspend((): PartsPull => {
        if (!isFirst) return pull
        isFirst = false
        return Effect.succeed(held)
      })
    )
  )
})

const failedReply = Stream.succeed(StreamParts.finish("error"))

const slowStart = Duration.minutes(5)

const isOk = (response: HttpClientResponse.HttpClientResponse): boolean =>
  response.status >= 200 && response.status < 300

const firstOf = (pull: PartsPull): Effect.Effect<Parts, Fault> =>
  Pull.catchDone(pull, () => Effect.fail<Fault>({ reason: "incomplete" }))

/** Sends a request and returns its response as soon as the headers arrive. Waits for them at least `least`. */
const send = (
  client: HttpClient.HttpClient,
  ask: HttpClientRequest.HttpClientRequest,
  { headersTimeout }: Limits,
  least: Duration.Duration
) =>
  Effect.andThen(allowed, client.execute(hideQuery(ask))).pipe(
    Effect.updateContext(direct),
    // This includes the connect limit, because an HTTP client does not report when it is connected.
    Effect.timeoutOrElse({
      duration: Duration.max(headersTimeout, least),
      orElse: () =>
        Effect.fail<Fault>({
          reason: "timeout",
          note: Duration.isLessThan(headersTimeout, least)
            ? `waited ${Duration.format(least)}; a higher headersTimeout waits longer`
            : `headersTimeout is ${Duration.format(headersTimeout)}`
        })
    }),
    Effect.catch((error) => {
      if (!HttpClientError.isHttpClientError(error)) return Effect.fail<Fault>(error)
      if (error.response !== undefined) return Effect.succeed(error.response)
      return Effect.fail<Fault>(
        error.reason._tag === "TransportError"
          ? { reason: "disconnected", note: `no response from ${hostOf(ask.url)}`, code: errorCode(error) }
          : { reason: "invalid_request", ...(error.reason._tag === "InvalidUrlError" ? noUrl : {}) }
      )
    })
  )

/** Moves the query of the address to parameters, so that spans, errors and logs do not show its values. */
const hideQuery = (ask: HttpClientRequest.HttpClientRequest): HttpClientRequest.HttpClientRequest => {
  const url = URL.parse(ask.url)
  if (url === null || url.search === "") return ask
  const params = Array.from(url.searchParams, ([name, value]): readonly [string, string | Redacted.Redacted] => [
    name,
    plainParams.has(name) ? value : Redacted.make(value)
  ])
  url.search = ""
  return HttpClientRequest.appendUrlParams(HttpClientRequest.setUrl(ask, url.href), params)
}

// Anything else in the query of a base URL may be a key.
const plainParams: ReadonlySet<string> = new Set(["alt", "api-version", "limit", "pageSize"])

const noUrl: Pick<Fault, "note"> = { note: "its address is not a URL" }

/** Returns the host of a request. Everything else in an address may be a secret. */
const hostOf = (url: string): string => URL.parse(url)?.host ?? "there"

// Redirects are not followed, and trace ids are sent only if the application wants it.
const direct = (context: Context.Context<never>): Context.Context<never> =>
  Context.add(context, FetchHttpClient.RequestInit, {
    ...Context.getOrUndefined(context, FetchHttpClient.RequestInit),
    redirect: "manual"
  }).pipe(Context.add(HttpClient.TracerPropagationEnabled, Context.get(context, VendorPropagation)))

/** Emits the parts of a reply, one array for each read of the network that brings any. */
const read = Effect.fnUntraced(function* (
  vendor: Vendor,
  response: HttpClientResponse.HttpClientResponse,
  limits: Limits
) {
  const bytes = yield* Stream.toPull(response.stream)
  const named = (fault: Fault) => withRequestId(fault, response)
  const received = Effect.mapError(bytes, (error): Fault | Cause.Done =>
    Cause.isDone(error) ? error : named({ reason: "disconnected", code: errorCode(error) })
  )
  const within = (duration: Duration.Duration) =>
    Effect.timeoutOrElse(received, {
      duration,
      orElse: () =>
        Effect.fail(named({ reason: "timeout", note: `idleTimeout is ${Duration.format(limits.idleTimeout)}` }))
    })
  const timely = within(limits.idleTimeout)
  const reply = new Reply(limits)
  const { finish, hasEnded, take } = reader(vendor, reply, boundOf(response, limits), limits)

  // Once the reply has ended, bytes without content do not extend the wait for its usage.
  let endsAt: number | undefined
  const last = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    endsAt ??= now + Math.min(usageWait, Duration.toMillis(limits.idleTimeout))
    return within(Duration.millis(Math.max(0, endsAt - now)))
  })

  // Parts before a fault are delivered first, even if they arrive in the same read.
  let broken: Fault | undefined
  const deliver = (fault: Fault | undefined): PartsPull => {
    if (fault?.reason === "limit_exceeded") return Effect.fail(named(fault))
    broken = fault && named(fault)
    const parts = reply.out
    if (!Arr.isArrayNonEmpty(parts)) return pull
    reply.out = []
    endsAt = undefined
    return Effect.succeed(parts)
  }

  const pull: PartsPull = Effect.suspend((): PartsPull => {
    if (reply.isFinished) return Effect.andThen(rest(bytes), Cause.done())
    return broken !== undefined
      ? Effect.fail(broken)
      : Pull.matchEffect(hasEnded() ? last : timely, {
          onSuccess: (chunks) => deliver(take(chunks)),
          // A reply that has ended is whole, whatever happens to its connection.
          onFailure: (cause) =>
            !Cause.hasInterrupts(cause) && finish() === undefined ? deliver(undefined) : Effect.failCause(cause),
          onDone: () => deliver(finish())
        })
  })
  return pull
})

/** Reads the bytes of a body into a reply. */
const reader = (vendor: Vendor, reply: Reply, bound: Bound, limits: Limits) => {
  const explained = (fault: Fault | undefined, value: unknown) => fault && { ...fault, vendor: wordsOf(value) }
  const decoder = vendor.decoder(reply)
  // A reply that has ended is whole, whatever its vendor sends behind it.
  const beforeEnd = (use: (value: Fields) => Fault | undefined) => (value: Fields) => {
    if (reply.isFinished) return undefined
    const hadEnded = decoder.hasEnded()
    const fault = use(value)
    return hadEnded ? undefined : explained(fault, value)
  }
  const frames = makeFrames(
    vendor.framing,
    {
      event: beforeEnd(decoder.event),
      failed: beforeEnd(decoder.failed),
      whole: (value) => explained(decoder.whole(value), value),
      end: decoder.end,
      hasEnded: decoder.hasEnded
    },
    limits
  )
  const utf8 = new TextDecoder("utf-8", { fatal: true })
  let received = 0

  const take = (chunks: ReadonlyArray<Uint8Array>): Fault | undefined => {
    for (const chunk of chunks) {
      received += chunk.length
      if (received > bound.most) return limitFault(bound.by, bound.value)
      const text = decode(utf8, chunk)
      if (text === undefined) return { reason: "invalid_response", note: "no UTF-8" }
      const fault = frames.push(text)
      if (fault !== undefined) return fault
      if (reply.fault !== undefined) return reply.fault
    }
    return undefined
  }

  const finish = (): Fault | undefined => {
    const fault: Fault | undefined = decode(utf8) === undefined ? { reason: "incomplete" } : frames.end()
    // After the end of the reply, half an event means nothing.
    if (fault !== undefined && !(fault.reason === "incomplete" && decoder.hasEnded())) return fault
    decoder.end(false)
    if (reply.fault !== undefined) return reply.fault
    return reply.isFinished ? undefined : { reason: "incomplete" }
  }

  return { take, finish, hasEnded: decoder.hasEnded }
}

/** The time in milliseconds to wait for the usage of a reply that has ended. */
const usageWait = 2_000

/** Returns the bound of a body: a close one if it is compressed, a generous one if it is plain. */
const boundOf = (response: HttpClientResponse.HttpClientResponse, limits: Limits): Bound =>
  response.headers["content-encoding"] === undefined
    ? { most: 64 * limits.replyLength, by: "replyLength", value: limits.replyLength }
    : unpacked(response, limits)

/** The maximum number of bytes of a body, with the name and value of the limit behind it. */
interface Bound {
  readonly most: number
  readonly by: string
  readonly value: number
}

/** Returns the maximum size of a compressed body: an absolute number of bytes, and a ratio to its compressed length. */
const unpacked = (response: HttpClientResponse.HttpClientResponse, limits: Limits): Bound => {
  const packed = Number(response.headers["content-length"] ?? NaN)
  const most = Math.max(excerptBytes, packed * Bounds.decompressionRatio)
  return Number.isSafeInteger(packed) && most < limits.fetchedBytes
    ? { most, by: "decompressionRatio", value: Bounds.decompressionRatio }
    : { most: limits.fetchedBytes, by: "fetchedBytes", value: limits.fetchedBytes }
}

type Utf8 = InstanceType<typeof TextDecoder>

/**
 * Reads the little that follows the end of a reply: at most nine chunks, for 200 milliseconds.
 *
 * A connection can be reused only after its response has been read to the end.
 */
const rest = (bytes: Pull.Pull<unknown, unknown>): Effect.Effect<void> =>
  Effect.ignore(Effect.timeoutOption(Effect.repeat(bytes, { times: 8 }), 200))

const decode = (utf8: Utf8, chunk?: Uint8Array): string | undefined => {
  try {
    return chunk === undefined ? utf8.decode() : utf8.decode(chunk, { stream: true })
  } catch {
    return undefined
  }
}

/** Fails with the meaning of a response other than 200. */
const refused = Effect.fnUntraced(function* (
  vendor: Service,
  response: HttpClientResponse.HttpClientResponse,
  limits: Limits
) {
  const status = response.status
  const reason = statusReason(status)
  const now = yield* Clock.currentTimeMillis
  const body = reason === "redirect" ? "" : yield* excerpt(response, limits)
  const value = parse(body)
  // Google may send its error in a list, even from hosts that use another format.
  const document: unknown = Array.isArray(value) ? value[0] : value
  const facts: FaultFacts = reason === "redirect" ? { reason } : refusal(vendor.fault(document, status), status)
  const fault: Fault = {
    ...facts,
    status,
    retryAt: retryAt(response.headers, now) ?? (facts.waitMs === undefined ? undefined : now + facts.waitMs),
    retry: response.headers["x-should-retry"] === "false" ? false : undefined,
    vendor: wordsOf(document ?? body)
  }
  return yield* Effect.fail(withRequestId(fault, response))
})

const withRequestId = (fault: Fault, { headers }: HttpClientResponse.HttpClientResponse): Fault => {
  const requestId = requestIdOf(headers)
  return requestId === undefined ? fault : { ...fault, vendor: { requestId, ...fault.vendor } }
}

const excerptBytes = 64 * 1024

/** Returns the beginning of a body. Ignores errors while reading it, since the status decides. */
const excerpt = (response: HttpClientResponse.HttpClientResponse, limits: Limits): Effect.Effect<string> =>
  response.stream.pipe(
    Stream.scan(
      () => ({ bytes: 0, text: "", utf8: new TextDecoder() }),
      (read, chunk) => ({
        bytes: read.bytes + chunk.length,
        text: read.text + read.utf8.decode(chunk, { stream: true }),
        utf8: read.utf8
      })
    ),
    Stream.takeUntil((read) => read.bytes >= excerptBytes),
    Stream.runLast,
    Effect.timeoutOption(Duration.min(limits.idleTimeout, Duration.seconds(5))),
    Effect.map((last) => Option.match(Option.flatten(last), { onNone: () => "", onSome: (read) => read.text })),
    Effect.orElseSucceed(() => "")
  )

/** Reads a whole body, which must arrive within `idleTimeout`. */
const bodyOf = (
  response: HttpClientResponse.HttpClientResponse,
  { fetchedBytes, idleTimeout }: Limits
): Effect.Effect<string, Fault> =>
  response.stream.pipe(
    Stream.mapError((error): Fault => ({ reason: "disconnected", code: errorCode(error) })),
    Stream.limitBytes(fetchedBytes, () => Stream.fail(limitFault("fetchedBytes", fetchedBytes))),
    Stream.mkUint8Array,
    Effect.map((bytes) => new TextDecoder().decode(bytes)),
    Effect.timeoutOrElse({
      duration: idleTimeout,
      orElse: () => Effect.fail<Fault>({ reason: "timeout", note: `idleTimeout is ${Duration.format(idleTimeout)}` })
    })
  )

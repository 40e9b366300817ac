/**
 * Serves an agent over the A2A protocol 1.0 with JSON-RPC and REST, and with JSON-RPC to clients of version 0.3.
 *
 * A task is a run, and its context a conversation: a message in the context of an earlier one continues it. A task that
 * waits for a person is in state `INPUT_REQUIRED`, and a message to the task is the answer.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as NetAddress from "effect/net/NetAddress"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { JsonObject } from "../kit/json.ts"
import { ConfigInvalid } from "../KernelError.ts"
import type { RunEvent } from "../RunEvent.ts"
import { sha256 } from "../kit/sha256.ts"
import { Conflict, type HttpProblem } from "./HttpProblem.ts"
import * as Capabilities from "./internal/a2aCapabilities.ts"
import { A2aFold } from "./internal/a2aFold.ts"
import { listOf, ListOf } from "./internal/a2aList.ts"
import * as Notifier from "./internal/a2aNotifier.ts"
import * as Push from "./internal/a2aPushCalls.ts"
import * as Replies from "./internal/a2aReply.ts"
import { callOf } from "./internal/a2aOlder.ts"
import { type Call, read, receive, rpcOf, Send, TaskOf } from "./internal/a2aRequest.ts"
import * as Rest from "./internal/a2aRest.ts"
import * as Tasks from "./internal/a2aTask.ts"
import * as Routes from "./CallerRoute.ts"
import * as Conversations from "./internal/conversations.ts"
import * as Sse from "./internal/sse.ts"
import { type CallerRuns, ServedRuns } from "./ServedRuns.ts"

/**
 * Options of the routes and the agent card.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The path of the JSON-RPC route, below which the REST routes are. Default: `/a2a`. */
  readonly path?: `/${string}` | undefined
  /** The path of the agent card, which is public. Default: `/.well-known/agent-card.json`. */
  readonly cardPath?: `/${string}` | undefined
  /** The agent that works on the tasks. Default: the first agent of the server. */
  readonly agent?: string | undefined
  /**
   * The address of the JSON-RPC route in the card, which clients on other machines can reach. Default: `path` at the
   * address on which the server listens. Required where no server listens, as in a web handler.
   */
  readonly url?: string | undefined
  /** Returns the address of a stored medium for clients. Default: the route of `HttpKernel` at `/runs` of the same origin. */
  readonly mediaUrl?: ((runId: string, mediaId: string) => string) | undefined
  /**
   * Whether clients may have the changes of their tasks posted to an address: on public hosts over https, and at these
   * origins. Default: false.
   */
  readonly pushNotifications?: boolean | { readonly origins: ReadonlyArray<string> } | undefined
  /**
   * Further fields of the card, such as `skills`, `version`, `provider` and `securitySchemes`. Calls are checked against
   * it: files have a type of its `defaultInputModes` or of the `inputModes` of a skill, required extensions are named by
   * the client, and `streaming: false` of its `capabilities` refuses streams.
   */
  readonly card?: JsonObject | undefined
}

/**
 * Adds the agent card, and the methods `SendMessage`, `SendStreamingMessage`, `GetTask`, `ListTasks`, `CancelTask` and
 * `SubscribeToTask`, over JSON-RPC and REST. With `pushNotifications` also those that create, get, list and delete
 * push notification configs, which a message may bring, too.
 *
 * - The answer is the artifact `answer`. In a stream, the text of each turn replaces that of the turn before. The files
 *   that the agent and its skills make are further artifacts, by their addresses.
 * - A question is a data part `{ callId, name, input, reason }` of the status; a data part `{ approved, callId?,
 *   reason?, input? }` of a message to the task answers it, or `{ output }` for an external skill, or its text: `yes`,
 *   `no`, or the value of a form with one text.
 * - A client that leaves a stream does not stop the task.
 * - A push notification is posted for each change of the status, each file and the answer, at least once: with the token
 *   in `X-A2A-Notification-Token`, and `Authorization` as the config says. One that is not accepted is repeated three
 *   times. Configs are stored with the media of the run, and a restarted server continues them.
 * - A list shows the newest 1,000 tasks of the caller with this agent, most recently changed first. The history of a
 *   task holds the messages that its client sent.
 *
 * @example
 * const Routes = A2a.layer().pipe(Layer.provideMerge(HttpKernel.layer({ agents: [librarian] })))
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<never, ConfigInvalid, HttpRouter.HttpRouter | ServedRuns> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const router = yield* HttpRouter.HttpRouter
      const runs = yield* ServedRuns
      const { agents } = runs
      const { agent: name = agents[0]?.name ?? "", cardPath = "/.well-known/agent-card.json", path = "/a2a" } = options
      const description = agents.find((agent) => agent.name === name)?.description ?? ""
      const url = options.url ?? (yield* addressOf(path))
      const { pushNotifications = false } = options
      const hasPush = pushNotifications !== false
      const facts = { name, description, url, pushNotifications: hasPush }
      yield* router.add("GET", cardPath, yield* respondCard(Capabilities.cardOf(facts, options.card)))
      const origin = URL.parse(url)?.origin ?? ""
      const urlOf: Tasks.UrlOf = options.mediaUrl ?? ((runId, id) => origin + Conversations.mediaUrl(runId, id))
      const origins = typeof pushNotifications === "boolean" ? [] : pushNotifications.origins
      const notifier =
        pushNotifications === false ? undefined : yield* Notifier.make(runs, { agent: name, origins, urlOf })
      const supported = Capabilities.supportedBy(options.card, hasPush)
      const served: Served = { agent: name, urlOf, notifier, supported }
      // The router adds the path itself to one that ends with a wildcard.
      yield* Routes.add("POST", `${path}/*`, (runs) =>
        Effect.flatMap(Routes.param("*"), (rest) =>
          rest === "" ? respond(runs, served) : respondRest(runs, served, "POST", rest)
        )
      )
      yield* Routes.add("GET", `${path}/*`, (runs) =>
        Effect.flatMap(Routes.param("*"), (rest) => respondRest(runs, served, "GET", rest))
      )
      yield* Routes.add("DELETE", `${path}/*`, (runs) =>
        Effect.flatMap(Routes.param("*"), (rest) => respondRest(runs, served, "DELETE", rest))
      )
    })
  )

/** Returns the address of a path of the listening server. The host of a request could be that of an attacker. */
const addressOf = (path: string): Effect.Effect<string, ConfigInvalid> =>
  Effect.flatMap(Effect.serviceOption(HttpServer.HttpServer), (server) => {
    const address = Option.getOrUndefined(server)?.address
    if (address === undefined || NetAddress.isUnixPathAddress(address)) {
      const reason = "the card of the agent needs an address, since no server listens on a port here"
      return Effect.fail(new ConfigInvalid({ path: "url", reason }))
    }
    // No client can call a wildcard address.
    const host = NetAddress.isUnspecified(address.address) ? "localhost" : NetAddress.formatUrlHost(address.address)
    return Effect.succeed(`http://${host}:${address.port}${path}`)
  })

/** The served agent, as far as the routes know it. */
interface Served {
  readonly agent: string
  readonly urlOf: Tasks.UrlOf
  readonly notifier: Notifier.Notifier | undefined
  readonly supported: Capabilities.Supported
}

/** Creates the response with the card, which clients may keep for five minutes. */
const respondCard = (card: JsonObject) =>
  Effect.map(sha256(JSON.stringify(card)), (digest) => {
    const headers = { "cache-control": "public, max-age=300", etag: `"${digest.slice(0, 32)}"` }
    return Effect.succeed(HttpServerResponse.setHeaders(Replies.json(card), headers))
  })

const respond = (runs: CallerRuns, served: Served) =>
  Effect.gen(function* () {
    const received = rpcOf(yield* Routes.bodyText)
    if (Result.isFailure(received)) {
      const { id, isJson } = received.failure
      return Replies.json(Replies.refusalOf({ id: id ?? null }, isJson ? Replies.notACall : Replies.notJson))
    }
    return yield* answered(runs, served, callOf(received.success))
  })

/** Responds to a request of the REST binding. */
const respondRest = (runs: CallerRuns, served: Served, method: Rest.RestRequest["method"], path: string) =>
  Effect.gen(function* () {
    const { url } = yield* HttpServerRequest.HttpServerRequest
    const hasBody = path.startsWith("message:") || (method === "POST" && path.endsWith("/pushNotificationConfigs"))
    const body = hasBody ? yield* Routes.bodyText : ""
    const query = new URLSearchParams(url.split("?", 2)[1] ?? "")
    const call = Rest.callOf({ method, path, query, body })
    return call === undefined ? Replies.restRefused(Replies.noMethod) : yield* answered(runs, served, call)
  })

const answered = Effect.fnUntraced(function* (
  runs: CallerRuns,
  served: Served,
  call: Call
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, HttpProblem, Routes.Provided> {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const refusal = Capabilities.refusalOf(served.supported, call, headers)
  if (refusal !== undefined) return Replies.refused(call, refusal)
  return yield* Effect.catch(called(runs, served, call), (problem) => {
    const error = Replies.errorOf(call.method, problem)
    return error === undefined ? Effect.fail(problem) : Effect.succeed(Replies.refused(call, error))
  })
})

const called = Effect.fnUntraced(function* (
  runs: CallerRuns,
  served: Served,
  rpc: Call
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, HttpProblem, Scope.Scope> {
  const { agent, notifier, urlOf } = served
  if (notifier !== undefined && Push.isPush(rpc)) {
    return Replies.response(rpc, yield* Push.resultOf(runs, notifier, rpc))
  }
  switch (rpc.method) {
    case "SendMessage": {
      const sent = yield* read(Send, rpc.params)
      const isFollowed = sent.configuration?.returnImmediately !== true
      // A refused request starts nothing.
      if (isFollowed) yield* runs.place
      const { runId } = yield* begun(runs, served, rpc, sent)
      if (isFollowed) yield* Stream.runDrain(runs.follow(runId))
      return Replies.response(rpc, { task: yield* Tasks.taskOf(runs, runId, urlOf, sent.configuration) })
    }
    case "SendStreamingMessage": {
      const sent = yield* read(Send, rpc.params)
      yield* runs.place
      const { after, runId } = yield* begun(runs, served, rpc, sent)
      return yield* streamed(runs, urlOf, rpc, { runId, after, events: runs.follow(runId) })
    }
    case "SubscribeToTask": {
      const { id } = yield* read(TaskOf, rpc.params)
      const head = yield* runs.summary(id)
      if (Tasks.isOver(head)) return yield* new Conflict({ reason: "completed", id })
      yield* runs.place
      const { revision, runId } = head
      return yield* streamed(runs, urlOf, rpc, { runId, after: revision, events: Tasks.eventsOf(runs, runId) })
    }
    case "GetTask": {
      const { historyLength, id } = yield* read(TaskOf, rpc.params)
      return Replies.response(rpc, yield* Tasks.taskOf(runs, id, urlOf, { historyLength }))
    }
    case "ListTasks":
      return Replies.response(rpc, yield* listOf(runs, agent, urlOf, yield* read(ListOf, rpc.params ?? {})))
    case "CancelTask": {
      const { id } = yield* read(TaskOf, rpc.params)
      if (Tasks.isOver(yield* runs.summary(id))) return yield* new Conflict({ reason: "completed", id })
      yield* runs.cancel(id)
      return Replies.response(rpc, yield* Tasks.taskOf(runs, id, urlOf))
    }
    default:
      return Replies.refused(rpc, Replies.noMethod)
  }
})

/** Starts or answers a task with a message, and notifies the address that came with it. */
const begun = Effect.fnUntraced(function* (
  runs: CallerRuns,
  { agent, notifier }: Served,
  { version }: Call,
  sent: Send
): Effect.fn.Return<Conversations.Answering, HttpProblem> {
  const config = yield* Push.sentWith(notifier, sent, version)
  const begun = yield* receive(runs, agent, sent)
  if (config !== undefined && notifier !== undefined) yield* notifier.set(runs, begun.runId, config, begun.after)
  return begun
})

/** A task, and its events, of which the client has those up to a revision. */
interface Followed extends Conversations.Answering {
  readonly events: Stream.Stream<RunEvent, HttpProblem>
}

/** Sends the current task, then its updates. */
const streamed = Effect.fnUntraced(function* (
  runs: CallerRuns,
  urlOf: Tasks.UrlOf,
  rpc: Call,
  { after, events, runId }: Followed
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, HttpProblem, Scope.Scope> {
  const task = yield* Tasks.taskOf(runs, runId, urlOf)
  const framed = (text: string, result: JsonObject) => text + Sse.dataOf(Replies.replyOf(rpc, result))
  return Sse.response(
    Stream.suspend(() => {
      const fold = new A2aFold(Tasks.idsOf(runs, runId), after, (id) => urlOf(runId, id))
      const updates = Stream.map(events, (event) => fold.push(event))
      return Stream.make([{ task }]).pipe(
        Stream.concat(updates),
        Stream.filter((results) => results.length > 0),
        Stream.map((results: ReadonlyArray<JsonObject>) => results.reduce(framed, "")),
        Stream.catch(() => Stream.make(Replies.brokenOff(rpc))),
        Stream.encodeText,
        Sse.alive
      )
    })
  )
})

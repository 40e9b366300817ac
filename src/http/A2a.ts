/**
 * Serves an agent over the A2A protocol 1.0 with JSON-RPC, also to clients of version 0.3.
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
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as NetAddress from "effect/net/NetAddress"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { JsonObject } from "../kit/json.ts"
import { ConfigInvalid } from "../KernelError.ts"
import { Conflict, type HttpProblem } from "./HttpProblem.ts"
import { A2aFold } from "./internal/a2aFold.ts"
import { listOf, ListOf } from "./internal/a2aList.ts"
import * as Replies from "./internal/a2aReply.ts"
import { callOf } from "./internal/a2aOlder.ts"
import { type Call, read, receive, rpcOf, Send, TaskOf } from "./internal/a2aRequest.ts"
import * as Tasks from "./internal/a2aTask.ts"
import * as Routes from "./CallerRoute.ts"
import type { Answering } from "./internal/conversations.ts"
import * as Sse from "./internal/sse.ts"
import { type CallerRuns, ServedRuns } from "./ServedRuns.ts"

/**
 * Options of the routes and the agent card.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The path of the JSON-RPC route. Default: `/a2a`. */
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
  /** Further fields of the card, such as `skills`, `version`, `provider` and `securitySchemes`. */
  readonly card?: JsonObject | undefined
}

/**
 * Adds the agent card, and one route with the methods `SendMessage`, `SendStreamingMessage`, `GetTask`, `ListTasks`,
 * `CancelTask` and `SubscribeToTask`. There are no push notifications.
 *
 * - The answer is the artifact `answer`. In a stream, the text of each turn replaces that of the turn before.
 * - A question is a data part `{ callId, name, input, reason }` of the status; a data part `{ approved, callId?,
 *   reason?, input? }` of a message to the task answers it, or its text: `yes`,
 *   `no`, or the value of a form with one text.
 * - A client that leaves a stream does not stop the task.
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
      const { agents } = yield* ServedRuns
      const { agent: name = agents[0]?.name ?? "", cardPath = "/.well-known/agent-card.json", path = "/a2a" } = options
      const description = agents.find((agent) => agent.name === name)?.description ?? ""
      const url = options.url ?? (yield* addressOf(path))
      const card = Replies.json({ ...cardOf(name, description, url), ...options.card })
      yield* router.add("GET", cardPath, Effect.succeed(card))
      yield* Routes.add("POST", path, (runs) => respond(runs, name))
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

const cardOf = (name: string, description: string, url: string): JsonObject => ({
  name,
  description,
  version: "1.0.0",
  supportedInterfaces: ["1.0", "0.3"].map((protocolVersion) => ({ url, protocolBinding: "JSONRPC", protocolVersion })),
  // For clients of version 0.3.
  protocolVersion: "0.3.0",
  url,
  preferredTransport: "JSONRPC",
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: name, name, description, tags: [] }]
})

const respond = (runs: CallerRuns, agent: string) =>
  Effect.gen(function* () {
    const received = rpcOf(yield* Routes.bodyText)
    if (Result.isFailure(received)) {
      const { id, isJson } = received.failure
      return Replies.json(Replies.refusalOf({ id: id ?? null }, isJson ? Replies.notACall : Replies.notJson))
    }
    const rpc = callOf(received.success)
    const { headers } = yield* HttpServerRequest.HttpServerRequest
    const version = headers["a2a-version"] ?? ""
    // The method names differ between versions, so a client without the header is also understood.
    if (version !== "" && !version.startsWith(rpc.version === "1.0" ? "1." : "0.3")) {
      const message = "This server speaks versions 1.0 and 0.3, each with its own methods."
      return Replies.json(Replies.refusalOf(rpc, { code: -32009, message }))
    }
    return yield* Effect.catch(called(runs, agent, rpc), (problem) => {
      const error = Replies.errorOf(rpc.method, problem)
      return error === undefined ? Effect.fail(problem) : Effect.succeed(Replies.json(Replies.refusalOf(rpc, error)))
    })
  })

const called = Effect.fnUntraced(function* (
  runs: CallerRuns,
  agent: string,
  rpc: Call
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, HttpProblem, Scope.Scope> {
  switch (rpc.method) {
    case "SendMessage": {
      const sent = yield* read(Send, rpc.params)
      const isFollowed = sent.configuration?.returnImmediately !== true
      // A refused request starts nothing.
      if (isFollowed) yield* runs.place
      const { runId } = yield* receive(runs, agent, sent)
      if (isFollowed) yield* Stream.runDrain(runs.follow(runId))
      return Replies.json(Replies.replyOf(rpc, { task: yield* Tasks.taskOf(runs, runId, sent.configuration) }))
    }
    case "SendStreamingMessage": {
      const sent = yield* read(Send, rpc.params)
      yield* runs.place
      return yield* streamed(runs, rpc, yield* receive(runs, agent, sent))
    }
    case "SubscribeToTask": {
      const { id } = yield* read(TaskOf, rpc.params)
      const head = yield* runs.summary(id)
      if (Tasks.isOver(head)) return yield* new Conflict({ reason: "completed", id })
      yield* runs.place
      return yield* streamed(runs, rpc, { runId: head.runId, after: head.revision })
    }
    case "GetTask": {
      const { historyLength, id } = yield* read(TaskOf, rpc.params)
      return Replies.json(Replies.replyOf(rpc, yield* Tasks.taskOf(runs, id, { historyLength })))
    }
    case "ListTasks":
      return Replies.json(Replies.replyOf(rpc, yield* listOf(runs, agent, yield* read(ListOf, rpc.params ?? {}))))
    case "CancelTask": {
      const { id } = yield* read(TaskOf, rpc.params)
      if (Tasks.isOver(yield* runs.summary(id))) return yield* new Conflict({ reason: "completed", id })
      yield* runs.cancel(id)
      return Replies.json(Replies.replyOf(rpc, yield* Tasks.taskOf(runs, id)))
    }
    default:
      return Replies.json(Replies.refusalOf(rpc, Replies.unknown(rpc.method)))
  }
})

/** Sends the current task, then its updates. */
const streamed = Effect.fnUntraced(function* (
  runs: CallerRuns,
  rpc: Call,
  { after, runId }: Answering
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, HttpProblem, Scope.Scope> {
  const task = yield* Tasks.taskOf(runs, runId)
  const framed = (text: string, result: JsonObject) => text + Sse.dataOf(Replies.replyOf(rpc, result))
  const broken = Sse.dataOf(Replies.refusalOf(rpc, { code: -32603, message: "The stream broke off." }))
  return Sse.response(
    Stream.suspend(() => {
      const fold = new A2aFold(Tasks.idsOf(runs, runId), after)
      const events = Stream.map(runs.follow(runId), (event) => fold.push(event))
      return Stream.make([{ task }]).pipe(
        Stream.concat(events),
        Stream.filter((results) => results.length > 0),
        Stream.map((results: ReadonlyArray<JsonObject>) => results.reduce(framed, "")),
        Stream.catch(() => Stream.make(broken)),
        Stream.encodeText,
        Sse.alive
      )
    })
  )
})

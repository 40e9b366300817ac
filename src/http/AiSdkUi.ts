/**
 * A route for `useChat` of `@ai-sdk/react`, and for every client of the AI SDK's UI message stream.
 *
 * Each message of a user is one run. Its id begins with the id of the chat and is also the id of the reply message.
 * Earlier messages are read from the run that answered last, not from the page. A page that reconnects, or a second
 * page, receives the message in progress from its beginning.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Routes from "./CallerRoute.ts"
import * as Conversations from "./internal/conversations.ts"
import * as Sse from "./internal/sse.ts"
import * as Chats from "./internal/uiChats.ts"
import { UiFold } from "./internal/uiFold.ts"
import { UiRequest } from "./internal/uiRequest.ts"
import { type HttpProblem, NotFound } from "./HttpProblem.ts"
import type { CallerRuns, ServedRuns } from "./ServedRuns.ts"

/**
 * Options of the routes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The path of the route; give it to the page as `api`. Default: `/api/chat`. */
  readonly path?: `/${string}` | undefined
  /** The agent that answers, unless the body of a request names one. Default: the only agent of the server. */
  readonly agent?: string | undefined
  /** Returns the address of a stored medium for the page. Default: the route of `HttpKernel` at `/runs`. */
  readonly mediaUrl?: ((runId: string, mediaId: string) => string) | undefined
}

/**
 * Adds three routes:
 *
 * - `POST path` answers the last message, or continues with the decisions of `addToolApprovalResponse`. The form of a
 *   call that asks a person is a `data-form` part with the id of the call, whose values are sent as `values` in the
 *   body: `addToolApprovalResponse({ id, approved: true, options: { body: { values: { [id]: { seat: "12A" } } } } })`. With `onLeave:
 *   "cancel"` in the body, a page that leaves cancels the run, and so does `stop` of `useChat`.
 * - `GET path/:id/stream` sends the last message of the chat from its beginning, for `resumeStream`, even if it ended
 *   while no page was connected. Responds with 204 if there is none.
 * - `POST path/:id/stop` cancels the run of the last message.
 *
 * @example
 * const Routes = AiSdkUi.layer().pipe(Layer.provideMerge(HttpKernel.layer({ agents: [librarian] })))
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter | ServedRuns> => {
  const { path = "/api/chat" } = options
  return Layer.effectDiscard(
    Effect.all([
      Routes.add("GET", `${path}/*`, (runs) =>
        Effect.flatMap(chatId("stream"), (id) =>
          Effect.flatMap(Conversations.last(runs, id), (head) =>
            head === undefined
              ? Effect.succeed(nothing)
              : Effect.as(runs.place, messageOf(runs, options, { runId: head.runId, after: 0, onLeave: "continue" }))
          )
        )
      ),
      // The router adds the path itself to one that ends with a wildcard.
      Routes.add("POST", `${path}/*`, (runs) =>
        Effect.flatMap(Routes.param("*"), (rest) =>
          rest === ""
            ? respond(runs, options)
            : Effect.flatMap(chatId("stop"), (id) => Effect.as(Conversations.stop(runs, id), nothing))
        )
      )
    ])
  )
}

/**
 * Returns the id of a chat from the rest of the path, which ends with a verb. Clients do not escape the id, and a router
 * limits the length of a parameter, but not of the rest.
 */
const chatId = (verb: "stream" | "stop"): Effect.Effect<string, HttpProblem, Routes.Provided> =>
  Effect.flatMap(Routes.param("*"), (rest) =>
    rest.endsWith(`/${verb}`)
      ? Effect.succeed(rest.slice(0, -verb.length - 1))
      : Effect.fail(new NotFound({ what: "run", id: rest }))
  )

const nothing = HttpServerResponse.empty({ status: 204 })

const respond = (runs: CallerRuns, options: Options) =>
  Effect.gen(function* () {
    const request = yield* Routes.body(UiRequest)
    // A refused request starts nothing.
    yield* runs.place
    const answer = yield* Chats.answer(runs, { agent: options.agent, ...request })
    return messageOf(runs, options, { ...answer, onLeave: request.onLeave ?? "continue" })
  })

/** A run whose message is sent, from a revision on. */
interface Answering extends Conversations.Answering {
  readonly onLeave: "continue" | "cancel"
}

const messageOf = (
  runs: CallerRuns,
  { mediaUrl = Conversations.mediaUrl }: Options,
  { after, onLeave, runId }: Answering
) =>
  Sse.response(
    Stream.suspend(() => {
      const fold = new UiFold({ urlOf: (id) => mediaUrl(runId, id) })
      // Events that the page already has are folded again, but not sent.
      let isNew = false
      const chunks = Stream.map(runs.follow(runId), (event) => {
        isNew ||= !("revision" in event) || event.revision > after
        const made = fold.push(event)
        return isNew || event.type === "run_started" ? made.reduce(framed, "") : ""
      })
      const sent = Stream.filter(chunks, (text) => text !== "").pipe(
        Stream.catch(() => Stream.make(framed("", { type: "error", errorText: "The stream broke off." }))),
        Stream.concat(Stream.make("data: [DONE]\n\n"))
      )
      const bytes = Sse.alive(Stream.encodeText(sent))
      return onLeave === "continue" ? bytes : Stream.onExit(bytes, (exit) => Conversations.leave(runs, runId, exit))
    }),
    { "x-vercel-ai-ui-message-stream": "v1" }
  )

const framed = (text: string, chunk: object): string => text + Sse.dataOf(chunk)

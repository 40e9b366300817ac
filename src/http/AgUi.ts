/**
 * A route for `HttpAgent` of `@ag-ui/client`, and for every other client of the AG-UI protocol.
 *
 * Each message of a user is one run of the kernel. When it waits for a person, the run of the protocol ends with its
 * questions as interrupts, and the next run of the protocol answers them. Earlier messages are read from the run that
 * answered last, not from the page.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Json, JsonObject } from "../kit/json.ts"
import { isRest } from "../RunEvent.ts"
import type { RunEvent } from "../RunEvent.ts"
import type { Caller } from "./Access.ts"
import type { HttpProblem } from "./HttpProblem.ts"
import type { AgEvent } from "./internal/agEvent.ts"
import { AgFold, broken } from "./internal/agFold.ts"
import { eventsOf } from "./internal/agFollow.ts"
import { AgRequest, answer, type Answering } from "./internal/agRequest.ts"
import * as Thread from "./internal/agThread.ts"
import * as Routes from "./CallerRoute.ts"
import * as Conversations from "./internal/conversations.ts"
import * as Sse from "./internal/sse.ts"
import type { CallerRuns, ServedRuns } from "./ServedRuns.ts"

/**
 * Options of the route.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The path of the route; its address is the `url` of the client. Default: `/agui`. */
  readonly path?: `/${string}` | undefined
  /** The agent that answers, unless `forwardedProps.agent` names one. Default: the only agent of the server. */
  readonly agent?: string | undefined
  /**
   * Returns the state that a page sees, from the encoded context of its run. Default: pages see no state, since a
   * context may hold data of the application.
   */
  readonly state?: ((context: JsonObject, caller: Caller) => JsonObject) | undefined
  /** Returns the address of a stored medium for the page. Default: the route of `HttpKernel` at `/runs`. */
  readonly mediaUrl?: ((runId: string, mediaId: string) => string) | undefined
}

/**
 * Adds `POST path`, which answers the last message or continues with the answers in `resume`. A request with neither
 * opens the thread again: it responds with a snapshot of its messages and the last run from its beginning.
 *
 * - Turns are steps; text, reasoning and calls are streamed. Called agents are subagents, to which their own work is
 *   attributed; plans and tasks are activities; files, sources and progress are custom events.
 * - A call that waits for a person is an interrupt, and the answer is `{ approved, reason?, input?, values? }`, or a
 *   text: `yes`, `no`, or the value of a form with one text.
 * - The state of a page may be any JSON. With `HttpKernel.layer({ context })` an object that is not empty is the context
 *   of a new run; other servers leave it to the page. With `state`, a snapshot and its changes at the end of each turn
 *   and of the run are sent.
 * - A page that leaves does not stop the run, unless its `forwardedProps` hold `onLeave: "cancel"`.
 * - A tool of the page that is an external skill of the agent (`Skill.external`) is run by the page, whose next request
 *   has its result as a tool message. Other tools and the `context` of the page are not passed to the agent.
 *
 * @example
 * const Routes = AgUi.layer().pipe(Layer.provideMerge(HttpKernel.layer({ agents: [librarian] })))
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter | ServedRuns> =>
  Layer.effectDiscard(
    Routes.add("POST", options.path ?? "/agui", (runs) =>
      Effect.gen(function* () {
        const request = yield* Routes.body(AgRequest)
        // A refused request starts nothing.
        yield* runs.place
        const answering = yield* answer(runs, options.agent, request)
        const bytes = Sse.alive(Stream.encodeText(yield* framesOf(runs, options, request, answering)))
        return Sse.response(
          request.forwardedProps?.onLeave === "cancel"
            ? Stream.onExit(bytes, (exit) => Conversations.leave(runs, answering.runId, exit))
            : bytes
        )
      })
    )
  )

/** Returns the server-sent events of one run of the protocol. */
const framesOf = Effect.fnUntraced(function* (
  runs: CallerRuns,
  { mediaUrl = Conversations.mediaUrl, state }: Options,
  request: AgRequest,
  { after, isReopened, runId: of }: Answering
): Effect.fn.Return<Stream.Stream<string>, HttpProblem> {
  const { runId, threadId } = request
  const messages = isReopened ? yield* Thread.messagesOf(runs, threadId, mediaUrl) : request.messages
  const shown: Effect.Effect<Json | undefined, HttpProblem> =
    state === undefined ? Effect.undefined : Effect.map(runs.state(of), ({ context }) => state(context, runs.caller))
  return Stream.suspend(() => {
    const tools = new Set((request.tools ?? []).map(({ name }) => name))
    const fold = new AgFold({
      threadId,
      runId,
      of,
      after,
      messages,
      isReopened,
      tools,
      urlOf: mediaUrl
    })
    const opened = Stream.fromEffect(Effect.map(shown, (state) => fold.open(state)))
    const folded = eventsOf(
      runs,
      fold,
      state === undefined
        ? undefined
        : (event) =>
            changesState(event) && fold.isNew(event)
              ? Effect.map(shown, (state) => [...fold.state(state), ...fold.push(event)])
              : Effect.sync(() => fold.push(event))
    )
    return opened.pipe(
      Stream.concat(folded),
      Stream.concat(Stream.sync(() => fold.finish())),
      Stream.catch(() => Stream.make([broken])),
      Stream.filter((made) => made.length > 0),
      Stream.map((made) => made.reduce(framed, ""))
    )
  })
})

/** Returns true for an event after which the state of the page is updated. */
const changesState = (event: RunEvent): boolean => event.type === "turn_completed" || isRest(event)

const framed = (text: string, event: AgEvent): string => text + Sse.dataOf(event)

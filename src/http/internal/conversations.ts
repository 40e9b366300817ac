/**
 * Runs of conversations: each message of a user is one run, whose name begins with the id of its conversation.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { Json, JsonObject } from "../../kit/json.ts"
import * as EmbeddedMedia from "../../store-kit/EmbeddedMedia.ts"
import type { Message } from "../../Message.ts"
import * as RunState from "../../RunState.ts"
import { Conflict, type HttpProblem, NotFound } from "../HttpProblem.ts"
import type { Head, Start } from "../RunBodies.ts"
import type { CallerRuns } from "../ServedRuns.ts"

/** The answering run, and the revision up to which the page has it. */
export interface Answering {
  readonly runId: string
  readonly after: number
}

/** A decision about a call. */
export interface Decision {
  readonly callId: string
  readonly approved: boolean
  readonly reason?: string
  readonly input?: Json
  readonly values?: JsonObject
  readonly dismissed?: boolean
}

/** Returns the name of a run in a conversation. */
export const nameOf = (id: string, name: string): string => `${id}.${name}`

/** Returns the default address of a stored medium: that of `HttpKernel` at `/runs`. */
export const mediaUrl = (runId: string, mediaId: string): string =>
  `/runs/${encodeURIComponent(runId)}/media/${mediaId}`

/** Returns true if a run belongs to a conversation of the caller. */
export const isOf = (runs: CallerRuns, id: string, runId: string): boolean =>
  runs.idOf(runId).startsWith(runs.idOf(nameOf(id, "")))

/** Starts a run, or returns the one that was already started. */
export const begin = (
  runs: CallerRuns,
  name: string,
  {
    agent,
    context,
    ...request
  }: Omit<Start, "agent" | "context" | "runId"> & {
    readonly agent?: string | undefined
    readonly context?: Start["context"] | undefined
  }
): Effect.Effect<Answering, HttpProblem> => {
  const runId = runs.idOf(name)
  const begun = runs.start({
    ...request,
    runId,
    ...(agent === undefined ? {} : { agent }),
    ...(context === undefined ? {} : { context })
  })
  return begun.pipe(
    Effect.catchIf(
      (problem) => problem._tag === "Conflict" && problem.reason === "exists",
      () => Effect.succeed(runId)
    ),
    Effect.as({ runId, after: 0 })
  )
}

/** Records those decisions for which a run of the conversation still waits. */
export const decide = Effect.fnUntraced(function* (
  runs: CallerRuns,
  id: string,
  runId: string,
  decisions: ReadonlyArray<Decision>
): Effect.fn.Return<Answering, HttpProblem> {
  if (!isOf(runs, id, runId)) return yield* new Conflict({ reason: "moved", id: runId })
  const { revision } = yield* runs.head(runId)
  const open = new Set((yield* runs.questions(runId)).map(({ callId }) => callId))
  const answers = decisions.filter(({ callId }) => open.has(callId))
  if (answers.length > 0) yield* runs.answer(runId, { answers })
  return { runId, after: revision }
})

/** Returns the last run of a conversation. */
export const last = (runs: CallerRuns, id: string): Effect.Effect<Head | undefined, HttpProblem> =>
  Effect.map(runs.list({ limit: 1, prefix: nameOf(id, "") }), ({ runs: [head] }) => head)

/** Cancels the last run of a conversation. */
export const stop = (runs: CallerRuns, id: string): Effect.Effect<void, HttpProblem> =>
  Effect.flatMap(last(runs, id), (head) =>
    head === undefined ? Effect.fail(new NotFound({ what: "run", id })) : runs.cancel(head.runId, "stopped")
  )

/** Cancels a run whose page has left. */
export const leave = (runs: CallerRuns, runId: string, exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> =>
  Exit.hasInterrupts(exit) ? Effect.ignore(runs.cancel(runId, "the page left")) : Effect.void

/**
 * Returns the messages of a run and of the conversation before it, with their media. Returns none for a run that cannot
 * be read.
 */
export const messagesOf = Effect.fnUntraced(function* (
  runs: CallerRuns,
  runId: string
): Effect.fn.Return<ReadonlyArray<Message> | undefined, HttpProblem, Scope.Scope> {
  const found = yield* Effect.option(runs.state(runId))
  if (found._tag === "None") return undefined
  const state = found.value
  const messages = state.input.concat(state.turns.flatMap(RunState.messagesOf))
  const store = yield* runs.mediaOf(state.rootRunId)
  return yield* Effect.forEach(messages, (message) => EmbeddedMedia.ofMessage(message, store))
}, Effect.scoped)

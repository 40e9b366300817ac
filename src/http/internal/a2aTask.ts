/**
 * Runs as tasks of the A2A protocol.
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Content, MediaContent } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { Json, JsonObject } from "../../kit/json.ts"
import * as Messages from "../../Message.ts"
import { isRest, type RunEvent } from "../../RunEvent.ts"
import type { ErrorInfo, Question } from "../../RunModel.ts"
import * as RunState from "../../RunState.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import type { Head } from "../RunBodies.ts"
import type { CallerRuns } from "../ServedRuns.ts"
import * as Conversations from "./conversations.ts"
import { outward } from "./shownEvents.ts"

type Source = Contents.Source

/** The ids of a task and of its conversation. */
export interface TaskIds {
  readonly taskId: string
  readonly contextId: string
}

/** Returns the task ids of a run of the caller. */
export const idsOf = (runs: CallerRuns, runId: string): TaskIds => {
  const { conversation } = Conversations.idsIn(runId.slice(runs.idOf("").length))
  return { taskId: runId, contextId: conversation }
}

/** Creates the status of a task. `at` is in milliseconds since the epoch. */
export const statusOf = (state: string, at: number, message?: JsonObject): JsonObject => ({
  state: `TASK_STATE_${state}`,
  timestamp: new Date(at).toISOString(),
  ...(message === undefined ? {} : { message })
})

/** Creates a message of the agent about its task. */
export const messageOf = ({ contextId, taskId }: TaskIds, at: number, parts: ReadonlyArray<Json>): JsonObject => ({
  messageId: `${taskId}:${at}`,
  contextId,
  taskId,
  role: "ROLE_AGENT",
  parts
})

/** Returns the address of a stored medium of a run. */
export type UrlOf = (runId: string, mediaId: string) => string

/** Creates the artifact of the file with this number. */
export const fileOf = (number: number, file: JsonObject): JsonObject => ({
  artifactId: `file-${number}`,
  name: `file-${number}`,
  parts: [file]
})

/** Returns a medium as a part, or undefined if it has no address. */
const filePartOf = (
  { fileId, mediaType, url }: MediaContent,
  urlOf: (mediaId: string) => string
): JsonObject | undefined => {
  const address = url ?? (fileId === undefined ? undefined : urlOf(fileId))
  return address === undefined ? undefined : { url: address, mediaType: mediaType ?? "application/octet-stream" }
}

/** Returns the files that a task made: those of its replies and of the results of its calls. */
const filesOf = (state: RunState.RunState, urlOf: (mediaId: string) => string): ReadonlyArray<JsonObject> =>
  state.turns
    .concat(state.currentTurn ?? [])
    .flatMap(({ completed, message, outcome }) => [
      ...(outcome?.type === "corrective" ? [] : (message?.content ?? [])),
      ...completed.flatMap(({ kind, output = [] }) => (kind === "task" ? [] : output))
    ])
    .flatMap((content) => (content.type === "tool_result" ? content.content : [content]))
    .filter(Contents.isMedia)
    // A document on the web is a source.
    .filter(({ type, url }) => type !== "document" || url === undefined)
    .map((medium) => filePartOf(medium, urlOf))
    .filter((file) => file !== undefined)
    .map((file, index) => fileOf(index + 1, file))

/** Creates an artifact with the answer of a task, or a piece of it. The sources of a whole answer are data behind it. */
export const artifactOf = (text: string, sources: ReadonlyArray<Source> = []): JsonObject => ({
  artifactId: "answer",
  name: "answer",
  parts: [...(text === "" ? [] : [{ text }]), ...(sources.length === 0 ? [] : [{ data: { sources: shown(sources) } }])]
})

/** Returns sources as JSON, each once. */
const shown = (sources: ReadonlyArray<Source>): ReadonlyArray<JsonObject> => {
  const known = new Map(
    sources.map(({ quote, title, url }) => {
      const source = { ...(url && { url }), ...(title && { title }), ...(quote && { quote }) }
      return [JSON.stringify(source), source]
    })
  )
  return [...known.values()]
}

/** Returns the parts of a question: a text for people, and the call for programs, which answer it by its `callId`. */
const asking = (questions: ReadonlyArray<Question>, reason: string): ReadonlyArray<Json> => [
  { text: questions.length === 0 ? reason : questions.map((question) => question.reason).join("\n") },
  ...questions.map(({ asking, callId, input, name, reason }) => ({
    data: { callId, name, input, reason, ...(asking === undefined ? {} : { asking: { ...asking } }) }
  }))
]

/** Creates the status of a waiting task. One that waits for a time alone asks nobody, and continues by itself. */
export const waiting = (ids: TaskIds, at: number, questions: ReadonlyArray<Question>, reason: string): JsonObject =>
  questions.length === 0 && reason === "approval_required"
    ? statusOf("WORKING", at)
    : statusOf("INPUT_REQUIRED", at, messageOf(ids, at, asking(questions, reason)))

/** Creates the status of a failed task. */
export const failure = (ids: TaskIds, at: number, { message }: ErrorInfo): JsonObject =>
  statusOf("FAILED", at, messageOf(ids, at, [{ text: message }]))

/** Returns true if a task has ended. */
export const isOver = ({ status }: { readonly status: Pick<Head["status"], "type"> }): boolean => over.has(status.type)

const over: ReadonlySet<string> = new Set(["completed", "no_answer", "failed", "cancelled"])

/** Emits the events of a task, also while it waits for a person, until it is over. */
export const eventsOf = (runs: CallerRuns, runId: string): Stream.Stream<RunEvent, HttpProblem> =>
  Stream.takeUntil(runs.follow(runId, { until: "end" }), isEnd)

/** Returns true for an event that ends its task. */
export const isEnd = ({ type }: RunEvent): boolean => isRest({ type }) && type !== "paused"

/** The parts of a task to send besides its status. */
interface Told {
  /** The number of its last messages. Default: all. */
  readonly historyLength?: number | undefined
  readonly includeArtifacts?: boolean | undefined
}

/** Returns a task in its current state. */
export const taskOf = (
  runs: CallerRuns,
  id: string,
  urlOf: UrlOf,
  { historyLength, includeArtifacts = true }: Told = {}
): Effect.Effect<JsonObject, HttpProblem> =>
  Effect.flatMap(runs.summary(id), (head) => ofHead(runs, head, urlOf, { historyLength, includeArtifacts }))

/** Returns the task of a head in its current state. */
export const ofHead = Effect.fnUntraced(function* (
  runs: CallerRuns,
  head: Head,
  urlOf: UrlOf,
  { historyLength = Infinity, includeArtifacts = false }: Told
): Effect.fn.Return<JsonObject, HttpProblem> {
  const ids = idsOf(runs, head.runId)
  const url = (mediaId: string) => urlOf(head.runId, mediaId)
  const state = includeArtifacts || historyLength > 0 ? yield* runs.state(head.runId) : undefined
  const isAnswered = head.status.type === "completed" && state !== undefined
  const answer = isAnswered ? RunState.answer(state) : undefined
  const made = state === undefined ? [] : filesOf(state, url)
  return {
    id: ids.taskId,
    contextId: ids.contextId,
    status: yield* standing(runs, ids, head),
    ...(includeArtifacts
      ? { artifacts: answer === undefined ? made : [artifactOf(answer, sourcesIn(state)), ...made] }
      : {}),
    ...(state !== undefined && historyLength > 0
      ? { history: historyOf(runs, ids, state, url).slice(-historyLength) }
      : {})
  }
})

/** Returns the sources that the replies of a run name. */
const sourcesIn = (state: RunState.RunState | undefined): ReadonlyArray<Source> =>
  Messages.sources((state?.turns ?? []).flatMap(({ message }) => message ?? []))

/** Returns the messages that the client sent to a task: the first one, and those sent while it was in progress. */
const historyOf = (
  runs: CallerRuns,
  ids: TaskIds,
  state: RunState.RunState,
  urlOf: (mediaId: string) => string
): ReadonlyArray<JsonObject> => {
  const name = Conversations.idsIn(ids.taskId.slice(runs.idOf("").length)).message
  const sent = state.input.slice(state.history).filter(({ role }) => role === "user")
  const steering = state.turns.concat(state.currentTurn ?? []).flatMap((turn) => turn.steering ?? [])
  return [...sent, ...steering].map(({ content }, index) => ({
    messageId: index === 0 && name !== "" ? name : `${ids.taskId}:${index}`,
    contextId: ids.contextId,
    taskId: ids.taskId,
    role: "ROLE_USER",
    parts: content.map((part) => partOf(part, urlOf))
  }))
}

const partOf = (content: Content, urlOf: (mediaId: string) => string): JsonObject =>
  Contents.isMedia(content)
    ? (filePartOf(content, urlOf) ?? { text: Contents.placeholder(content) })
    : { text: Contents.toText(content) }

const standing = (
  runs: CallerRuns,
  ids: TaskIds,
  { runId, status, updatedAt: at }: Head
): Effect.Effect<JsonObject, HttpProblem> => {
  switch (status.type) {
    case "queued":
      return Effect.succeed(statusOf("SUBMITTED", at))
    // A worker continues an interrupted run.
    case "running":
    case "interrupted":
      return Effect.succeed(statusOf("WORKING", at))
    case "waiting":
      return Effect.map(runs.questions(runId), (questions) => waiting(ids, at, questions, status.reason ?? ""))
    case "completed":
      return Effect.succeed(statusOf("COMPLETED", at))
    case "cancelled":
      return Effect.succeed(statusOf("CANCELED", at))
    case "no_answer":
    case "failed":
      return Effect.succeed(failure(ids, at, outward(status.error ?? unknown)))
  }
}

const unknown: ErrorInfo = { tag: "Unknown", message: "" }

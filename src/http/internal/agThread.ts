/**
 * The messages of a thread, read from its runs, for a page that opens it again. Each message of a user is one run, and
 * runs of messages that were edited later are left out.
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as ChatHistory from "../../ChatHistory.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { JsonObject } from "../../kit/json.ts"
import type { RunState } from "../../RunState.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import type { Head } from "../RunBodies.ts"
import type { CallerRuns } from "../ServedRuns.ts"
import { AgFold } from "./agFold.ts"
import { eventsOf } from "./agFollow.ts"
import * as Conversations from "./conversations.ts"

/** Returns the address of a stored medium of a run. */
type UrlOf = (runId: string, mediaId: string) => string

/** Returns the messages of a thread up to the message that started its last run. */
export const messagesOf = Effect.fnUntraced(function* (
  runs: CallerRuns,
  threadId: string,
  urlOf: UrlOf
): Effect.fn.Return<ReadonlyArray<JsonObject>, HttpProblem> {
  const [last, ...earlier] = (yield* runs.list({ prefix: Conversations.nameOf(threadId), limit: most })).runs
  if (last === undefined) return []
  let state = yield* runs.state(last.runId)
  let messages: ReadonlyArray<JsonObject> = [asked(state, urlOf)]
  for (const head of earlier.filter(isAtRest)) {
    if (state.history === 0) break
    const before = yield* runs.state(head.runId)
    // A message that was edited began again from an earlier one.
    if (ChatHistory.ofState(before).length !== state.history) continue
    messages = [asked(before, urlOf), ...(yield* answered(runs, threadId, head.runId, urlOf)), ...messages]
    state = before
  }
  return messages
})

/** The number of runs that are read for one thread. */
const most = 100

const isAtRest = ({ status: { type } }: Head): boolean =>
  type === "completed" || type === "failed" || type === "cancelled" || type === "waiting"

/** Returns the messages that a run made, as its events made them in the page. */
const answered = (
  runs: CallerRuns,
  threadId: string,
  runId: string,
  urlOf: UrlOf
): Effect.Effect<ReadonlyArray<JsonObject>, HttpProblem> =>
  Effect.suspend(() => {
    const whole = { of: runId, after: 0, messages: [], isReopened: false, tools: new Set<string>() }
    const fold = new AgFold({ threadId, runId, ...whole, urlOf })
    return Effect.as(Stream.runDrain(eventsOf(runs, fold)), fold.messages)
  })

/** Returns the message of the user that started a run. */
const asked = ({ input, runId }: RunState, urlOf: UrlOf): JsonObject => {
  const content = input.at(-1)?.content ?? []
  const [first] = content
  const isText = content.length === 1 && first?.type === "text"
  return {
    id: `${runId}:input`,
    role: "user",
    content: isText ? first.text : content.map((part) => partOf(part, (id) => urlOf(runId, id)))
  }
}

const partOf = (content: Content, urlOf: (mediaId: string) => string): JsonObject => {
  if (!Contents.isMedia(content)) return { type: "text", text: Contents.toText(content) }
  const { fileId, mediaType, type, url } = content
  const value = url ?? (fileId === undefined ? undefined : urlOf(fileId))
  return value === undefined
    ? { type: "text", text: Contents.placeholder(content) }
    : { type, source: { type: "url", value, ...(mediaType === undefined ? {} : { mimeType: mediaType }) } }
}

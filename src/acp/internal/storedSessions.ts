/**
 * Sessions as runs of a store: prompt `n` of a session is the run `<session>-<n>`, which keeps the folder of the session
 * in its context. Nothing else is stored, so a session without a prompt is not kept.
 */

import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import { isJsonObject, type JsonObject } from "../../kit/json.ts"
import { randomId } from "../../kit/randomId.ts"
import { flat, shorten } from "../../kit/text.ts"
import type { StoreError } from "../../KernelError.ts"
import * as Messages from "../../Message.ts"
import type { RunState } from "../../RunState.ts"
import { RunStore, type RunHead } from "../../RunStore.ts"
import { beginningOf } from "../../store-kit/StoredRuns.ts"

const prefix = "acp-"

/** Creates the id of a new session. */
export const newId: Effect.Effect<string> = Effect.map(Random.Random, (random) => `${prefix}${randomId(random, 4)}`)

/** Returns the context of a run that keeps the folder of its session. */
export const contextOf = (cwd: string): JsonObject => ({ acp: { cwd } })

const cwdOf = ({ context }: Pick<RunState, "context">): string => {
  const kept = context["acp"]
  const cwd = isJsonObject(kept) ? kept["cwd"] : undefined
  return typeof cwd === "string" ? cwd : "/"
}

/** Returns the id of the run for a session's next prompt. */
export const nextRunId = (sessionId: string, last: Pick<RunHead, "runId"> | undefined): string =>
  `${sessionId}-${last === undefined ? 1 : Number(last.runId.slice(sessionId.length + 1)) + 1}`

/** Returns the runs of a session, newest first. */
export const runsOf = (sessionId: string, limit: number): Effect.Effect<ReadonlyArray<RunHead>, StoreError, RunStore> =>
  RunStore.use((store) => store.list({ prefix: `${sessionId}-`, roots: true, limit }))

/** A session as it is listed. */
export interface Listed {
  readonly sessionId: string
  readonly cwd: string
  readonly title: string
  readonly updatedAt: string
}

/** Sessions of one answer. */
const pageSize = 50

/** Runs that are read to find sessions. */
const maxRuns = 10_000

/** Returns sessions by their last prompt, newest first, and where the next ones begin. */
export const list = Effect.fnUntraced(function* (
  from: number,
  cwd: string | undefined
): Effect.fn.Return<
  { readonly sessions: ReadonlyArray<Listed>; readonly next: number | undefined },
  StoreError,
  RunStore
> {
  const store = yield* RunStore
  const heads = yield* store.list({ prefix, roots: true, limit: maxRuns })
  const latest = new Map<string, RunHead>()
  for (const head of heads) {
    const sessionId = head.runId.slice(0, head.runId.lastIndexOf("-"))
    if (!latest.has(sessionId)) latest.set(sessionId, head)
  }
  const sessions: Array<Listed> = []
  let at = from
  for (const [sessionId, { updatedAt }] of [...latest].slice(from)) {
    if (sessions.length === pageSize) return { sessions, next: at }
    at++
    const first = yield* beginningOf(store, `${sessionId}-1`)
    if (first === undefined || (cwd !== undefined && cwdOf(first) !== cwd)) continue
    const title = shorten(flat(first.input.map(Messages.text).at(-1) ?? "").trim(), 100)
    sessions.push({ sessionId, cwd: cwdOf(first), title, updatedAt: new Date(updatedAt).toISOString() })
  }
  return { sessions, next: undefined }
})

/** Returns the stored events of a run. */
export const eventsOf = (runId: string) =>
  Stream.unwrap(RunStore.useSync((store) => store.read(runId))).pipe(
    Stream.flatMap(({ events }) => Stream.fromIterable(events))
  )

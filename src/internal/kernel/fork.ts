/**
 * Creates a new run from a prefix of another run's records.
 *
 * The records up to a revision are copied and edited. State is their fold, so an edit affects everything after it. Ids
 * that contain the id of the run get the id of the fork, so that calls and tasks of the two runs differ. Events keep
 * their times. Records get the time of the fork, so that no worker considers it abandoned.
 */

import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Stream from "effect/Stream"
import type { ForkError } from "../../KernelError.ts"
import { RunNotFound } from "../../KernelError.ts"
import type { PhaseEvent } from "../../RunEvent.ts"
import { delta, mapEvent } from "../state/recordSchema.ts"
import type { RunRecord } from "../../RunRecord.ts"
import type * as RunStore from "../../RunStore.ts"
import { ids, plainContent } from "../words/messageSchema.ts"
import { patient } from "../../store-kit/internal/storeGuard.ts"
import { lazily, mapped } from "../../kit/schemas.ts"
import { foldFrom } from "../../store-kit/StoreRules.ts"

/** The revision to fork at, and how the fork differs. */
export interface Fork {
  /** The last revision that the fork shares with the run, at most the run's last one. */
  readonly revision: number
  readonly runId: string
  /** Edits a record for the fork. Its ids are already those of the fork. */
  readonly edit?: ((record: RunRecord) => RunRecord) | undefined
}

/** Creates a fork, atomically. */
export const fork = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  from: string,
  { edit = identity, revision, runId }: Fork
): Effect.fn.Return<void, ForkError> {
  // Later records are not read, so a damaged one does not matter.
  const common = Stream.takeUntil(store.read(from), (record) => record.revision >= revision)
  const records = yield* Stream.runCollect(common)
  const last = records.at(-1)
  // A journal without its first record has no state.
  if (last === undefined || records[0]?.events[0]?.type !== "run_started")
    return yield* new RunNotFound({ runId: from })
  const createdAt = yield* Clock.currentTimeMillis
  const copies = Arr.map(records, (record, index) => ({
    ...edit(rename(record, last, runId)),
    runId,
    revision: index + 1,
    createdAt
  }))
  const state = yield* foldFrom(undefined, copies)
  if (!Arr.isArrayNonEmpty(copies) || state === undefined) return
  // Appending a long journal may take longer than `appendTimeout`.
  yield* patient(store, { appendTimeout: Duration.infinity }).append(copies, state)
})

/** Turns an event into one of the fork, which is always a root run. */
const asRootEvent = (event: PhaseEvent, runId: string, from: Pick<RunRecord, "runId" | "revision">): PhaseEvent => {
  const scope = { runId, rootRunId: runId, depth: 0, taskId: undefined }
  return event.type === "run_started"
    ? { ...event, ...scope, parentRunId: undefined, forkedFrom: { runId: from.runId, revision: from.revision } }
    : { ...event, ...scope }
}

// ---------------------------------------------------------------- ids

type Rename = (id: string) => string

/** Gives a record the ids of the fork. The schemas say which values are ids of the run. */
const rename = (record: RunRecord, from: RunRecord, runId: string): RunRecord => {
  const own: Rename = (id) => (id.startsWith(`${from.runId}:`) ? runId + id.slice(from.runId.length) : id)
  return {
    ...record,
    runId,
    delta: renameDelta()(record.delta, own),
    events: record.events.map((event) => asRootEvent(renameEvent(event, own), runId, from))
  }
}

const renameEvent = mapEvent<PhaseEvent, Rename>(ids)

const renameDelta = lazily(() => mapped(delta(plainContent()), ids))

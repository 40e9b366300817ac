/** Data of a store for the page, as plain JSON. */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { labelsIn } from "../../Caller.ts"
import { plain, type Json } from "../../kit/json.ts"
import * as Kernel from "../../Kernel.ts"
import { foldFrom, placeIn, placeText } from "../../store-kit/StoreRules.ts"
import { RunNotFound, type StoreError } from "../../KernelError.ts"
import type { OpenQuestion, RunState } from "../../RunState.ts"
import { type RunFilter, type RunHead, RunStore, type RunStoreShape, statusWords } from "../../RunStore.ts"
import type { Facts } from "./runFacts.ts"

/** A run in a list. */
export interface RunLine extends Omit<RunHead, "lease">, Omit<Facts, "words"> {}

/** A page of runs. `next` is absent on the last one. */
export interface RunPage {
  readonly runs: ReadonlyArray<RunLine>
  readonly next?: string
}

/** Selects runs. Statuses are separated by commas. */
export interface ListQuery {
  readonly status?: string
  readonly agent?: string
  readonly caller?: string
  /** The model of the last reply. */
  readonly model?: string
  readonly tag?: string
  readonly tenant?: string
  /** Labels as `name=text`, all of which a run must have. */
  readonly label?: string | ReadonlyArray<string>
  readonly search?: string
  readonly rootRunId?: string
  readonly order?: "newest" | "oldest"
  /** `next` of the previous page. */
  readonly after?: string
}

const pageSize = 100

/** Returns a page of runs, the newest first unless asked otherwise. */
export const pageOf = Effect.fnUntraced(function* (
  store: RunStoreShape,
  factsOf: (head: RunHead) => Effect.Effect<Facts>,
  { after, agent, caller, label = [], model, order, rootRunId, search, status, tag, tenant }: ListQuery
): Effect.fn.Return<RunPage, StoreError> {
  const labels = labelsIn(Arr.ensure(label))
  // A label that is not complete yet, as while it is typed, selects no run.
  if (labels === undefined) return { runs: [] }
  const filter: RunFilter = {
    agent,
    caller,
    model,
    tag,
    tenant,
    labels,
    search,
    order,
    limit: pageSize,
    after: after === undefined ? undefined : placeIn(after),
    status: status === undefined ? undefined : statusWords.filter((type) => status.split(",").includes(type)),
    ...(rootRunId === undefined ? { roots: true } : { rootRunId })
  }
  const heads = yield* store.list(filter)
  const runs = yield* Effect.forEach(
    heads,
    (head) =>
      Effect.map(factsOf(head), ({ costUsd, errors, title, tokens }) =>
        lineOf(head, { costUsd, errors, title, tokens })
      ),
    { concurrency: 8 }
  )
  const last = runs.at(-1)
  return {
    runs,
    ...(runs.length === pageSize && last !== undefined ? { next: placeText(last) } : {})
  }
})

const lineOf = ({ lease: _lease, ...head }: RunHead, facts: Omit<Facts, "words">): RunLine => ({ ...head, ...facts })

/** A part of a journal. `damage` is the reason why the following records cannot be read. */
export interface Records {
  readonly records: ReadonlyArray<Json>
  readonly revision: number
  readonly damage?: string
}

/** Returns up to `limit` records after a revision, and the revision of the run. */
export const recordsAfter = Effect.fnUntraced(function* (
  store: RunStoreShape,
  runId: string,
  after: number,
  limit: number
): Effect.fn.Return<Records, StoreError | RunNotFound> {
  const head = Option.getOrUndefined(yield* store.head(runId))
  if (head === undefined) return yield* new RunNotFound({ runId })
  const records: Array<Json> = []
  const damage = yield* Stream.runForEach(Stream.take(store.read(runId, after), limit), (record) =>
    Effect.sync(() => void records.push(plain(record)))
  ).pipe(
    Effect.as(undefined),
    Effect.catchIf(
      ({ reason }) => reason === "corrupt" || reason === "format",
      ({ message }) => Effect.succeed(message)
    )
  )
  return { records, revision: head.revision, ...(damage === undefined ? {} : { damage }) }
})

/** Returns the state of a run at a revision, or its last one. */
export const stateAt = Effect.fnUntraced(function* (
  store: RunStoreShape,
  runId: string,
  revision: number
): Effect.fn.Return<RunState, StoreError | RunNotFound> {
  // Later records are not read, so a damaged one does not matter.
  const records = Stream.takeUntil(store.read(runId), (record) => record.revision >= revision)
  const state = yield* foldFrom(undefined, yield* Stream.runCollect(records))
  return state ?? (yield* new RunNotFound({ runId }))
})

/** An open question, with the run that receives the answer. */
export interface WaitingQuestion extends OpenQuestion {
  readonly rootRunId: string
  readonly revision: number
  /** When the run started, in milliseconds since the epoch. */
  readonly startedAt: number
  readonly since: number
  /** The first words of what the user asked, as they were sent. */
  readonly asked: string
  /** The title of the run that the user started. */
  readonly title: string
}

/** Returns the runs that wait for a person, the oldest first. */
export const waitingIn = (store: RunStoreShape): Effect.Effect<ReadonlyArray<RunHead>, StoreError> =>
  store.list({ status: ["waiting"], roots: true, order: "oldest", limit: 1_000 })

/** Returns the open questions of some runs, or of all, the oldest first. */
export const questions = Effect.fnUntraced(function* (
  store: RunStoreShape,
  factsOf: (head: RunHead) => Effect.Effect<Facts>,
  runIds?: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<WaitingQuestion>, StoreError> {
  const waiting = runIds === undefined ? yield* waitingIn(store) : yield* headsOf(store, runIds)
  const found = yield* Effect.forEach(
    waiting,
    (head) => {
      const { createdAt, revision, runId, updatedAt } = head
      return Effect.all([Effect.provideService(Kernel.questions(runId), RunStore, store), factsOf(head)]).pipe(
        Effect.map(([list, { title, words }]) =>
          list.map((one) => ({
            ...one,
            rootRunId: runId,
            revision,
            startedAt: createdAt,
            since: updatedAt,
            asked: words,
            title
          }))
        ),
        Effect.catchTag("RunNotFound", () => Effect.succeed([]))
      )
    },
    { concurrency: 8 }
  )
  return found.flat()
})

/** Returns the heads of the runs among these that wait. */
const headsOf = (store: RunStoreShape, runIds: ReadonlyArray<string>) =>
  Effect.map(Effect.forEach(runIds, store.head, { concurrency: 8 }), (heads) =>
    heads.flatMap(Option.toArray).filter(({ status }) => status.type === "waiting")
  )

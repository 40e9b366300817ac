/**
 * Runs as files that a person can read.
 *
 * `<id>.jsonl` is the journal, a record a line, synced at every commit;
 * `<id>.json` is the head, replaced as a whole and made again when it is behind
 * (DR-28). Several processes may use one directory: a revision is taken with a
 * link, which succeeds once (DR-6). Ids become safe names (S-16).
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Follow from "../internal/store/followJournal.ts"
import * as Marks from "../internal/store/marks.ts"
import { atMost } from "../internal/store/runHead.ts"
import * as Search from "../internal/store/runSearch.ts"
import * as RunCodec from "../RunCodec.ts"
import type { RunRecord, RunState } from "../RunState.ts"
import * as RunStore from "../RunStore.ts"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "../RunStore.ts"
import { failed } from "./internal/disk.ts"
import * as Head from "./internal/headFile.ts"
import * as Heads from "./internal/fileHeads.ts"
import * as Journals from "./internal/fileJournal.ts"
import * as Leases from "./internal/fileLease.ts"
import * as Log from "./internal/lineLog.ts"
import * as Name from "./internal/fileName.ts"

/**
 * How a store looks after those who follow a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** How often to look for what other processes committed. Default: half a second. */
  readonly pollInterval?: Duration.Input | undefined
}

/**
 * A store in a directory, which is made if it is not there. Its files are readable by their owner only.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  directory: string,
  options?: Options
): Effect.Effect<RunStore.RunStoreShape, StoreError, FileSystem.FileSystem> =>
  Effect.map(open(directory, options), ({ store }) => store)

const open = Effect.fnUntraced(function* (directory: string, options: Options = {}) {
  const files = yield* FileSystem.FileSystem
  yield* Effect.catch(files.makeDirectory(directory, { recursive: true, mode: 0o700 }), failed("open"))
  const codec = yield* RunCodec.fromContext
  const followers = Follow.make()
  const marks = Marks.make()
  const journals = Journals.make(files, directory, codec, marks)
  const heads = Heads.make(files, directory, journals.fold)
  const pathOf = (runId: string) => `${directory}/${Name.make(runId)}`

  // ---------------------------------------------------------------- reading

  const read = (runId: string, fromRevision = 0) =>
    Stream.suspend(() => {
      const next = journals.reader(runId, fromRevision)
      return Stream.paginate(undefined, () =>
        Effect.map(next, (records) => [records, records.length > 0 ? Option.some(undefined) : Option.none()])
      )
    })

  const tail = (runId: string, fromRevision = 0) =>
    Stream.suspend(() => {
      const next = journals.reader(runId, fromRevision)
      const interval = options.pollInterval ?? "500 millis"
      return followers.follow({ runId, from: fromRevision, page: () => next, interval })
    })

  // ---------------------------------------------------------------- writing

  /** What follows a commit. Neither the head nor a part is the truth, so what goes wrong with them is no failure of it. */
  const afterwards = Effect.fnUntraced(
    function* (state: RunState, place: Log.Place, bytes: number) {
      const { runId } = state
      yield* Head.write(files, pathOf(runId), RunStore.headOf(state), place.offset)
      followers.wake(runId)
      const mark = marks.due(state, bytes)
      if (mark === undefined) return
      yield* Head.writePart(files, pathOf(runId), state, mark, place)
      marks.written(state)
    },
    Effect.catch((error) => Effect.logDebug("a head or part of a run was not written", error))
  )

  const append = Effect.fnUntraced(function* (record: RunRecord, state: RunState) {
    const text = yield* Effect.fromResult(RunCodec.encodeRecord(record))
    const appended = yield* journals.log(Name.make(record.runId)).append(record.revision, text)
    if (appended._tag === "Newer") return yield* newer(appended.format)
    if (appended._tag === "Appended" && appended.place.seq === record.revision) {
      yield* afterwards(state, appended.place, text.length)
    }
    return appended
  })

  const create = Effect.fnUntraced(function* (record: RunRecord, state: RunState) {
    const refused = RunStore.notFirst(record)
    if (refused !== undefined) return yield* refused
    const appended = yield* append(record, state)
    if (appended._tag === "Taken") return yield* new RunExists({ runId: record.runId })
    marks.set(state, RunCodec.start)
  })

  const commit = Effect.fnUntraced(function* (record: RunRecord, state: RunState) {
    const { revision, runId } = record
    // A run begins with `create` alone.
    const isThere = revision > 1 || (yield* Log.sizeOf(files, `${pathOf(runId)}.jsonl`)) > 0
    const appended = isThere ? yield* append(record, state) : ({ _tag: "Taken", last: 0 } as const)
    if (appended._tag === "Taken") {
      return yield* new ConcurrentAppendError({ runId, expectedSeq: revision - 1, actualSeq: appended.last })
    }
  })

  const remove = Effect.fnUntraced(function* (runIds: ReadonlyArray<string>) {
    const names = new Set(runIds.map(Name.make))
    const theirs = (yield* files.readDirectory(directory)).filter((file) => names.has(Name.ofFile(file)))
    // The journal goes last: what is left of a removal that was cut short belongs to a run that is still there.
    const isJournal = (file: string) => (file.endsWith(".jsonl") ? 1 : 0)
    for (const file of theirs.sort((a, b) => isJournal(a) - isJournal(b))) {
      yield* files.remove(`${directory}/${file}`, { force: true })
    }
  })

  // ---------------------------------------------------------------- heads and leases

  const list = Effect.fnUntraced(function* (filter: RunStore.RunFilter = {}) {
    const found = (yield* heads.all).filter((head) => RunStore.matches(head, filter)).sort(RunStore.inOrder(filter))
    const wanted = Search.wanted(filter.search)
    const most = atMost(filter)
    if (wanted.length === 0) return found.slice(0, most)
    const answering: Array<RunStore.RunHead> = []
    for (const head of found) {
      if (answering.length === most) break
      const state = yield* Effect.catch(journals.load(head.runId), heads.leftOut(Name.make(head.runId)))
      if (state !== undefined && Option.isSome(state) && Search.mentions(state.value, wanted)) answering.push(head)
    }
    return answering
  })

  const store = RunStore.RunStore.of({
    create: (record, state) => Effect.catchTag(create(record, state), "PlatformError", failed("create")),
    commit: (record, state) => Effect.catchTag(commit(record, state), "PlatformError", failed("commit")),
    load: (runId) => Effect.catchTag(journals.load(runId), "PlatformError", failed("load")),
    head: (runId) =>
      heads
        .of(Name.make(runId), true)
        .pipe(Effect.map(Option.fromUndefinedOr), Effect.catchTag("PlatformError", failed("read"))),
    read,
    tail,
    list: (filter) => Effect.catchTag(list(filter), "PlatformError", failed("list")),
    acquire: (runId, lease, now) =>
      Effect.gen(function* () {
        if ((yield* Log.sizeOf(files, `${pathOf(runId)}.jsonl`)) === 0) return yield* new RunNotFound({ runId })
        const held = yield* Leases.acquire(files, pathOf(runId), lease, now)
        if (held !== undefined) return yield* new RunBusy({ runId, ...held })
      }).pipe(Effect.catchTag("PlatformError", failed("acquire"))),
    release: (runId, workerId) =>
      Effect.catchTag(Leases.release(files, pathOf(runId), workerId), "PlatformError", failed("release")),
    remove: (runIds) => Effect.catchTag(remove(runIds), "PlatformError", failed("remove"))
  })
  return { store, end: followers.end }
})

/**
 * Keeps runs in a directory.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  directory: string,
  options?: Options
): Layer.Layer<RunStore.RunStore, StoreError, FileSystem.FileSystem> =>
  Layer.effect(
    RunStore.RunStore,
    Effect.flatMap(open(directory, options), ({ end, store }) =>
      Effect.as(
        Effect.addFinalizer(() => end),
        store
      )
    )
  )

// ---------------------------------------------------------------- helpers

const newer = (format: number) =>
  Effect.fail(
    new StoreError({
      operation: "commit",
      reason: "format",
      detail: `format ${format} is newer than ${RunCodec.format}, the newest this version reads`
    })
  )

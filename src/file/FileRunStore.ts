/**
 * Keeps runs as files that a person can read.
 *
 * `<id>.jsonl` is the journal, one line for each append, synced to disk before the append succeeds. `<id>.json` is the
 * head, replaced as a whole and rebuilt when it is behind. Several processes may use one directory: the next revision
 * is claimed with a hard link, which only one of them can create. Ids are escaped to safe file names. Runs of one
 * conversation share their earlier messages in `.histories`, and `<id>.<chunk>.history` says which a run needs.
 *
 * @since 0.1.0
 */

import type * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Polling from "../store-kit/Polling.ts"
import { type OfferFolder, offerFolder } from "../store-kit/Offers.ts"
import { areStored, atMost, damaged, journalHeadOf, leaseOf, movedSince } from "../store-kit/StoreRules.ts"
import * as StoreSearch from "../store-kit/StoreSearch.ts"
import * as SharedHistory from "../store-kit/SharedHistory.ts"
import * as StateParts from "../store-kit/StateParts.ts"
import * as RunCodec from "../RunCodec.ts"
import type { RunRecord, RunState } from "../RunState.ts"
import * as RunStore from "../RunStore.ts"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "../RunStore.ts"
import { failed } from "./internal/disk.ts"
import * as FileClock from "./internal/fileClock.ts"
import * as Head from "./internal/headFile.ts"
import * as Heads from "./internal/fileHeads.ts"
import * as Histories from "./internal/fileHistories.ts"
import * as Journals from "./internal/fileJournal.ts"
import * as Leases from "./internal/fileLease.ts"
import * as Log from "./internal/lineLog.ts"
import * as Name from "./internal/fileName.ts"
import * as FileNotes from "./internal/fileNotes.ts"
import * as FileTags from "./internal/fileTags.ts"

/**
 * Options of a store in a directory.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Interval at which followers look for records of other processes. Default: half a second. */
  readonly pollInterval?: Duration.Input | undefined
}

/**
 * Creates a store in a directory, which is created if necessary. Only the owner of its files can read them.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  directory: string,
  options?: Options
): Effect.Effect<RunStore.RunStoreShape, StoreError, FileSystem.FileSystem> =>
  Effect.map(open(directory, options), ({ store }) => store)

/** The runs of a directory, and the followers of their journals in this process. */
interface Directory {
  readonly files: FileSystem.FileSystem
  readonly path: string
  readonly journals: ReturnType<typeof Journals.make>
  readonly histories: Histories.Histories
  readonly heads: ReturnType<typeof Heads.make>
  readonly marks: StateParts.Marks
  readonly followers: Polling.Followers
  readonly clock: FileClock.FileClock
  readonly cancellations: Polling.Cancellations
  readonly interval: Duration.Input
  readonly offers: OfferFolder
}

const open = Effect.fnUntraced(function* (path: string, options: Options = {}) {
  const files = yield* FileSystem.FileSystem
  yield* Effect.catch(files.makeDirectory(path, { recursive: true, mode: 0o700 }), failed("open"))
  const marks = StateParts.marks()
  const codec = yield* RunCodec.fromContext
  const histories = Histories.make(files, path, codec)
  const journals = Journals.make(files, path, codec, histories, marks)
  const clock = FileClock.make(files, path)
  const heads = Heads.make(files, path, journals.fold, clock)
  const followers = Polling.followers()
  const interval = options.pollInterval ?? "500 millis"
  const isCancelled = (runId: string) =>
    Effect.map(heads.of(Name.make(runId), false), (head) => head?.status.type === "cancelled")
  const cancellations = Polling.cancellations({ findCancelled: Effect.filter(isCancelled) })
  // No run has a file whose name begins with a dot.
  const offers = offerFolder(files, `${path}/.offers`)
  return storeOf({ files, path, journals, histories, heads, marks, followers, cancellations, clock, interval, offers })
})

const storeOf = (directory: Directory) => {
  const { cancellations, files, followers, heads, journals } = directory
  const store: RunStore.RunStoreShape = {
    append: (records, state) => Effect.catchTag(append(directory, records, state), "PlatformError", failed("append")),
    load: (runId) => Effect.catchTag(journals.load(runId), "PlatformError", failed("load")),
    head: (runId) =>
      heads
        .of(Name.make(runId), true)
        .pipe(Effect.map(Option.fromUndefinedOr), Effect.catchTag("PlatformError", failed("read"))),
    read: (runId, fromRevision) => read(directory, runId, fromRevision),
    tail: (runId, fromRevision) => tail(directory, runId, fromRevision),
    list: (filter) => Effect.catchTag(list(directory, filter), "PlatformError", failed("list")),
    acquire: (runId, claim) => Effect.catchTag(acquire(directory, runId, claim), "PlatformError", failed("acquire")),
    release: (runId, workerId) =>
      Effect.catchTag(Leases.release(files, fileOf(directory, runId), workerId), "PlatformError", failed("release")),
    cancelled: (runId) => cancellations.of(runId),
    offers: directory.offers.offers,
    notes: FileNotes.make(files, directory.path),
    tags: FileTags.make(files, directory.path),
    remove: (runIds) => Effect.catchTag(remove(directory, runIds), "PlatformError", failed("remove"))
  }
  return { store, end: followers.end }
}

/** Returns the path of the files of a run, without their extension. */
const fileOf = ({ path }: Directory, runId: string): string => `${path}/${Name.make(runId)}`

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

// ---------------------------------------------------------------- reading

const read = ({ journals }: Directory, runId: string, fromRevision = 0) =>
  Stream.suspend(() => {
    const next = journals.reader(runId, fromRevision)
    return Stream.paginate(undefined, () =>
      Effect.map(next, (records) => [records, records.length > 0 ? Option.some(undefined) : Option.none()])
    )
  })

const tail = ({ followers, interval, journals }: Directory, runId: string, fromRevision = 0) =>
  Stream.suspend(() => {
    const next = journals.reader(runId, fromRevision)
    return followers.follow({ runId, from: fromRevision, page: () => next, interval })
  })

const list = Effect.fnUntraced(function* ({ heads, journals }: Directory, filter: RunStore.RunFilter = {}) {
  const found = (yield* heads.all(filter.prefix))
    .filter((head) => RunStore.matches(head, filter))
    .sort(RunStore.inOrder(filter))
  const wanted = StoreSearch.wordsOf(filter.search)
  const most = atMost(filter)
  if (wanted.length === 0) return found.slice(0, most)
  const answering: Array<RunStore.RunHead> = []
  for (const head of found) {
    if (answering.length === most) break
    const state = yield* Effect.catch(journals.load(head.runId), heads.leftOut(Name.make(head.runId)))
    if (state !== undefined && Option.isSome(state) && StoreSearch.mentions(state.value, wanted)) answering.push(head)
  }
  return answering
})

// ---------------------------------------------------------------- writing

const append = Effect.fnUntraced(function* (
  directory: Directory,
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  state: RunState
) {
  const { cancellations, histories, journals, marks } = directory
  const refused = RunStore.refusal(records, state)
  if (refused !== undefined) return yield* refused
  const chunks = yield* Effect.fromResult(histories.cut(records))
  const text = yield* Effect.fromResult(RunCodec.encodeRecords(records, SharedHistory.earlierOf(chunks)))
  const { runId } = state
  const line = { first: records[0].revision, last: state.revision, text }
  const log = journals.log(Name.make(runId))
  // A run whose only record is damaged still exists, as its head shows.
  if (line.first === 1 && (yield* log.end).seq === 0 && (yield* Head.read(directory.files, fileOf(directory, runId)))) {
    return yield* damaged(runId, 1, "it cannot be read")
  }
  yield* histories.store(runId, chunks)
  const appended = yield* log.append(line)
  if (appended._tag === "Damaged") return yield* damaged(runId, appended.last + 1, "it cannot be read")
  if (appended._tag === "Newer") return yield* RunCodec.otherFormat(appended.format, "append")
  if (appended._tag === "Taken") {
    if (areStored(records, yield* journals.between(log, line))) return yield* log.settle(line)
    return yield* line.first === 1
      ? new RunExists({ runId })
      : new ConcurrentAppendError({ runId, expected: line.first - 1, actual: appended.last })
  }
  if (line.first === 1) marks.set(state, RunCodec.start)
  if (state.status.type === "cancelled") cancellations.complete(runId)
  yield* afterwards(directory, records, state, appended, text.length)
})

/** Writes the head and possibly a part of the state. A failure does not fail the append: both can be rebuilt. */
const afterwards = Effect.fnUntraced(
  function* (
    directory: Directory,
    records: ReadonlyArray<RunRecord>,
    state: RunState,
    { after, before }: { readonly after: Log.Place; readonly before: Log.Place },
    bytes: number
  ) {
    const { files, followers, journals, marks } = directory
    const path = fileOf(directory, state.runId)
    yield* Head.write(files, path, journalHeadOf(state), after.offset)
    followers.wake(state.runId)
    const part = marks.due(records, state, bytes)
    if (part === undefined) return
    const earlier = part.mark === RunCodec.start ? yield* journals.earlier(state.runId) : undefined
    // The line with the end of the part is read again as a whole.
    yield* Head.writePart(files, path, part, part.state.revision === state.revision ? after : before, earlier)
    marks.written(part)
  },
  Effect.catch((error) => Effect.logDebug("a head or part of a run was not written", error))
)

const acquire = Effect.fnUntraced(function* (directory: Directory, runId: string, claim: RunStore.Claim) {
  const { clock, files } = directory
  const { workerId } = claim
  const path = fileOf(directory, runId)
  const millis = yield* Effect.fromResult(leaseOf(claim))
  if ((yield* Log.sizeOf(files, `${path}.jsonl`)) === 0) return yield* new RunNotFound({ runId })
  yield* stands(directory, runId, claim)
  const held = yield* Leases.acquire(files, path, workerId, millis, clock)
  if (held !== undefined) return yield* new RunBusy({ runId, ...held })
  // Its last owner appended before it released the lease.
  yield* Effect.tapError(stands(directory, runId, claim), () => Leases.release(files, path, workerId))
  if (millis === 0) yield* directory.offers.emit(runId)
})

/** Fails if a run has changed since a worker saw it. */
const stands = Effect.fnUntraced(function* ({ heads }: Directory, runId: string, claim: RunStore.Claim) {
  if (claim.seen === undefined) return
  const head = yield* heads.of(Name.make(runId), false)
  if (head === undefined) return yield* new RunNotFound({ runId })
  const moved = movedSince(claim, head)
  if (moved !== undefined) return yield* moved
})

const remove = Effect.fnUntraced(function* ({ files, histories, path }: Directory, runIds: ReadonlyArray<string>) {
  const names = new Set(runIds.map(Name.make))
  const theirs = (yield* files.readDirectory(path)).filter((file) => names.has(Name.ofFile(file)))
  // The journal is removed last, so that files left by an interrupted removal belong to an existing run. Its history is
  // needed until then.
  const place = (file: string) => (file.endsWith(".history") ? 2 : file.endsWith(".jsonl") ? 1 : 0)
  for (const file of theirs.sort((a, b) => place(a) - place(b))) {
    yield* files.remove(`${path}/${file}`, { force: true })
  }
  yield* histories.release(theirs)
})

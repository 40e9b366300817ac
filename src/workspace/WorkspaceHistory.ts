/**
 * The files of a run at each of its revisions.
 *
 * The skills of a workspace keep the content of each file before and after they change it, among the media of the run,
 * and the journal names it. So a run can be taken back, and with `layerForks` a fork begins with the files that the run
 * had at its revision. Only the files that changed are kept, as long as the media of the run are: `MediaStore.layerMemory`
 * releases them when the run ends, `FileMediaStore` and `SqlMediaStore` keep them. Commands in the background are not recorded.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Hooks from "../Hooks.ts"
import { type MediaUnreadable, RunNotFound, type StoreError } from "../KernelError.ts"
import { MediaStore, type MediaStoreShape } from "../MediaStore.ts"
import * as Runs from "../RunStore.ts"
import type { RunRecord } from "../RunState.ts"
import { originsOf } from "../store-kit/StoredRuns.ts"
import { contentId, KeptChange } from "./internal/keptChanges.ts"
import { Workspace, type WorkspaceShape } from "./Workspace.ts"
import { WorkspaceError } from "./WorkspaceError.ts"

// ---------------------------------------------------------------- models

/**
 * A change of a file in a run. `before` and `after` are ids of media: null for no file, absent if the content was not
 * kept.
 *
 * @category models
 * @since 0.1.0
 */
export interface FileChange extends KeptChange {
  readonly runId: string
  readonly revision: number
  /** The turn of the run that made it, counted from 1. */
  readonly turn: number
  readonly at: number
}

/**
 * What a restore did: the files that have their earlier content again, and those whose earlier content was not kept.
 *
 * @category models
 * @since 0.1.0
 */
export interface Restored {
  readonly paths: ReadonlyArray<string>
  readonly lost: ReadonlyArray<string>
}

/**
 * Options of a restore.
 *
 * @category models
 * @since 0.1.0
 */
export interface RestoreOptions {
  /** Overwrites files with a content that they never had in the run. Default: false; the restore fails as `changed`. */
  readonly force?: boolean | undefined
}

/**
 * The failures of a restore.
 *
 * @category errors
 * @since 0.1.0
 */
export type RestoreError = MediaUnreadable | RunNotFound | StoreError | WorkspaceError

type Services = MediaStore | Runs.RunStore | Workspace

// ---------------------------------------------------------------- reading

/**
 * Returns the changes of files in a run and the runs below it, oldest first.
 *
 * @category getters
 * @since 0.1.0
 */
export const changes = (
  runId: string
): Effect.Effect<ReadonlyArray<FileChange>, RunNotFound | StoreError, Runs.RunStore> =>
  Effect.map(Runs.recordsOf(runId), (records) => records.flatMap(changesIn).sort((a, b) => a.at - b.at))

const changesIn = (record: RunRecord): ReadonlyArray<FileChange> =>
  record.events.flatMap((event) => {
    if (event.type !== "tool_call_completed" || !("metadata" in event.result)) return []
    const kept = decode(event.result.metadata)
    const { at, revision, runId, step } = event
    return Option.isNone(kept)
      ? []
      : kept.value.workspace.map((change) => ({ ...change, runId, revision, at, turn: step + 1 }))
  })

const decode = Schema.decodeUnknownOption(Schema.Struct({ workspace: Schema.Array(KeptChange) }))

// ---------------------------------------------------------------- restoring

/**
 * Gives the files that a run changed the content they had at a revision.
 *
 * @category restoring
 * @since 0.1.0
 */
export const restore = Effect.fn("WorkspaceHistory.restore")(function* (
  runId: string,
  options: RestoreOptions & { readonly revision: number }
): Effect.fn.Return<Restored, RestoreError, Services> {
  const records = yield* Runs.recordsOf(runId)
  const end = records.find((record) => record.runId === runId && record.revision > options.revision)
  const isEarlier = (change: FileChange) =>
    change.runId === runId ? change.revision <= options.revision : change.at < (end?.createdAt ?? Infinity)
  return yield* toPoint(runId, isEarlier, options)
})

/**
 * Takes the changes of a run back: all of them, or those since the beginning of a turn.
 *
 * @category restoring
 * @since 0.1.0
 */
export const undo = Effect.fn("WorkspaceHistory.undo")(function* (
  runId: string,
  options: RestoreOptions & { readonly turn?: number | undefined } = {}
): Effect.fn.Return<Restored, RestoreError, Services> {
  const { turn = 1 } = options
  const records = yield* Runs.recordsOf(runId)
  const begun = records
    .flatMap(({ events }) => events)
    .find((event) => event.runId === runId && event.type === "turn_started" && event.step + 1 >= turn)
  const since = turn <= 1 ? -Infinity : (begun?.at ?? Infinity)
  return yield* toPoint(runId, (change) => (change.runId === runId ? change.turn < turn : change.at < since), options)
})

/**
 * Gives each fork the files that its run had at the revision of the fork, before it continues for the first time. A fork
 * whose files were changed outside of its run fails with `WorkspaceError`, unless `force` is given; it can be resumed.
 *
 * A replay runs no skill and changes no file; `restore` shows the files at one of its revisions.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerForks = (options: RestoreOptions = {}): Layer.Layer<never, never, Services> =>
  Hooks.layer({
    onRunResumed: ({ context, state: { forkedFrom, runId } }) =>
      forkedFrom === undefined || context[restored] === runId
        ? Effect.void
        : Effect.as(restore(forkedFrom.runId, { ...options, revision: forkedFrom.revision }), {
            context: { [restored]: runId }
          })
  })

/** The key in the context of a fork that has its files. A fork of this fork has another id. */
const restored = "kernai/workspace/restored"

/** Restores the content after the last earlier change of each file, or before its first later one. */
const toPoint = Effect.fnUntraced(function* (
  runId: string,
  isEarlier: (change: FileChange) => boolean,
  { force = false }: RestoreOptions
): Effect.fn.Return<Restored, RestoreError, Services | Scope.Scope> {
  const workspace = yield* Workspace
  const paths = new Map<string, { wanted: Version; readonly own: Set<Version> }>()
  for (const change of yield* changes(runId)) {
    const { after, before, path } = change
    const known = paths.get(path) ?? { wanted: before, own: new Set() }
    if (isEarlier(change)) known.wanted = after
    paths.set(path, known)
    known.own.add(before).add(after)
  }
  const media = yield* mediaOf(runId)
  const contents = new Map<string, Uint8Array | undefined>()
  const lost: Array<string> = []
  for (const [path, { own, wanted }] of paths) {
    if (wanted === undefined) {
      lost.push(path)
      continue
    }
    const now = yield* versionOf(workspace, path)
    if (now === wanted) continue
    if (!force && !own.has(now)) {
      return yield* new WorkspaceError({ reason: "changed", detail: `${path} was changed since the run wrote it` })
    }
    const bytes = wanted === null ? Option.none() : yield* bytesOf(media, wanted)
    if (wanted !== null && Option.isNone(bytes)) lost.push(path)
    else contents.set(path, Option.getOrUndefined(bytes))
  }
  yield* workspace.restore(contents)
  return { paths: [...contents.keys()], lost }
}, Effect.scoped)

/** Reads a content, none if the store released it with its run. */
const bytesOf = (media: MediaStoreShape, id: string): Effect.Effect<Option.Option<Uint8Array>, RestoreError> =>
  Effect.catchTag(Effect.asSome(media.bytes(id)), "MediaNotFound", () => Effect.succeedNone)

/** The id of a content, null for no file, undefined for a content that was not kept. */
type Version = string | null | undefined

const versionOf = (workspace: WorkspaceShape, path: string): Effect.Effect<string | null, WorkspaceError> =>
  workspace.read(path).pipe(
    Effect.flatMap(({ bytes }) => contentId(bytes)),
    Effect.catchIf(
      ({ reason }) => reason === "not_found",
      () => Effect.succeed(null)
    )
  )

/** Opens the media of the tree of a run, and of the runs it was forked from. */
const mediaOf = Effect.fnUntraced(function* (runId: string) {
  const store = yield* Runs.RunStore
  const state = Option.getOrUndefined(yield* store.load(runId))
  if (state === undefined) return yield* new RunNotFound({ runId })
  const media = yield* MediaStore
  return yield* media.run(state.rootRunId, yield* originsOf(store, state))
})

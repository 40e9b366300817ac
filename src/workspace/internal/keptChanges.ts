/**
 * Keeps the content of files that skills change, among the media of the run, and names them in the results of calls.
 *
 * The content before and after a change is stored before the file is written, together with a note under the key of the
 * call. If the process dies between the write and its record, the call runs again, finds its note, and sees by the
 * content of the file that it has been written already.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { LimitExceeded, MediaConflict, StoreError } from "../../KernelError.ts"
import * as Media from "../../Media.ts"
import { MediaStore, type MediaStoreShape } from "../../MediaStore.ts"
import type { Change, Snapshot, WorkspaceShape } from "./workspaceType.ts"
import type { WorkspaceError } from "../WorkspaceError.ts"

/** A change of a file as a result names it: ids of the contents, null for no file, absent for one that was not kept. */
export const KeptChange = Schema.Struct({
  path: Schema.String,
  before: Schema.optionalKey(Schema.NullOr(Schema.String)),
  after: Schema.optionalKey(Schema.NullOr(Schema.String))
})

export type KeptChange = typeof KeptChange.Type

/** The metadata of a call that changed files. */
export const metadata = (changes: ReadonlyArray<KeptChange>) => ({
  workspace: changes.map((change) => ({ ...change }))
})

type KeepError = LimitExceeded | MediaConflict | StoreError

/** The store of the run. Absent outside of one, where nothing is kept. */
export const storeOfRun: Effect.Effect<MediaStoreShape | undefined> = Effect.map(
  Effect.serviceOption(MediaStore),
  Option.getOrUndefined
)

/** Returns the change that a call with this key has written, if the file still has its content. */
export const written = Effect.fnUntraced(function* (store: MediaStoreShape, workspace: WorkspaceShape, key: string) {
  const found = Option.getOrUndefined(yield* store.get(yield* Media.id(noteOf(key))))
  const note = found === undefined ? Option.none() : decode(found.metadata)
  if (Option.isNone(note)) return undefined
  const { after, path } = note.value
  const now = yield* Effect.option(workspace.read(path))
  return Option.isSome(now) && (yield* contentId(now.value.bytes)) === after ? note.value : undefined
})

const decode = Schema.decodeUnknownOption(KeptChange)

/** Stores the contents of a change, and the note of its call. */
export const keep = Effect.fnUntraced(function* (
  store: MediaStoreShape,
  key: string,
  { after, before, path }: Change
): Effect.fn.Return<KeptChange, KeepError> {
  const kept = { path, before: yield* keepContent(store, before), after: yield* keepContent(store, after) }
  yield* store.put(noteOf(key, kept))
  return kept
})

const keepContent = (store: MediaStoreShape, bytes: Uint8Array | undefined): Effect.Effect<string | null, KeepError> =>
  bytes === undefined ? Effect.succeed(null) : Effect.map(store.put(contentOf(bytes)), ({ id }) => id)

/** A content has a type of its own, so that it never meets a medium that the model has seen. */
const contentOf = (bytes: Uint8Array) => Media.fromBytes(bytes, "application/vnd.kernai.file", { kind: "document" })

/** Returns the id under which a content is kept. */
export const contentId = (bytes: Uint8Array): Effect.Effect<string> => Media.id(contentOf(bytes))

const noteOf = (key: string, kept?: KeptChange) =>
  Media.fromBytes(new TextEncoder().encode(`workspace change ${key}`), "application/vnd.kernai.change", {
    kind: "document",
    ...(kept === undefined ? {} : { metadata: { ...kept } })
  })

// ---------------------------------------------------------------- commands

/** Files whose content is remembered before a command, and bytes of one of them and of all. */
const maxFiles = 20_000
const maxFileBytes = 1024 * 1024
const maxBytes = 32 * 1024 * 1024
/** Changed files that a result names. */
const maxChanges = 2_000

/** Content by path, as the last command of a workspace left it. Without bytes: one that does not fit. */
type Remembered = Map<string, { readonly signature: string; readonly bytes: Uint8Array | undefined }>

const rememberedOf = new WeakMap<WorkspaceShape, Remembered>()

/** What a command changed. `isWhole` is false if there were more changes, or too many files to look for them. */
interface Changed {
  readonly changes: ReadonlyArray<KeptChange>
  readonly isWhole: boolean
}

/**
 * Runs a command and returns what it changed. Nobody knows in advance what a command will change, so the content of all
 * files is remembered in memory, within bounds; only what changed is stored.
 */
export const aroundCommand = Effect.fnUntraced(function* <A, R>(
  store: MediaStoreShape,
  workspace: WorkspaceShape,
  command: Effect.Effect<A, WorkspaceError, R>
): Effect.fn.Return<readonly [A, Changed], WorkspaceError | KeepError, R> {
  const before = yield* snapshotOf(workspace)
  if (before === undefined) return [yield* command, { changes: [], isWhole: false }]
  const remembered: Remembered = rememberedOf.get(workspace) ?? new Map()
  rememberedOf.set(workspace, remembered)
  for (const [path, { signature }] of remembered) if (before.get(path) !== signature) remembered.delete(path)
  yield* remember(workspace, remembered, before)
  const result = yield* command
  const after = yield* snapshotOf(workspace)
  if (after === undefined) return [result, { changes: [], isWhole: false }]
  const paths = [...new Set([...before.keys(), ...after.keys()])]
  const changed = paths.filter((path) => before.get(path) !== after.get(path))
  const old = new Map(changed.map((path) => [path, remembered.get(path)]))
  for (const path of changed) remembered.delete(path)
  yield* remember(workspace, remembered, new Map([...after].filter(([path]) => old.has(path))))
  const idOf = (snapshot: Snapshot, path: string, content: ReturnType<Remembered["get"]>) => {
    const signature = snapshot.get(path)
    if (signature === undefined) return Effect.succeed(null)
    const bytes = content?.signature === signature ? content.bytes : undefined
    return bytes === undefined ? Effect.undefined : keepContent(store, bytes)
  }
  const changes = yield* Effect.forEach(
    changed.slice(0, maxChanges),
    Effect.fnUntraced(function* (path): Effect.fn.Return<KeptChange, KeepError> {
      const first = yield* idOf(before, path, old.get(path))
      const last = yield* idOf(after, path, remembered.get(path))
      return { path, ...(first === undefined ? {} : { before: first }), ...(last === undefined ? {} : { after: last }) }
    })
  )
  return [result, { changes, isWhole: changed.length <= maxChanges }]
})

/** The files of a workspace. Undefined if there are too many. */
const snapshotOf = (workspace: WorkspaceShape): Effect.Effect<Snapshot | undefined, WorkspaceError> =>
  Effect.catchIf(
    workspace.snapshot,
    ({ reason }) => reason === "too_large",
    () => Effect.undefined
  )

/** Reads the files whose content is not remembered, as long as they fit. */
const remember = Effect.fnUntraced(function* (workspace: WorkspaceShape, files: Remembered, snapshot: Snapshot) {
  const unknown = [...snapshot.keys()].filter((path) => !files.has(path)).slice(0, maxFiles - files.size)
  let left = maxBytes
  for (const { bytes } of files.values()) left -= bytes?.length ?? 0
  const found = yield* workspace.contents(unknown, { maxFileBytes, maxBytes: left })
  for (const path of unknown) files.set(path, { signature: snapshot.get(path) ?? "", bytes: found.get(path) })
})

/** Says which contents were not kept, so that an undo cannot bring them back. */
export const lostNote = ({ changes, isWhole }: Changed): ReadonlyArray<string> => {
  const lost = changes.filter((change) => change.before === undefined).map(({ path }) => path)
  const names = lost.length > 5 ? `${lost.slice(0, 5).join(", ")} and ${lost.length - 5} more` : lost.join(", ")
  return [
    ...(lost.length === 0 ? [] : [`[an undo cannot bring back ${names}: not kept before the command]`]),
    ...(isWhole ? [] : ["[an undo cannot take back all of this: there are too many files]"])
  ]
}

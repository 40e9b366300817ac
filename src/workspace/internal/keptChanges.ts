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

const maxFiles = 2_000
const maxBytes = 4 * 1024 * 1024

/** The files of a workspace as the last command of a run left them. */
interface Known {
  readonly runId: string
  readonly files: Map<string, { readonly signature: string; readonly id: string }>
}

const knownOf = new WeakMap<WorkspaceShape, Known>()

/**
 * Runs a command and returns what it changed. The content before a change is known for the files of a small folder
 * (2,000 files, 4 MiB), which are kept before the first command of a run; each is kept once.
 */
export const aroundCommand = <A, R>(
  store: MediaStoreShape,
  workspace: WorkspaceShape,
  runId: string,
  command: Effect.Effect<A, WorkspaceError, R>
): Effect.Effect<readonly [A, ReadonlyArray<KeptChange>], WorkspaceError | KeepError, R> =>
  Effect.gen(function* () {
    const before = yield* workspace.snapshot
    const last = knownOf.get(workspace)
    const known = last?.runId === runId ? last : { runId, files: new Map() }
    knownOf.set(workspace, known)
    if (before.size <= maxFiles) yield* keepFiles(store, workspace, known, before)
    const result = yield* command
    const after = yield* workspace.snapshot
    const paths = [...new Set([...before.keys(), ...after.keys()])]
    const changed = paths.filter((path) => before.get(path) !== after.get(path)).slice(0, maxFiles)
    const old = new Map(changed.map((path) => [path, known.files.get(path)]))
    yield* keepFiles(store, workspace, known, new Map([...after].filter(([path]) => old.has(path))))
    return [result, changed.map((path) => changeOf(path, before, after, old.get(path), known.files.get(path)))]
  })

const changeOf = (
  path: string,
  before: Snapshot,
  after: Snapshot,
  old: { readonly signature: string; readonly id: string } | undefined,
  now: { readonly signature: string; readonly id: string } | undefined
): KeptChange => {
  const idOf = (snapshot: Snapshot, content: typeof old) => {
    const signature = snapshot.get(path)
    if (signature === undefined) return null
    return content?.signature === signature ? content.id : undefined
  }
  const [first, last] = [idOf(before, old), idOf(after, now)]
  return { path, ...(first === undefined ? {} : { before: first }), ...(last === undefined ? {} : { after: last }) }
}

/** Stores the files whose content is not known, as long as they are small together. */
const keepFiles = Effect.fnUntraced(function* (
  store: MediaStoreShape,
  workspace: WorkspaceShape,
  { files }: Known,
  snapshot: Snapshot
) {
  let bytes = 0
  for (const [path, signature] of snapshot) {
    if (files.get(path)?.signature === signature) continue
    const file = Option.getOrUndefined(yield* Effect.option(workspace.read(path)))
    if (file === undefined) continue
    bytes += file.bytes.length
    if (bytes > maxBytes) return
    files.set(path, { signature, id: (yield* store.put(contentOf(file.bytes))).id })
  }
})

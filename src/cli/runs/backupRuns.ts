/**
 * Copies all runs of a store with their media into another store: `backup` into a new one, `restore` back.
 *
 * Runs may continue meanwhile: each run is copied up to the record it has when it is read, which is a state it could
 * have stopped in. A copy can be repeated after an interruption, because appending the same records again changes
 * nothing.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { KernelError } from "../../KernelError.ts"
import * as MediaStore from "../../MediaStore.ts"
import { type RunState, advance } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { BackupFlags, RestoreFlags } from "../commands/runsFlags.ts"
import { asFailure, failed, usage } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"

/** Copies the runs of a store into a new one. */
export const backup = Effect.fnUntraced(function* ({ json, store, to }: BackupFlags) {
  const files = yield* FileSystem.FileSystem
  const place = to.replace(/^(?:sqlite|file):/, "")
  if (!to.startsWith("pg:") && (yield* Effect.orElseSucceed(files.exists(place), () => false))) {
    return yield* usage(`${Text.excerpt(place, 80)} already exists`)
  }
  yield* copy(yield* Store.openExisting(store), yield* Store.openOrCreate(to), json)
})

/** Copies the runs of a backup into a store. */
export const restore = Effect.fnUntraced(function* ({ from, json, store }: RestoreFlags) {
  yield* copy(yield* Store.openExisting(from), yield* Store.openOrCreate(store), json)
})

/** A store as its services. */
interface Opened {
  readonly runs: RunStore.RunStoreShape
  readonly media: MediaStore.MediaStore["Service"]
}

const servicesOf = Effect.fnUntraced(function* (store: Store.Store) {
  const { media, runs } = yield* Store.builtOf(store)
  return yield* Effect.provide(
    Effect.all({ runs: RunStore.RunStore, media: MediaStore.MediaStore }),
    Layer.merge(runs, media)
  )
})

const copy = Effect.fnUntraced(function* (from: Store.Store, to: Store.Store, json: boolean) {
  const screen = yield* Screen
  const [source, target] = yield* Effect.all([servicesOf(from), servicesOf(to)])
  const heads = yield* Effect.mapError(source.runs.list({ order: "oldest" }), asFailure)
  yield* Effect.mapError(copyMedia(source.media, target.media), asFailure)
  const left: Array<{ readonly runId: string; readonly reason: string }> = []
  for (const head of heads) {
    yield* Effect.catch(copyRun(source, target, head), (error) =>
      Effect.sync(() => left.push({ runId: head.runId, reason: error.message }))
    )
  }
  const copied = heads.length - left.length
  if (json) screen.out(`${Text.json({ copied, left })}\n`)
  else {
    for (const { reason, runId } of left) screen.out(`${Text.flat(runId)} is left out: ${Text.excerpt(reason, 300)}\n`)
    screen.out(`copied ${Text.count(copied, "run")}, tasks included\n`)
  }
  if (left.length > 0) return yield* failed(`${Text.count(left.length, "run")} could not be copied`)
}, Effect.scoped)

/** Copies a run and, for a root, the media of its tree. Workers find a queued run at once. */
const copyRun = Effect.fnUntraced(function* (
  source: Opened,
  target: Opened,
  { lease, parentRunId, runId }: RunStore.RunHead
): Effect.fn.Return<void, KernelError> {
  if (parentRunId === undefined) {
    yield* Effect.scoped(
      Effect.flatMap(Effect.all([source.media.run(runId), target.media.run(runId)]), ([from, to]) =>
        copyMedia(from, to)
      )
    )
  }
  let state: RunState | undefined
  yield* Stream.runForEachArray(source.runs.read(runId), (records) => {
    let next = state
    for (const record of records) next = advance(next, record)
    state = next
    return Arr.isReadonlyArrayNonEmpty(records) && next !== undefined ? target.runs.append(records, next) : Effect.void
  })
  if (lease?.expiresAt === 0) yield* target.runs.acquire(runId, { workerId: lease.workerId, lease: 0 })
})

const copyMedia = (
  from: MediaStore.MediaStore["Service"],
  to: MediaStore.MediaStore["Service"]
): Effect.Effect<void, KernelError> =>
  Effect.flatMap(from.list, (media) => Effect.forEach(media, (medium) => to.put(medium), { discard: true }))

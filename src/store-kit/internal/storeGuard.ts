/**
 * Guards the stores of a host: they fail only with the errors of their contract, whatever they throw. For a kernel,
 * appends are also retried and have a timeout.
 *
 * Without retries, every short failure of a store would leave a call in flight with an unknown outcome. Appending the
 * same records again is harmless. Appends are uninterruptible, so a store that hangs needs the timeout.
 */

import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { AgentCrashError, KernelError, RunExists } from "../../KernelError.ts"
import { ConcurrentAppendError, StoreError } from "../../KernelError.ts"
import type { Limits } from "../../Limits.ts"
import type * as MediaStore from "../../MediaStore.ts"
import type * as RunStore from "../../RunStore.ts"
import { isHiccup } from "../../internal/errors/failedCall.ts"
import { guarded, guardedStream, inTime, logIgnored } from "../../kit/foreignCode.ts"
import { isSound } from "../../internal/errors/extensionError.ts"
import { shareOffers } from "../Offers.ts"

/** Wraps a store of runs. */
export const soundRuns = (store: RunStore.RunStoreShape): RunStore.RunStoreShape => {
  const known = soundStores.get(store)
  if (known !== undefined) return known
  const sound: RunStore.RunStoreShape = {
    append: (records, state) => call("append", () => store.append(records, state)),
    load: (runId) => call("load", () => store.load(runId)),
    head: (runId) => call("load", () => store.head(runId)),
    read: (runId, from) => stream("read", () => store.read(runId, from)),
    tail: (runId, from) => stream("read", () => store.tail(runId, from)),
    list: (filter) => call("list", () => store.list(filter)),
    acquire: (runId, claim) => call("acquire", () => store.acquire(runId, claim)),
    release: (runId, workerId) => call("release", () => store.release(runId, workerId)),
    cancelled: (runId) =>
      Effect.catchDefect(
        Effect.suspend(() => store.cancelled(runId)),
        neverCancelled
      ),
    offers: store.offers === undefined ? undefined : withoutDefects(store.offers),
    changes: store.changes,
    notes: store.notes === undefined ? undefined : soundNotes(store.notes),
    tags: store.tags === undefined ? undefined : soundTags(store.tags),
    counts: soundList(store.counts),
    spending: soundList(store.spending),
    remove: (runIds) => call("remove", () => store.remove(runIds))
  }
  shareOffers(sound, store)
  soundStores.set(store, sound)
  soundStores.set(sound, sound)
  return sound
}

const soundList = <A, B>(list: ((query: A) => Effect.Effect<B, StoreError>) | undefined) =>
  list === undefined ? undefined : (query: A) => call("list", () => list(query))

const soundNotes = (notes: RunStore.Notes): RunStore.Notes => ({
  list: (prefix) => call("read", () => notes.list(prefix)),
  set: (key, text) => call("write", () => notes.set(key, text)),
  changes: notes.changes
})

const soundTags = (tags: RunStore.Tags): RunStore.Tags => ({
  add: (tag, runIds) => call("write", () => tags.add(tag, runIds)),
  remove: (tag, runIds) => call("write", () => tags.remove(tag, runIds))
})

/** Wraps a store of media, and the stores of its runs. */
export const soundMedia = (store: MediaStore.MediaStoreShape): MediaStore.MediaStoreShape => ({
  put: (media) => call("put", () => store.put(media)),
  get: (id) => call("get", () => store.get(id)),
  bytes: (id) => call("get", () => store.bytes(id)),
  content: (id) => call("get", () => store.content(id)),
  admit: (parts) => call("put", () => store.admit(parts)),
  list: call("list", () => store.list),
  size: call("list", () => store.size),
  run: (rootRunId, origins) => Effect.map(store.run(rootRunId, origins), soundMedia),
  release: (rootRunIds) => call("release", () => store.release(rootRunIds)),
  keep: store.keep
})

/** Errors of an append. After one, nothing else may be stored for the run. */
export type AppendError = Failure | RunExists

/** Errors of a flush: of the append, or because another process owns the run. */
export type FlushError = AppendError | AgentCrashError

/** Wraps a store so that appends that failed or were not acknowledged are retried. */
export const patient = (
  given: RunStore.RunStoreShape,
  { appendTimeout }: Pick<Limits, "appendTimeout">
): RunStore.RunStoreShape => {
  const store = soundRuns(given)
  const wrapped = patientStores.get(store)
  if (wrapped !== undefined && wrapped.appendTimeout === appendTimeout) return wrapped.store
  const retried = <A, E, E2 = never>(
    operation: string,
    write: () => Effect.Effect<A, E>,
    isOurs: Effect.Effect<void, E2>
  ) => again(operation, appendTimeout, Effect.suspend(write), isOurs, [50, 250])
  const made: RunStore.RunStoreShape = {
    ...store,
    append: (records, state) => retried("append", () => store.append(records, state), stillLast(store, state)),
    head: (runId) => retried("read", () => store.head(runId), Effect.void),
    acquire: (runId, claim) => retried("acquire", () => store.acquire(runId, claim), Effect.void),
    release: (runId, workerId) => retried("release", () => store.release(runId, workerId), Effect.void)
  }
  shareOffers(made, store)
  patientStores.set(store, { appendTimeout, store: made })
  return made
}

const soundStores = new WeakMap<RunStore.RunStoreShape, RunStore.RunStoreShape>()

const call = <A, E extends KernelError, R>(
  operation: string,
  code: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E | StoreError, R> =>
  guarded<A, E, R, E | StoreError>(name, code, (error) => errorOf(operation, error))

const stream = <A, E extends KernelError>(
  operation: string,
  code: () => Stream.Stream<A, E>
): Stream.Stream<A, E | StoreError> =>
  guardedStream<A, E, never, E | StoreError>(name, code, (error) => errorOf(operation, error))

/** Ends the offers of a store that dies. Workers then find offered runs by polling. */
const withoutDefects = (offers: Stream.Stream<string>): Stream.Stream<string> =>
  Stream.catchCause(offers, (cause) =>
    Stream.fromEffectDrain(logIgnored("a store could not emit the runs that other processes offer")(cause))
  )

/** Waits forever if the store dies. The run then notices a cancellation when it appends its next record. */
const neverCancelled = (defect: unknown): Effect.Effect<never> =>
  Effect.andThen(logIgnored("a store could not wait for a cancellation")(Cause.die(defect)), Effect.never)

const name = "a store"

/** Returns the store's own error, or a `StoreError` for anything else. */
const errorOf = <E extends KernelError>(operation: string, error: unknown): E | StoreError =>
  isErrorOf<E>(error) ? error : new StoreError({ operation, reason: "invalid", detail: "it failed unexpectedly" })

// Typed code fails only with the errors of its contract.
const isErrorOf = <E extends KernelError>(error: unknown): error is E => isSound(error) && storeErrors.has(error._tag)

const storeErrors: ReadonlySet<KernelError["_tag"]> = new Set<KernelError["_tag"]>([
  "StoreError",
  "ConcurrentAppendError",
  "RunExists",
  "RunBusy",
  "RunNotFound",
  "MediaConflict",
  "MediaNotFound",
  "MediaUnreadable",
  "LimitExceeded"
])

type Failure = ConcurrentAppendError | StoreError

const patientStores = new WeakMap<
  RunStore.RunStoreShape,
  { readonly appendTimeout: Duration.Duration; readonly store: RunStore.RunStoreShape }
>()

const again = <A, E, E2>(
  operation: string,
  appendTimeout: Duration.Duration,
  write: Effect.Effect<A, E>,
  isOurs: Effect.Effect<void, E2>,
  waits: ReadonlyArray<number>
): Effect.Effect<A, E | E2 | StoreError> =>
  Effect.catch(withTimeout(operation, write, appendTimeout), (error) => {
    const [wait, ...rest] = waits
    if (wait === undefined || !isHiccup(error)) return Effect.fail(error)
    // Another worker may have continued from this record in the meantime.
    const checked = Effect.tap(write, () => isOurs)
    return Effect.andThen(Effect.sleep(wait), again(operation, appendTimeout, checked, isOurs, rest))
  })

const withTimeout = <A, E>(
  operation: string,
  work: Effect.Effect<A, E>,
  limit: Duration.Duration
): Effect.Effect<A, E | StoreError> =>
  inTime(work, limit, () =>
    Effect.fail(
      new StoreError({ operation, reason: "timeout", detail: `it took longer than ${Duration.toMillis(limit)} ms` })
    )
  )

/** Fails unless the last record of a run has this revision. */
const stillLast = (
  store: RunStore.RunStoreShape,
  { revision, runId }: { readonly runId: string; readonly revision: number }
): Effect.Effect<void, Failure> =>
  Effect.flatMap(store.head(runId), (head) => {
    const actual = Option.getOrUndefined(head)?.revision ?? 0
    return actual === revision
      ? Effect.void
      : Effect.fail(new ConcurrentAppendError({ runId, expected: revision - 1, actual }))
  })

/**
 * Follows a run by its id, whichever process runs it.
 *
 * A follower reads the journal to its end. If the run is active in this process, it continues with the live events of
 * its tree, beginning with the current reply or the latest reports of its calls. Otherwise it waits for records stored
 * by another process, and for live events if the store delivers them. A follower that falls behind the live events
 * continues from the journal, so it misses no event and emits none twice.
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { RunNotFound, type StoreError } from "../KernelError.ts"
import type { RunEvent } from "../RunEvent.ts"
import type { FollowOptions } from "../RunOptions.ts"
import type { RunRecord } from "../RunState.ts"
import type * as RunStore from "../RunStore.ts"
import { isRest } from "../internal/state/state.ts"
import { isEnded } from "../internal/store/runStatus.ts"
import { soundRuns } from "./internal/storeGuard.ts"
import { type LiveTree, shareTrees, type Trees, treesOf } from "./internal/liveTree.ts"
import { Elsewhere, type LiveEvent, Received } from "./internal/receivedReply.ts"

export { type LiveEvent, Received }

/**
 * Emits the events of a run after a revision, stored and live, until the run is at rest. Skips the part of the current
 * reply that was already `received`. Fails with the error that `stopped` returns; `recheck` makes followers that wait
 * ask it.
 *
 * @category running
 * @since 0.1.0
 */
export const follow = <E = never>(
  store: RunStore.RunStoreShape,
  runId: string,
  options: FollowOptions,
  received: Received = new Received(),
  stopped?: () => E | undefined
): Stream.Stream<RunEvent, Failure | E> =>
  Stream.fromChannel(
    Channel.fromTransform((_, scope) =>
      Effect.flatMap(headOf(store, runId), (head) => {
        const follower = new Follower(soundRuns(store), head, options, received, stopped)
        return Effect.as(Scope.addFinalizer(scope, follower.leave), follower.next)
      })
    )
  )

/**
 * Makes the followers of a store in this process ask whether they are stopped. Synchronous.
 *
 * @category running
 * @since 0.1.0
 */
export const recheck = (store: RunStore.RunStoreShape): void => treesOf(soundRuns(store)).wake()

/**
 * Returns the live events of a run after a revision. The stream ends when the run is at rest, and never fails.
 *
 * @category models
 * @since 0.1.0
 */
export type Source = (rootRunId: string, runId: string, after: number) => Stream.Stream<LiveEvent>

/**
 * Connects a source of live events from other processes to a store.
 *
 * Only the journal is complete. A live event is emitted after the revision it follows, and dropped if the next revision
 * was already emitted. A source that reconnects repeats the current reply from its beginning.
 *
 * @category running
 * @since 0.1.0
 */
export const connectLive = (store: RunStore.RunStoreShape, source: Source): void => {
  sources.set(soundRuns(store), source)
}

/**
 * Lets followers on a store also receive the live events of runs that this process runs on another store, which holds
 * the same runs. For a store that wraps another one.
 *
 * @category running
 * @since 0.1.0
 */
export const shareLive = (store: RunStore.RunStoreShape, of: RunStore.RunStoreShape): void =>
  shareTrees(soundRuns(store), soundRuns(of))

type Failure = RunNotFound | StoreError

type Next<E> = Pull.Pull<Arr.NonEmptyReadonlyArray<RunEvent>, Failure | E>

const headOf = (store: RunStore.RunStoreShape, runId: string): Effect.Effect<RunStore.RunHead, Failure> =>
  Effect.flatMap(store.head(runId), (head) =>
    Option.isNone(head) ? Effect.fail(new RunNotFound({ runId })) : Effect.succeed(head.value)
  )

/** A place in the live events of a tree. */
interface Place {
  readonly tree: LiveTree
  at: number
}

/** The place where live events begin, and what precedes them. */
interface Joined extends Place {
  /** The last revision published before. */
  readonly published: number
  /** The events of the current reply, or the latest reports of the calls in flight. */
  readonly underway: ReadonlyArray<RunEvent>
}

const sources = new WeakMap<RunStore.RunStoreShape, Source>()

/** Returns the source of live events connected to a store, if any. */
const liveElsewhere = (store: RunStore.RunStoreShape): Source | undefined => sources.get(store)

/** One follower, pulled by one fiber. */
class Follower<E> {
  readonly #store: RunStore.RunStoreShape
  readonly #trees: Trees
  readonly #runId: string
  readonly #rootRunId: string
  readonly #isOver: (head: RunStore.RunHead) => boolean
  /** The head of the run as it was first read, which need not be read again at the end of its journal. */
  #head: RunStore.RunHead | undefined
  /** The last revision of which an event was emitted. */
  #last: number
  /** The number of emitted events of that revision, until all are. Live events of one record arrive one by one. */
  #emitted: number | undefined
  /** How much of the current reply was emitted. */
  readonly #received: Received
  readonly #stopped: (() => E | undefined) | undefined
  #place: Place | undefined
  #tail: Tail | undefined
  /** The live events of another process, once one arrives. */
  #elsewhereLive: Elsewhere | undefined

  constructor(
    store: RunStore.RunStoreShape,
    head: RunStore.RunHead,
    options: FollowOptions,
    received: Received,
    stopped: (() => E | undefined) | undefined
  ) {
    this.#received = received
    this.#stopped = stopped
    this.#store = store
    this.#trees = treesOf(store)
    this.#runId = head.runId
    this.#rootRunId = head.rootRunId
    this.#head = head
    this.#isOver = options.until === "end" ? isOver : isAtRest
    this.#last = options.after ?? 0
  }

  readonly next: Next<E> = Effect.suspend((): Next<E> => {
    const error = this.#stopped?.()
    if (error !== undefined) return Effect.fail(error)
    if (this.#place !== undefined) return this.#live(this.#place)
    return this.#tail === undefined ? this.#stored() : this.#elsewhere(this.#tail)
  })

  readonly leave: Effect.Effect<void> = Effect.suspend(() => {
    this.#place?.tree.part()
    this.#place = undefined
    return this.#closeTail()
  })

  /** Emits a page of the journal, or decides how to continue at its end. */
  #stored(): Next<E> {
    return Effect.suspend((): Next<E> => {
      const joined = this.#join()
      if (joined === undefined && this.#head?.revision === this.#last) return this.#atEnd(this.#head)
      // Events of a record that were not emitted may have been dropped from the log of live events.
      const after = this.#emitted === undefined ? this.#last : this.#last - 1
      const read = Stream.runCollect(Stream.take(this.#store.read(this.#runId, after), page))
      const decided = Effect.map(read, (records) => this.#afterPage(records, joined))
      const parted = Effect.sync(() => {
        if (joined !== undefined && this.#place !== joined) joined.tree.part()
      })
      return Effect.flatten(Effect.ensuring(decided, parted))
    })
  }

  /** Joins the live events before the journal is read, so that no event in between is missed. */
  #join(): Joined | undefined {
    const tree = this.#trees.find(this.#rootRunId)
    const run = tree?.runs.get(this.#runId)
    if (tree === undefined || run === undefined) return undefined
    const underway = (run.reply ?? run.reports)?.events() ?? []
    return { tree, at: tree.join(), published: run.published, underway }
  }

  #afterPage(records: ReadonlyArray<RunRecord>, joined: Joined | undefined): Next<E> {
    if (records.length > 0) return this.#emit(this.#eventsOf(records))
    if (joined === undefined) return Effect.flatMap(headOf(this.#store, this.#runId), (head) => this.#atEnd(head))
    // Stored events are published a moment later.
    if (joined.published < this.#last) return Effect.andThen(Effect.sleep(10), this.next)
    this.#place = joined
    this.#head = undefined
    return this.#emit(this.#begun(joined.underway))
  }

  /** Continues at the end of the journal of a run that is not active here. */
  #atEnd(head: RunStore.RunHead): Next<E> {
    this.#head = undefined
    if (head.revision > this.#last) return this.#stored()
    if (this.#isOver(head)) return Cause.done()
    return Effect.flatMap(this.#openTail(), (tail) => {
      this.#tail = tail
      return this.next
    })
  }

  /** Emits records and live events of another process until the run becomes active in this process. */
  #elsewhere(tail: Tail): Next<E> {
    const opened = Effect.as(this.#trees.opened(this.#rootRunId), undefined)
    return Effect.flatMap(Effect.raceFirst(tail.next, opened), (news): Next<E> => {
      const events = news === undefined ? [] : news.flatMap((one) => this.#newsOf(one))
      const isStill = news !== undefined && !events.some(isRest)
      return Effect.andThen(isStill ? Effect.void : this.#closeTail(), this.#emit(events))
    })
  }

  #newsOf(one: RunRecord | LiveEvent): ReadonlyArray<RunEvent> {
    if (!("event" in one)) return [...this.#eventsOf([one]), ...(this.#elsewhereLive?.due(this.#last) ?? [])]
    this.#elsewhereLive ??= new Elsewhere(this.#received)
    return this.#elsewhereLive.take(one, this.#last)
  }

  /** Opens the tail of the journal, merged with live events of other processes if the store delivers them. */
  #openTail(): Effect.Effect<Tail> {
    return Effect.suspend(() => {
      const records = this.#store.tail(this.#runId, this.#last)
      const live = liveElsewhere(this.#store)?.(this.#rootRunId, this.#runId, this.#last)
      const news = live === undefined ? records : Stream.merge(records, live, { haltStrategy: "left" })
      return Effect.flatMap(Scope.make(), (scope) =>
        Effect.map(Scope.provide(Stream.toPull(news), scope), (next) => ({ scope, next }))
      )
    })
  }

  #closeTail(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const tail = this.#tail
      this.#tail = undefined
      return tail === undefined ? Effect.void : Scope.close(tail.scope, Exit.void)
    })
  }

  /** Emits the live events after a place, or waits for them. */
  #live(place: Place): Next<E> {
    const { tree } = place
    const since = tree.after(place.at)
    const run = tree.runs.get(this.#runId)
    if (since === undefined || (since.length === 0 && run === undefined)) {
      return Effect.andThen(this.leave, this.#stored())
    }
    if (since.length === 0) return Effect.andThen(tree.wait(this.#runId, place.at), this.next)
    place.at += since.length
    const events = since.filter((event) => this.#isNew(event))
    return this.#emit(events.length === since.length ? since : events)
  }

  /** Returns whether a live event belongs to this run and has not been emitted. */
  #isNew(event: RunEvent): boolean {
    if (event.runId !== this.#runId) return false
    if ("revision" in event) {
      if (event.revision < this.#last || (event.revision === this.#last && this.#emitted === undefined)) return false
      this.#emitted = event.revision === this.#last ? (this.#emitted ?? 0) + 1 : 1
      this.#last = event.revision
      this.#received.clear()
    } else this.#received.add(event)
    return true
  }

  /** Returns the part of the current reply that has not been emitted. */
  #begun(reply: ReadonlyArray<RunEvent>): ReadonlyArray<RunEvent> {
    const rest = this.#received.restOf(reply)
    for (const event of rest) this.#received.add(event)
    return rest
  }

  #eventsOf(records: ReadonlyArray<RunRecord>): ReadonlyArray<RunEvent> {
    const emitted = records[0]?.revision === this.#last ? (this.#emitted ?? 0) : 0
    this.#last = records.at(-1)?.revision ?? this.#last
    this.#emitted = undefined
    const events = records.flatMap(({ events }) => events).slice(emitted)
    if (events.length > 0) this.#received.clear()
    return events
  }

  #emit(events: ReadonlyArray<RunEvent>): Next<E> {
    return Arr.isReadonlyArrayNonEmpty(events) ? Effect.succeed(events) : this.next
  }
}

/** Number of records read at once. */
const page = 256

/** The tail of a journal, open until its scope is closed. */
interface Tail {
  readonly scope: Scope.Closeable
  readonly next: Pull.Pull<Arr.NonEmptyReadonlyArray<RunRecord | LiveEvent>, StoreError>
}

const isAtRest = ({ status }: RunStore.RunHead): boolean =>
  status.type === "waiting" || status.type === "failed" || status.type === "no_answer" || isEnded(status)

const isOver = ({ status }: RunStore.RunHead): boolean => isEnded(status)

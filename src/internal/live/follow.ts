/**
 * Follows a run by its id.
 *
 * A follower reads the journal to its end. If the run is under way in this process, it continues with the live events of
 * its tree, beginning with the reply under way; else it waits for records that another process stores, and for live
 * events where the store can bring them. A follower that falls behind the live events reads the journal again from where
 * it stands, so it loses nothing and sees nothing twice.
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { RunNotFound, type StoreError } from "../../KernelError.ts"
import { isRest } from "../state/state.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { FollowOptions } from "../../RunOptions.ts"
import type { RunRecord } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import * as Streams from "../base/streams.ts"
import { soundRuns } from "../store/storeGuard.ts"
import { Elsewhere, type LiveEvent, liveElsewhere } from "./liveElsewhere.ts"
import { type LiveTree, type Trees, treesOf } from "./liveTree.ts"
import { Said } from "./said.ts"

type Failure = RunNotFound | StoreError
type Next = Pull.Pull<Arr.NonEmptyReadonlyArray<RunEvent>, Failure>

/**
 * Emits the events of a run after a revision, stored and live, until it is at rest. Of a reply under way, only what
 * follows the part that was `received`.
 */
export const follow = (
  store: RunStore.RunStoreShape,
  runId: string,
  options: FollowOptions,
  received = new Said()
): Stream.Stream<RunEvent, Failure> =>
  Streams.begin((scope) =>
    Effect.map(headOf(store, runId), ({ rootRunId }) => {
      const follower = new Follower(soundRuns(store), runId, rootRunId, options, received)
      return Stream.fromPull(Effect.as(Scope.addFinalizer(scope, follower.leave), follower.next))
    })
  )

const headOf = (store: RunStore.RunStoreShape, runId: string): Effect.Effect<RunStore.RunHead, Failure> =>
  Effect.flatMap(store.head(runId), (head) =>
    Option.isNone(head) ? Effect.fail(new RunNotFound({ runId })) : Effect.succeed(head.value)
  )

/** A place in the live events of a tree. */
interface Place {
  readonly tree: LiveTree
  at: number
}

/** A place where live events begin, and what came before them. */
interface Joined extends Place {
  /** The revision up to which events were published before. */
  readonly published: number
  /** The reply under way. */
  readonly reply: ReadonlyArray<RunEvent>
}

/** One follower. It is pulled by one fiber. */
class Follower {
  readonly #store: RunStore.RunStoreShape
  readonly #trees: Trees
  readonly #runId: string
  readonly #rootRunId: string
  readonly #isOver: (head: RunStore.RunHead) => boolean
  /** The last revision whose events were emitted. */
  #last: number
  /** How much of the reply under way was emitted. */
  readonly #said: Said
  #place: Place | undefined
  #tail: Tail | undefined
  readonly #elsewhereLive: Elsewhere

  constructor(store: RunStore.RunStoreShape, runId: string, rootRunId: string, options: FollowOptions, received: Said) {
    this.#said = received
    this.#store = store
    this.#trees = treesOf(store)
    this.#runId = runId
    this.#rootRunId = rootRunId
    this.#isOver = options.until === "end" ? isEnded : isAtRest
    this.#last = options.after ?? 0
    this.#elsewhereLive = new Elsewhere(this.#said)
  }

  readonly next: Next = Effect.suspend((): Next => {
    if (this.#place !== undefined) return this.#live(this.#place)
    return this.#tail === undefined ? this.#stored : this.#elsewhere(this.#tail)
  })

  readonly leave: Effect.Effect<void> = Effect.suspend(() => {
    this.#place?.tree.part()
    this.#place = undefined
    return this.#closeTail
  })

  /** Emits a page of the journal, or decides how the follower continues after its end. */
  readonly #stored: Next = Effect.suspend((): Next => {
    const joined = this.#join()
    const read = Stream.runCollect(Stream.take(this.#store.read(this.#runId, this.#last), page))
    const decided = Effect.map(read, (records) => this.#afterPage(records, joined))
    const parted = Effect.sync(() => {
      if (joined !== undefined && this.#place !== joined) joined.tree.part()
    })
    return Effect.flatten(Effect.ensuring(decided, parted))
  })

  /** Begins to keep live events before the journal is read, so that none between them is missed. */
  #join(): Joined | undefined {
    const tree = this.#trees.find(this.#rootRunId)
    const run = tree?.runs.get(this.#runId)
    if (tree === undefined || run === undefined) return undefined
    return { tree, at: tree.join(), published: run.published, reply: run.reply?.() ?? [] }
  }

  #afterPage(records: ReadonlyArray<RunRecord>, joined: Joined | undefined): Next {
    if (records.length > 0) return this.#emit(this.#eventsOf(records))
    if (joined === undefined) return this.#atEnd
    // What is stored is published a moment later.
    if (joined.published < this.#last) return Effect.andThen(Effect.sleep(10), this.next)
    this.#place = joined
    return this.#emit(this.#begun(joined.reply))
  }

  /** The journal is read to its end, and the run is not under way here. */
  readonly #atEnd: Next = Effect.suspend(() =>
    Effect.flatMap(headOf(this.#store, this.#runId), (head): Next => {
      if (head.revision > this.#last) return this.#stored
      if (this.#isOver(head)) return Cause.done()
      return Effect.flatMap(this.#openTail, (tail) => {
        this.#tail = tail
        return this.next
      })
    })
  )

  /** Emits what another process stores, and its live events, until the run is taken up in this process. */
  #elsewhere(tail: Tail): Next {
    const opened = Effect.as(this.#trees.opened(this.#rootRunId), undefined)
    return Effect.flatMap(Effect.raceFirst(tail.next, opened), (news): Next => {
      const events = news === undefined ? [] : news.flatMap((one) => this.#newsOf(one))
      const isStill = news !== undefined && !events.some(isRest)
      return Effect.andThen(isStill ? Effect.void : this.#closeTail, this.#emit(events))
    })
  }

  #newsOf(one: RunRecord | LiveEvent): ReadonlyArray<RunEvent> {
    if ("event" in one) return this.#elsewhereLive.take(one, this.#last)
    return [...this.#eventsOf([one]), ...this.#elsewhereLive.due(this.#last)]
  }

  /** Opens the tail of the journal, with live events of the process that runs the run where the store brings them. */
  readonly #openTail: Effect.Effect<Tail> = Effect.suspend(() => {
    const records = this.#store.tail(this.#runId, this.#last)
    const live = liveElsewhere(this.#store)?.(this.#rootRunId, this.#runId, this.#last)
    const news = live === undefined ? records : Stream.merge(records, live, { haltStrategy: "left" })
    return Effect.flatMap(Scope.make(), (scope) =>
      Effect.map(Scope.provide(Stream.toPull(news), scope), (next) => ({ scope, next }))
    )
  })

  readonly #closeTail = Effect.suspend(() => {
    const tail = this.#tail
    this.#tail = undefined
    return tail === undefined ? Effect.void : Scope.close(tail.scope, Exit.void)
  })

  /** Emits what happened since, or waits for it. */
  #live(place: Place): Next {
    const { tree } = place
    const since = tree.after(place.at)
    const run = tree.runs.get(this.#runId)
    if (since === undefined || (since.length === 0 && run === undefined)) {
      return Effect.andThen(this.leave, this.#stored)
    }
    if (since.length === 0) return Effect.andThen(tree.wait(this.#runId, place.at), this.next)
    place.at += since.length
    const events = since.filter((event) => this.#isNew(event))
    return this.#emit(events.length === since.length ? since : events)
  }

  /** Tells whether a live event is of this run and follows what was emitted. */
  #isNew(event: RunEvent): boolean {
    if (event.runId !== this.#runId) return false
    if ("revision" in event) {
      if (event.revision <= this.#last) return false
      this.#last = event.revision
      this.#said.clear()
    } else this.#said.add(event)
    return true
  }

  /** The part of a reply under way that was not emitted yet. */
  #begun(reply: ReadonlyArray<RunEvent>): ReadonlyArray<RunEvent> {
    const rest = this.#said.restOf(reply)
    for (const event of rest) this.#said.add(event)
    return rest
  }

  #eventsOf(records: ReadonlyArray<RunRecord>): ReadonlyArray<RunEvent> {
    this.#last = records.at(-1)?.revision ?? this.#last
    const events = records.flatMap(({ events }) => events)
    if (events.length > 0) this.#said.clear()
    return events
  }

  #emit(events: ReadonlyArray<RunEvent>): Next {
    return Arr.isReadonlyArrayNonEmpty(events) ? Effect.succeed(events) : this.next
  }
}

/** How many records are read at once. */
const page = 256

/** The tail of a journal, which is open until its scope is closed. */
interface Tail {
  readonly scope: Scope.Closeable
  readonly next: Pull.Pull<Arr.NonEmptyReadonlyArray<RunRecord | LiveEvent>, StoreError>
}

const isAtRest = ({ status: { type } }: RunStore.RunHead): boolean =>
  type === "waiting" || type === "failed" || isOver(type)

const isEnded = ({ status: { type } }: RunStore.RunHead): boolean => isOver(type)

const isOver = (type: RunStore.RunStatus["type"]): boolean => type === "completed" || type === "cancelled"

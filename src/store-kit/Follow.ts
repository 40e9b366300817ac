/**
 * Follows a run by its id, whichever process runs it.
 *
 * A follower reads the journal to its end. If the run is active in this process, it continues with the live events of
 * its tree, beginning with the current reply. Otherwise it waits for records stored by another process, and for live
 * events if the store delivers them. A follower that falls behind the live events continues from the journal, so it
 * misses no event and emits none twice.
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
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

/**
 * Emits the events of a run after a revision, stored and live, until the run is at rest. Skips the part of the current
 * reply that was already `received`.
 *
 * @category running
 * @since 0.1.0
 */
export const follow = (
  store: RunStore.RunStoreShape,
  runId: string,
  options: FollowOptions,
  received = new Received()
): Stream.Stream<RunEvent, Failure> =>
  Stream.unwrap(
    Effect.flatMap(headOf(store, runId), ({ rootRunId }) => {
      const follower = new Follower(soundRuns(store), runId, rootRunId, options, received)
      return Effect.as(
        Effect.addFinalizer(() => follower.leave),
        Stream.fromPull(Effect.succeed(follower.next))
      )
    })
  )

/**
 * A live event of another process.
 *
 * @category models
 * @since 0.1.0
 */
export interface LiveEvent {
  /** The last revision published before the event. */
  readonly after: number
  /** Whether it is the first event of its source. */
  readonly isFirst: boolean
  readonly event: RunEvent
}

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

/**
 * Tracks how much of the current reply a follower has received. Text is split differently for each follower, so it is
 * counted by length.
 *
 * Mutable for speed: each token of each follower passes here.
 *
 * @category models
 * @since 0.1.0
 */
export class Received {
  #text: number
  #thinking: number
  /** Starts and ends of blocks, and whole calls. */
  #marks: number

  constructor([text = 0, thinking = 0, marks = 0]: ReadonlyArray<number> = []) {
    this.#text = text
    this.#thinking = thinking
    this.#marks = marks
  }

  /** The counts, from which a copy can be constructed. */
  get counts(): readonly [text: number, thinking: number, marks: number] {
    return [this.#text, this.#thinking, this.#marks]
  }

  /** Resets the counts for the next reply. */
  clear(): void {
    this.#text = 0
    this.#thinking = 0
    this.#marks = 0
  }

  /** Counts an event of the reply. */
  add(event: RunEvent): void {
    switch (event.type) {
      case "text_chunk":
      case "block_content":
        this.#text += event.text.length
        break
      case "block_start":
      case "block_complete":
        this.#marks++
        break
      case "stream_part":
        if (event.part.type === "reasoning-delta") this.#thinking += event.part.delta.length
        else if (event.part.type === "tool-call") this.#marks++
    }
  }

  /** Returns the part of a reply that has not been received. */
  restOf(reply: ReadonlyArray<RunEvent>): ReadonlyArray<RunEvent> {
    let [text, thinking, marks] = [this.#text, this.#thinking, this.#marks]
    return reply.flatMap((event): ReadonlyArray<RunEvent> => {
      switch (event.type) {
        case "text_chunk":
        case "block_content": {
          const skipped = Math.min(text, event.text.length)
          text -= skipped
          return skipped === event.text.length ? [] : [{ ...event, text: event.text.slice(skipped) }]
        }
        case "block_start":
        case "block_complete":
          return marks-- > 0 ? [] : [event]
        case "stream_part": {
          const { part } = event
          if (part.type === "tool-call") return marks-- > 0 ? [] : [event]
          if (part.type !== "reasoning-delta") return [event]
          const skipped = Math.min(thinking, part.delta.length)
          thinking -= skipped
          return skipped === part.delta.length
            ? []
            : [{ ...event, part: { ...part, delta: part.delta.slice(skipped) } }]
        }
        default:
          return [event]
      }
    })
  }
}

type Failure = RunNotFound | StoreError

type Next = Pull.Pull<Arr.NonEmptyReadonlyArray<RunEvent>, Failure>

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
  /** The events of the current reply. */
  readonly reply: ReadonlyArray<RunEvent>
}

const sources = new WeakMap<RunStore.RunStoreShape, Source>()

/** Returns the source of live events connected to a store, if any. */
const liveElsewhere = (store: RunStore.RunStoreShape): Source | undefined => sources.get(store)

/** One follower, pulled by one fiber. */
class Follower {
  readonly #store: RunStore.RunStoreShape
  readonly #trees: Trees
  readonly #runId: string
  readonly #rootRunId: string
  readonly #isOver: (head: RunStore.RunHead) => boolean
  /** The last revision of which an event was emitted. */
  #last: number
  /** The number of emitted events of that revision, until all are. Live events of one record arrive one by one. */
  #emitted: number | undefined
  /** How much of the current reply was emitted. */
  readonly #received: Received
  #place: Place | undefined
  #tail: Tail | undefined
  readonly #elsewhereLive: Elsewhere

  constructor(
    store: RunStore.RunStoreShape,
    runId: string,
    rootRunId: string,
    options: FollowOptions,
    received: Received
  ) {
    this.#received = received
    this.#store = store
    this.#trees = treesOf(store)
    this.#runId = runId
    this.#rootRunId = rootRunId
    this.#isOver = options.until === "end" ? isOver : isAtRest
    this.#last = options.after ?? 0
    this.#elsewhereLive = new Elsewhere(this.#received)
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

  /** Emits a page of the journal, or decides how to continue at its end. */
  readonly #stored: Next = Effect.suspend((): Next => {
    const joined = this.#join()
    // Events of a record that were not emitted may have been dropped from the log of live events.
    const after = this.#emitted === undefined ? this.#last : this.#last - 1
    const read = Stream.runCollect(Stream.take(this.#store.read(this.#runId, after), page))
    const decided = Effect.map(read, (records) => this.#afterPage(records, joined))
    const parted = Effect.sync(() => {
      if (joined !== undefined && this.#place !== joined) joined.tree.part()
    })
    return Effect.flatten(Effect.ensuring(decided, parted))
  })

  /** Joins the live events before the journal is read, so that no event in between is missed. */
  #join(): Joined | undefined {
    const tree = this.#trees.find(this.#rootRunId)
    const run = tree?.runs.get(this.#runId)
    if (tree === undefined || run === undefined) return undefined
    return { tree, at: tree.join(), published: run.published, reply: run.reply?.events() ?? [] }
  }

  #afterPage(records: ReadonlyArray<RunRecord>, joined: Joined | undefined): Next {
    if (records.length > 0) return this.#emit(this.#eventsOf(records))
    if (joined === undefined) return this.#atEnd
    // Stored events are published a moment later.
    if (joined.published < this.#last) return Effect.andThen(Effect.sleep(10), this.next)
    this.#place = joined
    return this.#emit(this.#begun(joined.reply))
  }

  /** Continues at the end of the journal of a run that is not active here. */
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

  /** Emits records and live events of another process until the run becomes active in this process. */
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

  /** Opens the tail of the journal, merged with live events of other processes if the store delivers them. */
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

  /** Emits the live events after a place, or waits for them. */
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

  #emit(events: ReadonlyArray<RunEvent>): Next {
    return Arr.isReadonlyArrayNonEmpty(events) ? Effect.succeed(events) : this.next
  }
}

/** Number of early live events to keep. Beyond that a follower gets their text from the journal. */
const mostEarly = 10_000

/** Orders the live events of another process for one follower. */
class Elsewhere {
  readonly #received: Received
  #early: Array<LiveEvent> = []
  /** The repeated reply of a new source, until it is longer than the emitted part. */
  #again: Array<RunEvent> | undefined

  constructor(received: Received) {
    this.#received = received
  }

  /** Returns the events that a follower at a revision emits for a live event. */
  take(live: LiveEvent, last: number): ReadonlyArray<RunEvent> {
    const { after, event, isFirst } = live
    if (after > last && this.#early.length < mostEarly) this.#early.push(live)
    if (after !== last) return []
    if (isFirst) this.#again = []
    this.#again?.push(event)
    const rest = this.#again === undefined ? [event] : this.#received.restOf(this.#again)
    if (rest.length > 0) this.#again = undefined
    for (const one of rest) this.#received.add(one)
    return rest
  }

  /** Returns the early events that can be emitted at a revision. */
  due(last: number): ReadonlyArray<RunEvent> {
    if (this.#early.length === 0) return []
    const early = this.#early
    this.#early = []
    return early.flatMap((live) => this.take(live, last))
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

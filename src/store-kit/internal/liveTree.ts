/**
 * The active runs of this process, and the live events for their followers.
 *
 * The followers of a tree share one log of its latest events, so the cost of an event does not depend on the number or
 * speed of followers. A follower that falls behind the log continues from the store. Without followers no events are
 * kept.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { RunEvent } from "../../RunEvent.ts"
import type * as RunStore from "../../RunStore.ts"

/** An active run, as its followers see it. */
export interface Underway {
  /** The last revision whose events are published. */
  readonly published: number
  /** The reply under way, with its events from its beginning. Undefined between replies. */
  readonly reply: { readonly events: () => ReadonlyArray<RunEvent> } | undefined
  /** The calls in flight, with their latest reports. Undefined until one reports. */
  readonly reports: { readonly events: () => ReadonlyArray<RunEvent> } | undefined
}

/** Publishes an event of a run, with the name of its agent. */
export type Publish = (event: RunEvent, agent: string) => void

/** A tree of active runs. Its runs share one object. */
export class LiveTree {
  /** Publishes each event of the tree. Undefined without a listener, so that no events are created. */
  publish: Publish | undefined
  readonly runs = new Map<string, Underway>()
  readonly #trees: Trees
  readonly #own: Publish | undefined
  readonly #capacity: number
  #events: Array<RunEvent> = []
  /** The number of events dropped from the front of the log. */
  #dropped = 0
  #followers = 0
  #read: { readonly place: number; readonly end: number; readonly events: ReadonlyArray<RunEvent> } = nothing
  #waiting: Array<() => void> = []
  /** The context of a follower, whose clock paces the waking of many. */
  #context: Context.Context<never> = Context.empty()
  #isWaking = false

  constructor(trees: Trees, publish: Publish | undefined, capacity: number) {
    this.#trees = trees
    this.#own = publish
    this.#capacity = capacity
    this.publish = publish
  }

  /** Adds a run. The first one makes the tree visible to followers. */
  enter(rootRunId: string, runId: string, run: Underway): void {
    const isFirst = this.runs.size === 0
    this.runs.set(runId, run)
    // Opening wakes followers, which must find the run.
    if (isFirst) this.#trees.open(rootRunId, this)
  }

  /** Removes a run and wakes the followers, because it may continue in another process. */
  leave(rootRunId: string, runId: string): void {
    this.runs.delete(runId)
    if (this.runs.size === 0) this.#trees.close(rootRunId, this)
    this.wake()
  }

  /** Adds a follower. Returns its place in the log. */
  join(): number {
    if (this.#followers++ === 0) {
      const own = this.#own
      this.publish =
        own === undefined ? this.#keep : (event, agent) => void (own(event, agent), this.#keep(event, agent))
    }
    return this.#dropped + this.#events.length
  }

  /** Removes a follower. */
  part(): void {
    if (--this.#followers > 0) return
    this.publish = this.#own
    this.#dropped += this.#events.length
    this.#events = []
  }

  /** Returns the events from a place on. Undefined if some of them were dropped. */
  after(place: number): ReadonlyArray<RunEvent> | undefined {
    if (place < this.#dropped) return undefined
    const end = this.#dropped + this.#events.length
    // Cached, because followers that are woken together read the same events.
    if (this.#read.place !== place || this.#read.end !== end) {
      this.#read = { place, end, events: this.#events.slice(place - this.#dropped) }
    }
    return this.#read.events
  }

  /**
   * Waits for an event after a place, or until the run leaves the tree. Many followers are woken in one batch with a
   * short delay, so that waking takes only a few percent of the time.
   */
  wait(runId: string, place: number): Effect.Effect<void> {
    return Effect.withFiber(({ context }) =>
      Effect.callback((resume) => {
        if (this.#dropped + this.#events.length > place || !this.runs.has(runId)) return resume(Effect.void)
        const wake = () => resume(Effect.void)
        this.#waiting.push(wake)
        this.#context = context
        return Effect.sync(() => {
          this.#waiting = this.#waiting.filter((other) => other !== wake)
        })
      })
    )
  }

  readonly #keep: Publish = (event) => {
    this.#events.push(event)
    if (this.#events.length >= 2 * this.#capacity) {
      this.#events = this.#events.slice(-this.#capacity)
      this.#dropped += this.#capacity
    }
    this.wake()
  }

  /** Wakes the followers that wait, many of them after a short delay. */
  wake(): void {
    if (this.#waiting.length === 0 || this.#isWaking) return
    if (this.#followers <= maxAtOnce) return this.#wakeAll()
    this.#isWaking = true
    const later = Effect.andThen(
      Effect.sleep(this.#followers * pauseMs),
      Effect.sync(() => this.#wakeAll())
    )
    Effect.runForkWith(this.#context)(later)
  }

  #wakeAll(): void {
    this.#isWaking = false
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }
}

const nothing = { place: -1, end: -1, events: [] }

/** Up to this many followers are woken without a delay. */
const maxAtOnce = 16

/** Milliseconds of delay for each follower of a larger group. */
const pauseMs = 0.5

/** The active trees of one store. */
export class Trees {
  readonly #open = new Map<string, LiveTree>()
  readonly #waiting = new Map<string, Set<() => void>>()

  find(rootRunId: string): LiveTree | undefined {
    return this.#open.get(rootRunId)
  }

  open(rootRunId: string, tree: LiveTree): void {
    this.#open.set(rootRunId, tree)
    for (const wake of this.#waiting.get(rootRunId) ?? []) wake()
  }

  close(rootRunId: string, tree: LiveTree): void {
    if (this.#open.get(rootRunId) === tree) this.#open.delete(rootRunId)
  }

  /** Wakes all followers that wait. */
  wake(): void {
    this.#open.forEach((tree) => tree.wake())
    for (const wake of Array.from(this.#waiting.values(), (set) => Array.from(set)).flat()) wake()
  }

  /** Waits until a tree is active in this process, or followers are woken. */
  opened(rootRunId: string): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.#open.has(rootRunId)) return resume(Effect.void)
      const waiting = this.#waiting.get(rootRunId) ?? new Set()
      const leave = () => {
        waiting.delete(wake)
        if (waiting.size === 0) this.#waiting.delete(rootRunId)
      }
      const wake = () => {
        leave()
        resume(Effect.void)
      }
      this.#waiting.set(rootRunId, waiting.add(wake))
      return Effect.sync(leave)
    })
  }
}

/** Returns the active trees of a store. */
export const treesOf = (store: RunStore.RunStoreShape): Trees => {
  let trees = known.get(store)
  if (trees === undefined) known.set(store, (trees = new Trees()))
  return trees
}

/** Shares the active trees of a store with another store that holds the same runs. */
export const shareTrees = (store: RunStore.RunStoreShape, of: RunStore.RunStoreShape): void => {
  known.set(store, treesOf(of))
}

const known = new WeakMap<RunStore.RunStoreShape, Trees>()

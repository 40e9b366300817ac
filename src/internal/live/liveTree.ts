/**
 * The runs under way in this process, and what their followers read.
 *
 * A tree of runs has one log of its latest events, which all followers share: a run pays for an event once, however many
 * followers there are and however slow they are. A follower that falls behind the log continues from the store.
 * Without followers no event is kept.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { RunEvent } from "../../RunEvent.ts"
import type * as RunStore from "../../RunStore.ts"

/** A run under way, as its followers see it. */
export interface Underway {
  /** The revision up to which its events are published. */
  readonly published: number
  /** Emits the reply under way from its beginning. Undefined between replies. */
  readonly reply: (() => ReadonlyArray<RunEvent>) | undefined
}

/** Receives an event of a run of an agent. */
export type Publish = (event: RunEvent, agent: string) => void

/** A tree of runs under way. Its runs share one object. */
export class LiveTree {
  /** Receives each event of the tree. Undefined without a listener: then no event is made. */
  publish: Publish | undefined
  readonly runs = new Map<string, Underway>()
  readonly #trees: Trees
  readonly #own: Publish | undefined
  readonly #capacity: number
  #events: Array<RunEvent> = []
  /** How many events were dropped from the front of the log. */
  #dropped = 0
  #followers = 0
  #read: { readonly place: number; readonly end: number; readonly events: ReadonlyArray<RunEvent> } = nothing
  #waiting: Array<() => void> = []
  /** The context of a follower: its clock measures how long many of them wait. */
  #context: Context.Context<never> = Context.empty()
  #isWaking = false

  constructor(trees: Trees, publish: Publish | undefined, capacity: number) {
    this.#trees = trees
    this.#own = publish
    this.#capacity = capacity
    this.publish = publish
  }

  /** Enters a run. The first one makes the tree visible to followers. */
  enter(rootRunId: string, runId: string, run: Underway): void {
    const isFirst = this.runs.size === 0
    this.runs.set(runId, run)
    // It wakes followers that read at once, and must find the run.
    if (isFirst) this.#trees.open(rootRunId, this)
  }

  /** Leaves a run, and wakes the followers: it may continue elsewhere. */
  leave(rootRunId: string, runId: string): void {
    this.runs.delete(runId)
    if (this.runs.size === 0) this.#trees.close(rootRunId, this)
    this.#wake()
  }

  /** Begins to keep events for a follower. Returns the place from which it reads. */
  join(): number {
    if (this.#followers++ === 0) {
      const own = this.#own
      this.publish =
        own === undefined ? this.#keep : (event, agent) => void (own(event, agent), this.#keep(event, agent))
    }
    return this.#dropped + this.#events.length
  }

  /** Ends a follower. */
  part(): void {
    if (--this.#followers > 0) return
    this.publish = this.#own
    this.#dropped += this.#events.length
    this.#events = []
  }

  /** The events from a place on. Undefined when some of them were dropped. */
  after(place: number): ReadonlyArray<RunEvent> | undefined {
    if (place < this.#dropped) return undefined
    const end = this.#dropped + this.#events.length
    // Followers that are woken together read the same events.
    if (this.#read.place !== place || this.#read.end !== end) {
      this.#read = { place, end, events: this.#events.slice(place - this.#dropped) }
    }
    return this.#read.events
  }

  /**
   * Waits for an event after a place, or for the end of a run. Many followers are woken together and a little later, so
   * that waking them takes no more than a few hundredths of the time.
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
    this.#wake()
  }

  #wake(): void {
    if (this.#waiting.length === 0 || this.#isWaking) return
    if (this.#followers <= few) return this.#wakeAll()
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

/** So many followers are woken at once. */
const few = 16

/** How long each of more followers lets all wait. */
const pauseMs = 0.5

/** The trees under way on one store. */
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

  /** Waits until a tree is under way in this process. */
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

/** The trees under way on a store. */
export const treesOf = (store: RunStore.RunStoreShape): Trees => {
  let trees = known.get(store)
  if (trees === undefined) known.set(store, (trees = new Trees()))
  return trees
}

/** Shows the trees under way on one store to the followers of another one, which holds the same runs. */
export const shareTrees = (store: RunStore.RunStoreShape, of: RunStore.RunStoreShape): void => {
  known.set(store, treesOf(of))
}

const known = new WeakMap<RunStore.RunStoreShape, Trees>()

/**
 * The places of a driver: how many runs it drives at once, and who takes the next one.
 *
 * A party takes another place only while it holds few places compared to those that are free, so that other parties find
 * one even if its runs never end. Parties that wait take turns.
 */

import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Turns from "./turns.ts"

/** The places of a driver. */
export interface Places {
  /** Returns whether all places are taken. */
  readonly isFull: () => boolean
  /** Returns whether a run of these parties may take a place now. */
  readonly admits: (parties: Turns.Parties) => boolean
  /** Waits until a place becomes free. One that became free since the last wait ends it at once. */
  readonly freed: Effect.Effect<void>
  /** Holds a place during the work. Waits for its turn first. */
  readonly hold: <A, E, R>(parties: Turns.Parties, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** A fiber that waits for a place. */
interface Waiter {
  readonly turn: Latch.Latch
  isAdmitted: boolean
}

/** Creates free places. A party alone can hold the part `share` of them. */
export const make = (size: number, share: number): Places => {
  const held = new Map<string, number>()
  const waiters = Turns.make<Waiter>()
  const changed = Latch.makeUnsafe()
  // With this factor a party alone holds its share when it is no longer admitted.
  const perFree = share / (1 - share)
  let free = size

  const admits: Places["admits"] = (parties) =>
    free >= 1 && keysOf(parties).every((key) => (held.get(key) ?? 0) < free * perFree)
  const take = (parties: Turns.Parties) => {
    free--
    for (const key of keysOf(parties)) held.set(key, (held.get(key) ?? 0) + 1)
  }
  const giveBack = (parties: Turns.Parties) => {
    free++
    for (const key of keysOf(parties)) {
      const left = (held.get(key) ?? 0) - 1
      if (left > 0) held.set(key, left)
      else held.delete(key)
    }
    for (let next = waiters.next(admits); next !== undefined; next = waiters.next(admits)) {
      take(next.parties)
      next.item.isAdmitted = true
      next.item.turn.openUnsafe()
    }
    changed.openUnsafe()
  }
  const entered = (
    parties: Turns.Parties,
    restore: <A, E, R>(wait: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  ) =>
    Effect.suspend(() => {
      if (admits(parties)) return Effect.sync(() => take(parties))
      const waiter = { turn: Latch.makeUnsafe(), isAdmitted: false }
      waiters.add(parties, waiter)
      return Effect.onInterrupt(restore(waiter.turn.await), () =>
        Effect.sync(() => (waiter.isAdmitted ? giveBack(parties) : waiters.remove(parties, waiter)))
      )
    })

  return {
    isFull: () => free < 1,
    admits,
    // A place that becomes free during a query is noticed after the query.
    freed: Effect.andThen(
      changed.await,
      Effect.sync(() => void changed.closeUnsafe())
    ),
    hold: (parties, work) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.andThen(
          entered(parties, restore),
          Effect.ensuring(
            restore(work),
            Effect.sync(() => giveBack(parties))
          )
        )
      )
  }
}

/** Returns a key for each party, which differs for parties of the same name within different ones. */
const keysOf = (parties: Turns.Parties): ReadonlyArray<string> =>
  parties.map((_, index) => JSON.stringify(parties.slice(0, index + 1)))

/**
 * Places that are shared between parties, such as the callers of a server: who takes the next one.
 *
 * A party takes another place only while it holds few places compared to those that are free, so that other parties find
 * one even if its work never ends. Parties that wait take turns.
 */

import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Turns from "./turns.ts"

/** Places that are free or held. */
export interface Places {
  /** Returns whether all places are taken. */
  readonly isFull: () => boolean
  /** Returns whether work for these parties may take its places now. Default: one place. */
  readonly admits: (parties: Turns.Parties, count?: number) => boolean
  /** Waits until a place becomes free. One that became free since the last wait ends it at once. */
  readonly freed: Effect.Effect<void>
  /** Holds places during the work, all of them for work that is larger. Waits for its turn first. Default: one place. */
  readonly hold: <A, E, R>(
    parties: Turns.Parties,
    work: Effect.Effect<A, E, R>,
    count?: number
  ) => Effect.Effect<A, E, R>
}

/** A fiber that waits for places. */
interface Waiter {
  readonly count: number
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

  const admits = (parties: Turns.Parties, count = 1) =>
    free >= count && keysOf(parties).every((key) => (held.get(key) ?? 0) < free * perFree)
  const admitsWaiter = (parties: Turns.Parties, { count }: Waiter) => admits(parties, count)
  const take = (parties: Turns.Parties, count: number) => {
    free -= count
    add(held, parties, count)
  }
  const giveBack = (parties: Turns.Parties, count: number) => {
    free += count
    add(held, parties, -count)
    for (let next = waiters.next(admitsWaiter); next !== undefined; next = waiters.next(admitsWaiter)) {
      take(next.parties, next.item.count)
      next.item.isAdmitted = true
      next.item.turn.openUnsafe()
    }
    changed.openUnsafe()
  }
  const entered = (
    parties: Turns.Parties,
    count: number,
    restore: <A, E, R>(wait: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  ) =>
    Effect.suspend(() => {
      if (admits(parties, count)) return Effect.sync(() => take(parties, count))
      const waiter: Waiter = { count, turn: Latch.makeUnsafe(), isAdmitted: false }
      waiters.add(parties, waiter)
      return Effect.onInterrupt(restore(waiter.turn.await), () =>
        Effect.sync(() => (waiter.isAdmitted ? giveBack(parties, count) : waiters.remove(parties, waiter)))
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
    hold: (parties, work, wanted = 1) =>
      Effect.uninterruptibleMask((restore) => {
        const count = Math.min(wanted, size)
        return Effect.andThen(
          entered(parties, count, restore),
          Effect.ensuring(
            restore(work),
            Effect.sync(() => giveBack(parties, count))
          )
        )
      })
  }
}

/** Adds to the places that each party holds. */
const add = (held: Map<string, number>, parties: Turns.Parties, count: number): void => {
  for (const key of keysOf(parties)) {
    const sum = (held.get(key) ?? 0) + count
    if (sum > 0) held.set(key, sum)
    else held.delete(key)
  }
}

/** Returns a key for each party, which differs for parties of the same name within different ones. */
const keysOf = (parties: Turns.Parties): ReadonlyArray<string> =>
  parties.map((_, index) => JSON.stringify(parties.slice(0, index + 1)))

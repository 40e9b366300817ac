/**
 * Bounds the runs of a caller that wait for a worker.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Caller } from "../../Caller.ts"
import { QueueFull, type StoreError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { RunStoreShape } from "../../RunStore.ts"

/** Admits a new run of a caller. Fails if too many of its runs wait already. */
export type Admit = (caller: Caller) => Effect.Effect<void, QueueFull | StoreError>

/** How many more runs of a caller this process admits before it counts again, as it was counted a moment ago. */
interface Room {
  left: number
  /** Whether these are all that may wait, so that no count finds more. */
  readonly isAll: boolean
  readonly until: number
}

/**
 * Creates the bound of a process. Waiting runs are counted in the store once in five seconds for each caller, and after
 * each eighth of the free room, so that most admissions and refusals cost no query. Of several processes, each one may
 * exceed the bound by what it admits without a count.
 */
export const make = (store: RunStoreShape): Admit => {
  const rooms = new Map<string, Room>()
  return Effect.fnUntraced(function* (caller) {
    const { waitingRuns } = yield* Limits
    if (waitingRuns === Infinity) return
    const key = JSON.stringify([caller.tenant, caller.id])
    const now = yield* Clock.currentTimeMillis
    const known = rooms.get(key)
    const isKnown = known !== undefined && known.until > now && (known.left > 0 || known.isAll)
    const room = isKnown ? known : yield* count(store, caller, waitingRuns, now)
    if (room !== known) {
      if (rooms.size >= mostRooms) rooms.clear()
      rooms.set(key, room)
    }
    if (room.left <= 0) return yield* new QueueFull({ caller: caller.id, limit: waitingRuns, retryAt: room.until })
    room.left--
  })
}

const count = (store: RunStoreShape, { id, tenant }: Caller, limit: number, now: number) =>
  Effect.map(store.list({ status: ["queued"], roots: true, caller: id, tenant, limit }), (heads): Room => {
    const free = limit - heads.length
    const left = Math.min(free, Math.max(fewest, Math.ceil(free / 8)))
    return { left, isAll: left === free, until: now + countedFor }
  })

/** Runs that a process admits at least before it counts again. */
const fewest = 16

const countedFor = 5_000

/** Callers whose runs are counted, after which all are counted again. */
const mostRooms = 10_000

/**
 * The schedules of a store: lists them, pauses and resumes them, and starts a run at once.
 *
 * `Kernel.schedule` stores how a schedule is defined, so any process of the store operates it, also one that does not have
 * its agent. A paused schedule starts no run, in no process, until it is resumed; the times in between are left out.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Cron from "effect/Cron"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { nextTime } from "./internal/kernel/cronSchedule.ts"
import { fork } from "./internal/kernel/fork.ts"
import { offer } from "./internal/kernel/queue.ts"
import * as Stored from "./internal/kernel/storedSchedules.ts"
import type { CancelOptions } from "./RunOptions.ts"
import { type ForkError, type OfferError, ScheduleNotFound, type StoreError } from "./KernelError.ts"
import { type RunHead, RunStore, type RunStoreShape } from "./RunStore.ts"
import { emitOffer } from "./store-kit/Offers.ts"

export { ScheduleNotFound }
export type { Pause } from "./internal/kernel/storedSchedules.ts"

/**
 * A schedule, and what became of it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Schedule extends Stored.Definition {
  /** Set while it is paused. */
  readonly paused?: Stored.Pause
  /** Its next time, in milliseconds since the epoch. Absent while it is paused. */
  readonly next?: number
  /** The run that it started last. */
  readonly last?: RunHead
}

/**
 * Selects schedules.
 *
 * @category models
 * @since 0.1.0
 */
export interface Filter {
  readonly agent?: string | undefined
  readonly tenant?: string | undefined
}

/**
 * Returns the schedules of the store, by name.
 *
 * @example
 * for (const { name, next, paused } of yield* Schedules.list()) yield* Console.log(name, paused?.reason ?? next)
 *
 * @category running
 * @since 0.1.0
 */
export const list = Effect.fn("Schedules.list")(function* (
  filter: Filter = {}
): Effect.fn.Return<ReadonlyArray<Schedule>, StoreError, RunStore> {
  const store = yield* RunStore
  const { notes } = store
  if (notes === undefined) return []
  const now = yield* Clock.currentTimeMillis
  const all = (yield* Stored.all(notes)).filter(
    ([{ agent, tenant }]) => agent === (filter.agent ?? agent) && tenant === (filter.tenant ?? tenant)
  )
  return yield* Effect.forEach(all, ([definition, paused]) =>
    Effect.map(lastRun(store, definition.name), (last): Schedule => {
      const next = paused === undefined ? nextOf(definition, now) : undefined
      return {
        ...definition,
        ...(paused === undefined ? {} : { paused }),
        ...(next === undefined ? {} : { next }),
        ...(last === undefined ? {} : { last })
      }
    })
  )
})

/**
 * Pauses a schedule: none of its next times starts a run. Pausing it again replaces the reason.
 *
 * @category running
 * @since 0.1.0
 */
export const pause = Effect.fn("Schedules.pause")(function* (
  name: string,
  { by, reason }: Pick<CancelOptions, "by" | "reason"> = {}
): Effect.fn.Return<void, ScheduleNotFound | StoreError, RunStore> {
  const { notes } = yield* known(name)
  const at = yield* Clock.currentTimeMillis
  yield* Stored.setPause(notes, name, {
    at,
    ...(by === undefined ? {} : { by }),
    ...(reason === undefined ? {} : { reason })
  })
})

/**
 * Resumes a paused schedule from its next time on.
 *
 * @category running
 * @since 0.1.0
 */
export const resume = Effect.fn("Schedules.resume")(function* (
  name: string
): Effect.fn.Return<void, ScheduleNotFound | StoreError, RunStore> {
  yield* Stored.setPause((yield* known(name)).notes, name, undefined)
})

/**
 * Starts a run of a schedule now, also of a paused one, and returns its id. It begins as the last run of the schedule
 * did, so it needs no process with the agent: a worker runs it. Fails with `ScheduleNotFound` of reason `never_ran` if
 * there is no last run.
 *
 * @category running
 * @since 0.1.0
 */
export const run = Effect.fn("Schedules.run")(function* (
  name: string
): Effect.fn.Return<string, ScheduleNotFound | ForkError | OfferError, RunStore> {
  const { store } = yield* known(name)
  const last = yield* lastRun(store, name)
  if (last === undefined) return yield* new ScheduleNotFound({ name, reason: "never_ran" })
  const runId = `${name}@${new Date(yield* Clock.currentTimeMillis).toISOString()}`
  yield* fork(store, last.runId, { revision: 1, runId })
  yield* offer(store, runId, "schedule")
  emitOffer(store, runId)
  return runId
})

/**
 * Removes a schedule that no process has any more from the list. One that a process has is listed again once that process
 * starts anew. Its runs stay.
 *
 * @category running
 * @since 0.1.0
 */
export const remove = Effect.fn("Schedules.remove")(function* (
  name: string
): Effect.fn.Return<void, ScheduleNotFound | StoreError, RunStore> {
  yield* Stored.forget((yield* known(name)).notes, name)
})

/** Returns the store and its notes if it has a schedule. */
const known = Effect.fnUntraced(function* (name: string) {
  const store = yield* RunStore
  const { notes } = store
  const all = notes === undefined ? [] : yield* Stored.all(notes)
  return notes !== undefined && all.some(([schedule]) => schedule.name === name)
    ? { notes, store }
    : yield* new ScheduleNotFound({ name, reason: "unknown" })
})

/** Returns the run that a schedule started last. The ids of another one may begin alike. */
const lastRun = (store: RunStoreShape, name: string): Effect.Effect<RunHead | undefined, StoreError> =>
  Effect.map(store.list({ prefix: `${name}@`, roots: true, limit: 20 }), (heads) =>
    heads.find(({ runId }) => isTime(runId.slice(name.length + 1)))
  )

const isTime = (text: string): boolean => /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)

const nextOf = ({ cron, timeZone }: Stored.Definition, now: number): number | undefined => {
  const parsed = Cron.parse(cron, timeZone)
  return Result.isFailure(parsed) ? undefined : Option.getOrUndefined(nextTime(parsed.success, cron, now))
}

/**
 * Submits runs at the times of a cron expression, also where clocks are put forward and back.
 *
 * An expression whose hours begin with `*` is an interval: it runs at every instant whose local time matches, so also
 * in the hour that is repeated in autumn, and at no other time in spring. Other expressions name times of the day, each
 * of which comes once a day: at its first occurrence in autumn, and shifted in spring if it does not exist.
 */

import * as Clock from "effect/Clock"
import * as Cron from "effect/Cron"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import { ConfigInvalid, type StoreError } from "../../KernelError.ts"
import type { ScheduleOptions } from "../../RunOptions.ts"
import type { Notes } from "../../RunStore.ts"
import { flat } from "../../kit/text.ts"
import { type Definition, define, isPaused } from "./storedSchedules.ts"

/** A schedule as it is stored, and how late a run may start. */
interface Times extends Definition {
  readonly late: Duration.Input | undefined
}

/** Returns the times of a schedule of an agent. */
export const timesOf = (agent: string, { caller, cron, late, name, timeZone }: ScheduleOptions): Times => ({
  name,
  agent,
  ...(caller?.tenant === undefined ? {} : { tenant: caller.tenant }),
  cron,
  ...(timeZone === undefined ? {} : { timeZone }),
  late
})

/**
 * Calls `submit` at each scheduled time, with an id that is the same in every process, so that a store accepts only one
 * run. If the store fails, `submit` is retried until the time is too late. With notes, the schedule is stored in them, and
 * starts nothing while they say that it is paused.
 */
export const schedule = <E extends { readonly _tag: string; readonly message: string }, R>(
  { late: limit, ...times }: Times,
  notes: Notes | undefined,
  submit: (runId: string) => Effect.Effect<unknown, E, R>
): Effect.Effect<never, E | ConfigInvalid | StoreError, R> =>
  Effect.gen(function* () {
    const parsed = Cron.parse(times.cron, times.timeZone)
    if (Result.isFailure(parsed)) return yield* new ConfigInvalid({ path: "cron", reason: parsed.failure.message })
    const late = Duration.toMillis(limit ?? "1 minute")
    if (notes !== undefined) yield* Effect.catch(define(notes, times), notListed(times.name))
    let after = (yield* Clock.currentTimeMillis) - late
    for (;;) {
      const next = nextTime(parsed.success, times.cron, after)
      if (Option.isNone(next)) return yield* new ConfigInvalid({ path: "cron", reason: "no date matches it" })
      const at = next.value
      yield* until(at)
      const runId = `${times.name}@${new Date(at).toISOString()}`
      yield* unlessPaused(notes, times.name, submit(runId)).pipe(
        Effect.tapError((error) =>
          error._tag === "StoreError"
            ? Effect.logWarning(`run ${flat(runId)} was not submitted`, error.message)
            : Effect.void
        ),
        Effect.retry({
          while: ({ _tag }) => _tag === "StoreError",
          schedule: Schedule.upTo(Schedule.spaced("5 seconds"), { duration: late })
        }),
        // Another process submitted the run, or it is too late.
        Effect.catchIf(
          ({ _tag }) => _tag === "RunExists" || _tag === "StoreError",
          () => Effect.void
        )
      )
      after = Math.max(at, (yield* Clock.currentTimeMillis) - late)
    }
  })

/** Starts a run unless its schedule is paused. */
const unlessPaused = <E, R>(
  notes: Notes | undefined,
  name: string,
  submitted: Effect.Effect<unknown, E, R>
): Effect.Effect<unknown, E | StoreError, R> =>
  notes === undefined
    ? submitted
    : Effect.flatMap(isPaused(notes, name), (isPaused) => (isPaused ? Effect.void : submitted))

const notListed = (name: string) => (error: StoreError) =>
  Effect.logWarning(`schedule ${flat(name)} is not listed`, error.message)

/** Waits until an instant of the clock, which may be changed in the meantime. */
const until = (at: number): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    now >= at ? Effect.void : Effect.andThen(Effect.sleep(Math.min(at - now, hour)), until(at))
  )

const hour = 3_600_000

// ---------------------------------------------------------------- times

/**
 * Returns the next time after an instant, both in milliseconds since the epoch, if there is one: an expression may name
 * a date that does not exist, such as 31 February. `text` is the parsed expression.
 */
export const nextTime: (cron: Cron.Cron, text: string, after: number) => Option.Option<number> = Option.liftThrowable(
  (cron, text, after) => (isInterval(text) ? nextMatch(cron, after) : Cron.next(cron, new Date(after)).getTime())
)

/** Returns whether the hours of an expression begin with `*`. They stand before its last three fields. */
const isInterval = (text: string): boolean => text.trim().split(/\s+/).at(-4)?.startsWith("*") === true

/** Returns the next instant whose local time matches. Minutes are tried one by one near the start, and jumped to later. */
const nextMatch = (cron: Cron.Cron, after: number): number => {
  const [first = 0, ...rest] = cron.seconds.size === 0 ? everySecond : cron.seconds
  let minute = minuteOf(after)
  for (let jump = 0; jump < mostJumps; jump++) {
    for (let tried = 0; tried < attempts; tried++, minute += minuteMs) {
      if (!Cron.match(cron, new Date(minute + first * 1_000))) continue
      const found = [first, ...rest].map((second) => minute + second * 1_000).filter((at) => at > after)
      if (found.length > 0) return Math.min(...found)
    }
    minute = Math.max(minute, minuteOf(Cron.next(cron, new Date(minute - 1)).getTime()))
  }
  return minute + first * 1_000
}

const minuteMs = 60_000

const minuteOf = (at: number): number => Math.floor(at / minuteMs) * minuteMs

const everySecond: ReadonlyArray<number> = Array.from({ length: 60 }, (_, second) => second)

/** Minutes tried before a jump: the repeated hour, with room around it. */
const attempts = 180

/** Each jump leads to a match, unless clocks are put forward there. */
const mostJumps = 10

/**
 * Computes the times of a cron expression where clocks are put forward and back.
 *
 * An expression whose hours begin with `*` is an interval: it runs at every instant whose local time matches, so also
 * in the hour that is repeated in autumn, and at no other time in spring. Other expressions name times of the day, each
 * of which comes once a day: at its first occurrence in autumn, and shifted in spring if it does not exist.
 */

import * as Cron from "effect/Cron"
import * as Option from "effect/Option"

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

/**
 * Computes the times of a cron expression where clocks are put forward and back.
 *
 * An expression whose hours begin with `*` is an interval: it runs at every instant whose local time matches, so also
 * in the hour that is repeated in autumn, and at no other time in spring. Other expressions name times of the day, each
 * of which comes once a day: at its first occurrence in autumn, and shifted in spring if it does not exist.
 */

import * as Cron from "effect/Cron"

/** Returns the next time after an instant, both in milliseconds since the epoch. `text` is the parsed expression. */
export const nextTime = (cron: Cron.Cron, text: string, after: number): number =>
  isInterval(text) ? nextMatch(cron, after) : Cron.next(cron, new Date(after)).getTime()

/** Returns whether the hours of an expression begin with `*`. They stand before its last three fields. */
const isInterval = (text: string): boolean => text.trim().split(/\s+/).at(-4)?.startsWith("*") === true

/** Returns the next instant whose local time matches. Instants are tried one by one near the start, and jumped to later. */
const nextMatch = (cron: Cron.Cron, after: number): number => {
  const [second = 0] = cron.seconds
  const step = cron.seconds.size === 1 ? 60_000 : 1_000
  const offset = (second * 1_000) % step
  let from = Math.floor((after - offset) / step) * step + step + offset
  for (let jump = 0; jump < mostJumps; jump++) {
    const until = from + attempts * step
    for (let at = from; at < until; at += step) if (Cron.match(cron, new Date(at))) return at
    from = Math.max(until, Cron.next(cron, new Date(until - step)).getTime())
  }
  return from
}

/** Instants tried before a jump: the repeated hour by minutes, with room around it. */
const attempts = 180

/** Each jump leads to a match, unless clocks are put forward there. */
const mostJumps = 10

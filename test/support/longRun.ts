/**
 * Slow cases of which `npm test` runs a part: `npm run reliability` runs them all.
 */

/** The variable by which the long run asks for all cases. */
export const variable = "LONG_RUN"

/** Whether this is the long run. */
export const isLong = process.env[variable] !== undefined

/** Returns how often a case is tried: in the long run, and in `npm test`. */
export const times = (whole: number, quick: number): number => (isLong ? whole : quick)

/** Returns all cases in the long run, and in `npm test` those that are quick. */
export const quickly = <A>(cases: ReadonlyArray<A>, isQuick: (one: A) => boolean): ReadonlyArray<A> =>
  isLong ? cases : cases.filter(isQuick)

/** The share of the cases that this process runs beside others: the first of two processes has `0/2`. */
const [share = 0, processes = 1] = (process.env["SHARE"] ?? "0/1").split("/").map(Number)

/** Returns the cases that are this process's share. */
export const shared = <A>(cases: ReadonlyArray<A>): ReadonlyArray<A> =>
  cases.filter((_, index) => index % processes === share)

/** Returns seeds from a first one on: so many in the long run, and in `npm test`. */
export const seedsFrom = (first: number, whole: number, quick: number): ReadonlyArray<number> =>
  shared(Array.from({ length: times(whole, quick) }, (_, index) => first + index))

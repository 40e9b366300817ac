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

/**
 * How often a property is tried: on 200 cases, in the long run on 1,000 or as many as it asks for.
 */
import * as LongRun from "./longRun.ts"

/** The variable by which the long run asks for more. */
export const variable = "PROPERTY_CASES"

const count = Number(process.env[variable] ?? LongRun.times(1_000, 200))

/** The options of a property. Of one that plays whole conversations a share of the cases is enough. */
export const cases = (share = 1) => ({
  arbitrary: { runs: Math.max(1, Math.ceil(count * share)) },
  timeout: Math.max(40_000, count * 20)
})

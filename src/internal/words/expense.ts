/**
 * Sums of what model calls used and cost.
 */

import * as Usage from "../../Usage.ts"

/** Adds an expense to a sum, or begins one. */
export const plus = (sum: Usage.Expense | undefined, { costUsd, usage }: Usage.Expense): Usage.Expense =>
  sum === undefined ? { usage, costUsd } : { usage: Usage.add(sum.usage, usage), costUsd: sum.costUsd + costUsd }

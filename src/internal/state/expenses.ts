/**
 * Expenses of records: what model calls used, and its cost.
 */

import type { PhaseEvent, RunRecord } from "../../RunRecord.ts"
import * as Usage from "../../Usage.ts"

/** Adds an expense to a sum, if there is one yet. */
export const plusExpense = (sum: Usage.Expense | undefined, { costUsd, usage }: Usage.Expense): Usage.Expense =>
  sum === undefined
    ? Usage.expense(usage, costUsd)
    : Usage.expense(Usage.add(sum.usage, usage), Usage.addCost(sum.costUsd, costUsd))

/** Returns the sum of what records count for their run. Undefined if they count nothing. */
export const expenseOf = (records: ReadonlyArray<Pick<RunRecord, "delta" | "events">>): Usage.Expense | undefined =>
  records
    .flatMap(({ delta, events }) => [
      delta.spent,
      ...(delta.resolved ?? []).map(({ spent }) => spent),
      ...events.map(ofEvent)
    ])
    .reduce<Usage.Expense | undefined>((sum, spent) => (spent === undefined ? sum : plusExpense(sum, spent)), undefined)

const ofEvent = (event: PhaseEvent): Usage.Expense | undefined => {
  switch (event.type) {
    case "turn_prepared":
    case "tool_call_completed":
      return event.spent
    case "model_completed":
      return event.usage === null ? undefined : Usage.expense(event.usage, event.costUsd)
    default:
      return undefined
  }
}

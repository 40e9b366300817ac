/**
 * Plans in few words.
 */
import type { Plan } from "kernai"

export const task = (id: string, dependsOn: ReadonlyArray<string> = [], parallel = false): Plan.Task => ({
  id,
  input: `do ${id}`,
  parallel,
  dependsOn,
  status: "pending"
})

export const plan = (tasks: ReadonlyArray<Plan.Task>, strategy: Plan.Strategy = "mixed"): Plan.Plan => ({
  goal: "g",
  strategy,
  tasks
})

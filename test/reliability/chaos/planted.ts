/**
 * Faults that are planted in the processes, to prove that the chaos finds them, each with the rule it breaks.
 */
export const planted = [
  { name: "retries calls in flight", rule: "writes_once" },
  { name: "leaves calls in flight", rule: "innocent_failed" },
  { name: "forgets to continue", rule: "stuck" }
] as const

export type Planted = (typeof planted)[number]["name"]

/**
 * What a run may spend, and how many runs it may start (CP-15).
 *
 * @since 0.1.0
 */

/** Limits of one run and its children; an absent one is no limit. */
export interface ExecutionBudget {
  readonly maxTokens?: number
  readonly maxCostUsd?: number
  /** The same limit as an agent's `maxSteps` (DR-20). */
  readonly maxTurns?: number
  /** Milliseconds from the start of the run (DR-21); `deadline_s` on the wire. */
  readonly deadlineMs?: number
}

/** Limits of a whole tree of runs; the root counts as one agent at depth 0. */
export interface SpawnBudget {
  readonly maxAgents: number
  readonly maxDepth: number
}

/** What was used so far, children included. */
export interface Spent {
  readonly tokens: number
  readonly costUsd: number
}

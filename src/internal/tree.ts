/**
 * What a whole tree of runs shares: its counters and its slots (CP-15).
 *
 * Tokens and money are counted once, for the root and all its children, and
 * reserved before a model is called: two children that start together cannot
 * both spend the last of a budget.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { ExecutionBudget, SpawnBudget } from "../Budget.ts"
import { BudgetExhaustedError, SpawnDenied } from "../KernelError.ts"
import type { Price } from "../Model.ts"
import type { RunState } from "../RunState.ts"
import * as Usage from "../Usage.ts"

export interface Tree {
  readonly budget: ExecutionBudget
  readonly spawn: SpawnBudget
  /** Slots for child runs; the root holds one for itself. */
  readonly slots: Semaphore.Semaphore
  tokens: number
  costUsd: number
  /** Model calls under way, each counted as one of the size of the last. */
  reserved: number
  lastTokens: number
  lastCostUsd: number
  /** Those waiting for calls under way to end before they may call. */
  readonly waiting: Set<() => void>
}

export const make = (
  budget: ExecutionBudget,
  spawn: SpawnBudget,
  spent: { readonly tokens: number; readonly costUsd: number }
): Tree => ({
  budget,
  spawn,
  slots: Semaphore.makeUnsafe(Math.max(0, spawn.maxAgents - 1)),
  tokens: spent.tokens,
  costUsd: spent.costUsd,
  reserved: 0,
  lastTokens: 0,
  lastCostUsd: 0,
  waiting: new Set()
})

/** Whether the tree has a budget at all: without one nothing is counted against it. */
export const isBounded = (tree: Tree): boolean =>
  tree.budget.maxTokens !== undefined || tree.budget.maxCostUsd !== undefined

/**
 * Takes leave to call a model. Fails when the budget is used up; waits while
 * calls under way may use up what is left.
 */
export const reserve = (tree: Tree): Effect.Effect<void, BudgetExhaustedError> =>
  Effect.suspend(() => {
    const used = exhausted(tree, tree.tokens, tree.costUsd)
    if (used !== undefined) return Effect.fail(used)
    const ahead = exhausted(
      tree,
      tree.tokens + tree.reserved * tree.lastTokens,
      tree.costUsd + tree.reserved * tree.lastCostUsd
    )
    if (ahead === undefined || tree.reserved === 0) {
      tree.reserved++
      return Effect.void
    }
    return Effect.flatMap(turnOver(tree), () => reserve(tree))
  })

/** Gives back the leave and counts what the call used. */
export const settle = (tree: Tree, usage: Usage.Usage | null, costUsd: number): void => {
  tree.reserved--
  const tokens = usage === null ? 0 : Usage.total(usage)
  tree.tokens += tokens
  tree.costUsd += costUsd
  if (tokens > 0) tree.lastTokens = tokens
  if (costUsd > 0) tree.lastCostUsd = costUsd
  for (const wake of tree.waiting) wake()
}

/** The error of a budget that a finished call went over (used > limit). */
export const overrun = (tree: Tree): BudgetExhaustedError | undefined => {
  const { maxCostUsd, maxTokens } = tree.budget
  if (maxTokens !== undefined && tree.tokens > maxTokens) {
    return new BudgetExhaustedError({ dimension: "tokens", used: tree.tokens, limit: maxTokens })
  }
  if (maxCostUsd !== undefined && tree.costUsd > maxCostUsd) {
    return new BudgetExhaustedError({ dimension: "cost", used: tree.costUsd, limit: maxCostUsd })
  }
  return undefined
}

/** What a call costs by the model's price, 0 without one. */
export const costOf = (usage: Usage.Usage | null, price: Price | undefined): number =>
  usage === null || price === undefined ? 0 : Usage.cost(usage, price)

/** Runs a child in a slot of the tree; waits for a slot, but never goes deeper than allowed. */
export const inSlot = <A, E, R>(
  tree: Tree,
  parentRun: string,
  depth: number,
  child: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SpawnDenied, R> =>
  depth > tree.spawn.maxDepth
    ? Effect.fail(new SpawnDenied({ parentRun, limit: tree.spawn.maxDepth }))
    : tree.spawn.maxAgents < 2
      ? Effect.fail(new SpawnDenied({ parentRun, limit: tree.spawn.maxAgents }))
      : tree.slots.withPermits(1)(child)

const exhausted = (tree: Tree, tokens: number, costUsd: number): BudgetExhaustedError | undefined => {
  const { maxCostUsd, maxTokens } = tree.budget
  if (maxTokens !== undefined && tokens >= maxTokens) {
    return new BudgetExhaustedError({ dimension: "tokens", used: tokens, limit: maxTokens })
  }
  if (maxCostUsd !== undefined && costUsd >= maxCostUsd) {
    return new BudgetExhaustedError({ dimension: "cost", used: costUsd, limit: maxCostUsd })
  }
  return undefined
}

const turnOver = (tree: Tree): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const wake = () => {
      tree.waiting.delete(wake)
      resume(Effect.void)
    }
    tree.waiting.add(wake)
    return Effect.sync(() => tree.waiting.delete(wake))
  })

/** What a stored run used before (CP-15). */
export const spentOf = (state: RunState | undefined): { readonly tokens: number; readonly costUsd: number } =>
  state === undefined ? { tokens: 0, costUsd: 0 } : { tokens: Usage.total(state.usage), costUsd: state.costUsd }

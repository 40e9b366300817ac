/**
 * The budget that a whole tree of runs shares: its counters and its slots.
 *
 * Tokens and cost are counted for the root and all its children together, and reserved before a model call. A call in
 * progress counts as much as the largest call at its depth so far. Calls therefore run concurrently only if they would
 * also have been made one after the other.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import * as Budget from "../../Budget.ts"
import type { ExecutionBudget, SpawnBudget, Spent } from "../../Budget.ts"
import type { BudgetExhaustedError, SpawnDenied } from "../../KernelError.ts"
import type { RunState } from "../../RunState.ts"
import * as Usage from "../../Usage.ts"

/** The budget of a tree of runs, and its counters. */
export interface TreeBudget {
  readonly budget: ExecutionBudget
  /** The budget of the caller, for a called agent with limits of its own. Usage counts for both. */
  readonly outer: TreeBudget | undefined
  readonly spawn: SpawnBudget
  /** The ids of all child runs of the tree. Absent until they are read from the store. */
  children?: Set<string>
  /** Slots for child runs. The root occupies one itself. Created with the first child. */
  slots?: Semaphore.Semaphore
  spent: Spent
  /** By depth: the number of model calls in progress, and the usage of the largest. */
  readonly levels: Array<Level>
  /** Wakes callers that wait for calls in progress to end. */
  waiting: Array<() => void>
}

/** Creates the budget of a tree that has already spent this much. */
export const make = (budget: ExecutionBudget, spawn: SpawnBudget, spent: Spent): TreeBudget => ({
  budget,
  outer: undefined,
  spawn,
  spent,
  levels: [],
  waiting: []
})

/**
 * Returns the budget of a called agent inside that of its caller. An agent without limits shares the caller's budget.
 */
export const within = (outer: TreeBudget, budget: ExecutionBudget, spent: Spent): TreeBudget =>
  hasLimit(budget) ? { ...make(budget, outer.spawn, spent), outer } : outer

/** Returns whether the tree has any limit of tokens or cost. */
export const isBounded = (tree: TreeBudget): boolean =>
  hasLimit(tree.budget) || (tree.outer !== undefined && isBounded(tree.outer))

/** Returns the error of a budget that is used up (used >= limit), so that no call may be made. */
export const exhausted = (tree: TreeBudget): BudgetExhaustedError | undefined =>
  Budget.beforeCall(tree.budget, tree.spent) ?? (tree.outer && exhausted(tree.outer))

/** Returns whether the budget is used up. */
export const isUsedUp = (tree: TreeBudget): boolean => exhausted(tree) !== undefined

/**
 * Makes a model call under a reservation, which ends with the call. Fails if the budget is used up. Waits while calls
 * in progress may use up the rest; only this wait, through `restore`, is interruptible.
 */
export const reserving = <A extends Used, E>(
  tree: TreeBudget,
  depth: number,
  restore: (waiting: Effect.Effect<void>) => Effect.Effect<void>,
  call: Effect.Effect<A, E>
): Effect.Effect<A, E | BudgetExhaustedError> => {
  const { outer } = tree
  const inner = reservingHere(tree, depth, restore, call)
  return outer === undefined ? inner : reserving(outer, depth, restore, inner)
}

/** Counts usage of earlier calls. */
export const count = (tree: TreeBudget, used: Spent): void => {
  tree.spent = Budget.add(tree.spent, used)
  if (tree.outer !== undefined) count(tree.outer, used)
}

/** Returns the error of a budget that a finished call exceeded (used > limit). */
export const overrun = (tree: TreeBudget): BudgetExhaustedError | undefined =>
  Budget.afterCall(tree.budget, tree.spent) ?? (tree.outer && overrun(tree.outer))

/**
 * Counts a child run of the tree. Fails if the tree would become too large or too deep. A child that is resumed counts
 * once. `stored` reads the runs of the tree and is used once.
 */
export const admit = <E>(
  tree: TreeBudget,
  child: { readonly parentRun: string; readonly depth: number; readonly runId: string },
  stored: Effect.Effect<ReadonlyArray<string>, E>
): Effect.Effect<void, E | SpawnDenied> => {
  const { outer } = tree
  if (outer !== undefined) return admit(outer, child, stored)
  const { depth, parentRun, runId } = child
  const known = tree.children === undefined ? stored : Effect.succeed([])
  return Effect.flatMap(known, (ids) => {
    const children = (tree.children ??= new Set(ids))
    const agents = 1 + children.size - (children.has(runId) ? 1 : 0)
    const denied = Budget.beforeSpawn(tree.spawn, { parentRun, depth: depth - 1, agents })
    if (denied !== undefined) return Effect.fail(denied)
    children.add(runId)
    return Effect.void
  })
}

/**
 * Runs a child in a slot of the tree, waiting for a free one. A tree that allows no children has no slots, and the
 * child is denied later.
 */
export const inSlot = <A, E>(tree: TreeBudget, child: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  const slots = slotsOf(tree)
  return slots === undefined ? child : slots.withPermits(1)(child)
}

/**
 * Lends the slot of a child run to its own children while it waits for them, so waiting runs cannot cause a deadlock.
 * The root has no slot to lend.
 */
export const lending = <A, E>(tree: TreeBudget, depth: number, waiting: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  const slots = depth === 0 ? undefined : slotsOf(tree)
  return slots === undefined
    ? waiting
    : Effect.acquireUseRelease(
        slots.release(1),
        () => waiting,
        () => slots.take(1)
      )
}

/** Returns usage as tokens and cost. The usage of a stored run includes its ended children. */
export const spentOf = (used: Pick<RunState, "usage" | "costUsd"> | Usage.Expense | undefined): Spent =>
  used === undefined ? Budget.nothing : { tokens: Usage.total(used.usage), costUsd: used.costUsd ?? 0 }

interface Level {
  calls: number
  largest: Spent | undefined
}

/** The usage of a call. Null if its provider reported none. */
interface Used {
  readonly usage: Usage.Usage | null
  readonly costUsd: number | undefined
}

const hasLimit = ({ maxCostUsd, maxTokens }: ExecutionBudget): boolean =>
  maxTokens !== undefined || maxCostUsd !== undefined

const reservingHere = <A extends Used, E>(
  tree: TreeBudget,
  depth: number,
  restore: (waiting: Effect.Effect<void>) => Effect.Effect<void>,
  call: Effect.Effect<A, E>
): Effect.Effect<A, E | BudgetExhaustedError> => {
  if (!hasLimit(tree.budget)) return call
  return Effect.suspend(() => {
    const used = Budget.beforeCall(tree.budget, tree.spent)
    if (used !== undefined) return Effect.fail(used)
    const left = Budget.remaining(tree.budget, Budget.add(tree.spent, reserved(tree)))
    if (left.tokens === 0 || left.costUsd === 0) {
      return Effect.flatMap(restore(callEnded(tree)), () => reservingHere(tree, depth, restore, call))
    }
    const level = (tree.levels[depth] ??= { calls: 0, largest: undefined })
    level.calls++
    return Effect.onExit(call, (exit) => Effect.sync(() => settle(tree, level, exit)))
  })
}

/** Ends a reservation and counts the usage of the call. A failed call reports none. */
const settle = (tree: TreeBudget, level: Level, exit: Exit.Exit<Used, unknown>): void => {
  level.calls--
  if (Exit.isSuccess(exit)) {
    const { costUsd = 0, usage } = exit.value
    const used = { tokens: Usage.total(usage ?? Usage.zero), costUsd }
    level.largest = larger(level.largest, used)
    tree.spent = Budget.add(tree.spent, used)
  }
  const woken = tree.waiting
  tree.waiting = []
  for (const wake of woken) wake()
}

const slotsOf = (tree: TreeBudget): Semaphore.Semaphore | undefined => {
  if (tree.outer !== undefined) return slotsOf(tree.outer)
  const children = Math.min(tree.spawn.maxConcurrent ?? Infinity, tree.spawn.maxAgents) - 1
  return children < 1 ? undefined : (tree.slots ??= Semaphore.makeUnsafe(children))
}

/** Returns what calls in progress may use. The first call at a depth may use everything, so it runs alone. */
const reserved = (tree: TreeBudget): Spent => {
  let sum = Budget.nothing
  for (const level of tree.levels) {
    if (level === undefined || level.calls === 0) continue
    const { costUsd, tokens } = level.largest ?? everything
    sum = Budget.add(sum, { tokens: tokens * level.calls, costUsd: costUsd * level.calls })
  }
  return sum
}

const everything: Spent = { tokens: Infinity, costUsd: Infinity }

const larger = (known: Spent | undefined, used: Spent): Spent =>
  known === undefined
    ? used
    : { tokens: Math.max(known.tokens, used.tokens), costUsd: Math.max(known.costUsd, used.costUsd) }

const callEnded = (tree: TreeBudget): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const wake = () => resume(Effect.void)
    tree.waiting.push(wake)
    return Effect.sync(() => {
      tree.waiting = tree.waiting.filter((waiter) => waiter !== wake)
    })
  })

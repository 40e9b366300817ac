/**
 * Limits on the spending of a run, and on the runs it may start.
 *
 * Pure rules over plain numbers; the run keeps the counters, and a `BudgetStore` those that runs share. A call may
 * overshoot, so limits are checked twice: `beforeCall` refuses when nothing is left, `afterCall` when more was used than
 * allowed.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import { BudgetExhaustedError, ConfigInvalid, SpawnDenied } from "./KernelError.ts"
import { timeSpan } from "./kit/time.ts"

export { BudgetExhaustedError, SpawnDenied }

/**
 * Limits of one run and its children. An absent limit means none.
 *
 * Counts the usage reported by providers, including that of refused replies and of summaries made by a compaction. A
 * call that reports no usage, such as an interrupted one, adds nothing, and a call to a model without a price adds no
 * cost.
 *
 * @category models
 * @since 0.1.0
 */
export interface ExecutionBudget {
  readonly maxTokens?: number | undefined
  readonly maxCostUsd?: number | undefined
  /**
   * Time from the start of the run; `deadline_s` on the wire, in seconds. It keeps running while a failed or
   * interrupted run waits to be resumed, and stops while the run is paused. A submitted run starts when a worker first
   * claims it. Tasks share the time of their root run.
   */
  readonly deadline?: Duration.Input | undefined
}

/**
 * Limits of a whole tree of runs. The root counts as one agent, at depth 0.
 *
 * @category models
 * @since 0.1.0
 */
export interface SpawnBudget {
  /**
   * Maximum number of runs of the tree over its life, including the root and ended runs. A continued run is not counted
   * again. Further runs are denied with `SpawnDenied`; with 1, no run can be started.
   */
  readonly maxAgents: number
  /**
   * Maximum number of active runs, including the root. Further runs wait; with 1, no run can be started. Default:
   * `maxAgents`.
   *
   * @since 0.1.0
   */
  readonly maxConcurrent?: number | undefined
  /** Maximum number of levels of runs below the root. */
  readonly maxDepth: number
}

/**
 * A budget that runs share by a key, in all processes with the same `BudgetStore`. Made by `shared`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Shared {
  readonly key: string
  readonly tokens?: number
  readonly costUsd?: number
  /** The length of a period in milliseconds. Absent: there is one period without end. */
  readonly perMs?: number
}

/**
 * Creates a budget that runs share by a key. It holds for one period after the other, counted from 1970 in UTC: `1 day`
 * begins at midnight UTC. Without `per` it is never renewed. Budgets of one key with different periods are counted
 * apart. Throws `ConfigInvalid` for limits that no budget can have.
 *
 * @example
 * Budget.shared("tenant:acme", { costUsd: 50, per: "1 day" })
 *
 * @category constructors
 * @since 0.1.0
 */
export const shared = (
  key: string,
  limits: {
    readonly tokens?: number | undefined
    readonly costUsd?: number | undefined
    readonly per?: Duration.Input | undefined
  }
): Shared => {
  const { costUsd, per, tokens } = limits
  const perMs =
    per === undefined ? undefined : Option.match(timeSpan(per), { onNone: () => NaN, onSome: Duration.toMillis })
  const refuse = (path: string, reason: string): never => {
    throw new ConfigInvalid({ path: `Budget.shared.${path}`, reason })
  }
  if (key === "" || key.length > 256) refuse("key", "a key has 1 to 256 characters")
  if (tokens === undefined && costUsd === undefined) refuse("limits", "give 'tokens', 'costUsd' or both")
  for (const [name, limit] of Object.entries({ tokens, costUsd })) {
    if (limit !== undefined && !(Number.isFinite(limit) && limit >= 0)) refuse(name, "a limit is a number from 0")
  }
  if (perMs !== undefined && !(Number.isFinite(perMs) && perMs >= 1)) refuse("per", "a period is a span of time")
  return {
    key,
    ...(tokens === undefined ? {} : { tokens }),
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(perMs === undefined ? {} : { perMs })
  }
}

/**
 * The usage so far, including children.
 *
 * @category models
 * @since 0.1.0
 */
export interface Spent {
  readonly tokens: number
  readonly costUsd: number
}

/**
 * The default limits of a tree: 50 agents over its life, one level below the root.
 *
 * @category constructors
 * @since 0.1.0
 */
export const spawnDefaults: SpawnBudget = { maxAgents: 50, maxDepth: 1 }

/**
 * No usage.
 *
 * @category constructors
 * @since 0.1.0
 */
export const nothing: Spent = { tokens: 0, costUsd: 0 }

/**
 * The codec of an execution budget: `max_tokens`, `max_cost_usd`, `deadline_s` (seconds).
 *
 * @category schemas
 * @since 0.1.0
 */
export const ExecutionBudget: Schema.Codec<
  ExecutionBudget & { readonly deadline?: Duration.Duration | undefined },
  EncodedExecutionBudget
> = (() => {
  const Seconds = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)).pipe(
    Schema.decodeTo(Schema.Duration, {
      // Rounded to the microsecond, because seconds times a thousand is seldom exact.
      decode: SchemaGetter.transform((seconds: number) => Duration.millis(Math.round(seconds * 1e6) / 1e3)),
      encode: SchemaGetter.transform((duration: Duration.Duration) => Duration.toSeconds(duration))
    })
  )
  return Schema.Struct({
    maxTokens: Schema.optional(Schema.Natural),
    maxCostUsd: Schema.optional(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))),
    deadline: Schema.optional(Seconds)
  }).pipe(
    Schema.encodeKeys({
      maxTokens: "max_tokens",
      maxCostUsd: "max_cost_usd",
      deadline: "deadline_s"
    })
  )
})()

/**
 * An execution budget on the wire.
 *
 * @category models
 * @since 0.1.0
 */
export interface EncodedExecutionBudget {
  readonly max_tokens?: number | undefined
  readonly max_cost_usd?: number | undefined
  readonly deadline_s?: number | undefined
}

/**
 * The codec of a spawn budget: `max_agents` and `max_depth`, both with defaults, and `max_concurrent`.
 *
 * @category schemas
 * @since 0.1.0
 */
export const SpawnBudget: Schema.Codec<
  SpawnBudget,
  { readonly max_agents?: number; readonly max_concurrent?: number | undefined; readonly max_depth?: number }
> = (() =>
  Schema.Struct({
    maxConcurrent: Schema.optional(Schema.Natural),
    maxAgents: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(spawnDefaults.maxAgents))),
    maxDepth: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(spawnDefaults.maxDepth)))
  }).pipe(Schema.encodeKeys({ maxAgents: "max_agents", maxConcurrent: "max_concurrent", maxDepth: "max_depth" })))()

/**
 * Adds up two usages.
 *
 * @category combinators
 * @since 0.1.0
 */
export const add: {
  (that: Spent): (self: Spent) => Spent
  (self: Spent, that: Spent): Spent
} = /* @__PURE__ */ dual(2, (self: Spent, that: Spent): Spent => ({
  tokens: self.tokens + that.tokens,
  costUsd: self.costUsd + that.costUsd
}))

/**
 * Returns how much is left in each limited dimension, never less than zero.
 *
 * @category getters
 * @since 0.1.0
 */
export const remaining = (
  budget: ExecutionBudget,
  spent: Spent
): { readonly tokens?: number; readonly costUsd?: number } => ({
  ...(budget.maxTokens === undefined ? {} : { tokens: Math.max(0, budget.maxTokens - spent.tokens) }),
  ...(budget.maxCostUsd === undefined ? {} : { costUsd: Math.max(0, budget.maxCostUsd - spent.costUsd) })
})

/**
 * Returns the error if a limit is used up and the next model call is not allowed.
 *
 * `spent` includes what calls in flight have reserved, so that parallel calls cannot all take the last tokens.
 *
 * @category checks
 * @since 0.1.0
 */
export const beforeCall = (budget: ExecutionBudget, spent: Spent): BudgetExhaustedError | undefined =>
  exhausted(budget, spent, (used, limit) => used >= limit)

/**
 * Returns the error if a model call exceeded a limit and the run must stop.
 *
 * @category checks
 * @since 0.1.0
 */
export const afterCall = (budget: ExecutionBudget, spent: Spent): BudgetExhaustedError | undefined =>
  exhausted(budget, spent, (used, limit) => used > limit)

/**
 * Returns the error if a run may not start another one.
 *
 * @category checks
 * @since 0.1.0
 */
export const beforeSpawn = (
  budget: SpawnBudget,
  tree: {
    readonly parentRun: string
    /** Depth of the parent; the root has depth 0. */
    readonly depth: number
    /** Number of runs of the tree so far, including the root. */
    readonly agents: number
  }
): SpawnDenied | undefined => {
  if (tree.depth >= budget.maxDepth) return new SpawnDenied({ parentRun: tree.parentRun, limit: budget.maxDepth })
  if (tree.agents >= budget.maxAgents) return new SpawnDenied({ parentRun: tree.parentRun, limit: budget.maxAgents })
  const { maxConcurrent } = budget
  if (maxConcurrent !== undefined && maxConcurrent < 2) {
    return new SpawnDenied({ parentRun: tree.parentRun, limit: maxConcurrent })
  }
  return undefined
}

/**
 * Decides whether a model call that may use `amount` may be made under a shared budget: true, false while calls in
 * progress may use up the rest, or the error of a budget that is used up.
 *
 * A call that may use more than is left is made alone. The last call of a period may therefore exceed the budget by
 * what it uses itself.
 *
 * @category checks
 * @since 0.1.0
 */
export const admission = (
  { costUsd: maxCostUsd, key, tokens: maxTokens, ...period }: Shared,
  use: { readonly spent: Spent; readonly reserved: Spent; readonly now: number },
  amount: Spent
): boolean | BudgetExhaustedError => {
  const budget = { maxTokens, maxCostUsd }
  const spent = exact(use.spent)
  const over = beforeCall(budget, spent)
  if (over !== undefined) {
    const { until } = periodOf(period, use.now)
    const { dimension, limit, used } = over
    return new BudgetExhaustedError({
      dimension,
      limit,
      used,
      key,
      ...(until === undefined ? {} : { renewsAt: until })
    })
  }
  const isAlone = use.reserved.tokens === 0 && use.reserved.costUsd === 0
  return isAlone || afterCall(budget, exact(add(add(spent, use.reserved), amount))) === undefined
}

/** Rounds a cost, since sums of fractions are seldom exact. */
const exact = ({ costUsd, tokens }: Spent): Spent => ({ tokens, costUsd: Math.round(costUsd * 1e9) / 1e9 })

/**
 * Returns the id under which a store counts a shared budget.
 *
 * @category getters
 * @since 0.1.0
 */
export const accountId = ({ key, perMs = 0 }: Shared): string => `${perMs}/${key}`

/**
 * Returns the period of a shared budget at an instant, in milliseconds since the epoch. Without an end, it never does.
 *
 * @category getters
 * @since 0.1.0
 */
export const periodOf = (
  { perMs }: Pick<Shared, "perMs">,
  now: number
): { readonly since: number; readonly until: number | undefined } => {
  if (perMs === undefined) return { since: 0, until: undefined }
  const since = Math.floor(now / perMs) * perMs
  return { since, until: since + perMs }
}

const exhausted = (
  budget: ExecutionBudget,
  spent: Spent,
  isOver: (used: number, limit: number) => boolean
): BudgetExhaustedError | undefined => {
  const { maxTokens, maxCostUsd } = budget
  if (maxTokens !== undefined && isOver(spent.tokens, maxTokens)) {
    return new BudgetExhaustedError({ dimension: "tokens", used: spent.tokens, limit: maxTokens })
  }
  if (maxCostUsd !== undefined && isOver(spent.costUsd, maxCostUsd)) {
    return new BudgetExhaustedError({ dimension: "cost", used: spent.costUsd, limit: maxCostUsd })
  }
  return undefined
}

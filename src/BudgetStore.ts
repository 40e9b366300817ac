/**
 * Keeps the counters of budgets that runs share by a key, such as that of a tenant for a day.
 *
 * Before a model call the kernel reserves what the call may use under each budget of its run, and settles the
 * reservation with what it used. Two processes can therefore never both spend the rest of a budget. The reservation of a
 * process that died expires.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Budget from "./Budget.ts"
import type { Scope } from "./Caller.ts"
import * as AddedParts from "./kit/addedParts.ts"
import { type BudgetExhaustedError, StoreError } from "./KernelError.ts"

export { StoreError }

/**
 * A reservation of a model call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reservation {
  /** Unique for each call and budget. */
  readonly id: string
  /** The most that the call may use. */
  readonly amount: Budget.Spent
  /** How long the reservation lasts from now on, unless it is renewed or settled. */
  readonly lease: Duration.Input
}

/**
 * The operations of a store of budgets.
 *
 * @category models
 * @since 0.1.0
 */
export interface BudgetStoreShape {
  /**
   * Reserves an amount under a budget. Returns false while the reservations of other calls may use up the rest, and
   * fails once it is used up (see `Budget.admission`).
   */
  readonly reserve: (
    budget: Budget.Shared,
    reservation: Reservation
  ) => Effect.Effect<boolean, BudgetExhaustedError | StoreError>
  /** Extends a reservation. Does nothing if it has expired or was settled. */
  readonly renew: (budget: Budget.Shared, id: string, lease: Duration.Input) => Effect.Effect<void, StoreError>
  /**
   * Ends a reservation and counts what was used, also if the reservation has expired. The same id within a minute is a
   * repetition, and counts nothing.
   */
  readonly settle: (budget: Budget.Shared, id: string, used: Budget.Spent) => Effect.Effect<void, StoreError>
  /** Returns what was used in the current period, without reservations. */
  readonly spent: (budget: Budget.Shared) => Effect.Effect<Budget.Spent, StoreError>
}

/**
 * The counters of shared budgets.
 *
 * @category services
 * @since 0.1.0
 */
export class BudgetStore extends Context.Service<BudgetStore, BudgetStoreShape>()("kernai/BudgetStore") {}

// ---------------------------------------------------------------- budgets of runs

/**
 * Returns the shared budgets of a model call: none, one or several.
 *
 * @category models
 * @since 0.1.0
 */
export type Select = (scope: Scope) => ReadonlyArray<Budget.Shared>

/**
 * Shared budgets, and the store with their counters.
 *
 * @category models
 * @since 0.1.0
 */
export interface Limited {
  readonly store: BudgetStoreShape
  readonly select: Select
}

const SharedBudgets: Context.Reference<Limited | undefined> = Context.Reference<Limited | undefined>(
  "kernai/SharedBudgets",
  {
    defaultValue: () => undefined
  }
)

const parts = AddedParts.of(SharedBudgets)

/**
 * Holds every model call of the runs in this layer to the budgets that `select` returns: turns, samples of skills and
 * summaries. A call that finds a budget used up fails with `BudgetExhaustedError`, and its run can be resumed once the
 * budget is renewed. A model without a price cannot be asked under a budget in USD. Such layers add to each other.
 *
 * @example
 * const BudgetsLive = BudgetStore.layerLimits(({ caller }) =>
 *   caller?.tenant === undefined
 *     ? []
 *     : [Budget.shared(`tenant:${caller.tenant}`, { costUsd: 50, per: "1 day" })]
 * )
 *
 * @category layers
 * @since 0.1.0
 */
export const layerLimits = (select: Select): Layer.Layer<never, never, BudgetStore> =>
  parts.layer(Effect.map(BudgetStore, (store) => ({ store, select })))

/**
 * Returns the shared budgets of the given contexts, outermost first.
 *
 * @category getters
 * @since 0.1.0
 */
export const among = (...contexts: ReadonlyArray<Context.Context<never>>): ReadonlyArray<Limited> =>
  parts.among(...contexts)

// ---------------------------------------------------------------- in memory

/** The counters of a budget, and the reservations under it by id. */
interface Account {
  readonly since: number
  spent: Budget.Spent
  readonly reserved: Map<string, Held>
}

interface Held {
  readonly amount: Budget.Spent
  readonly isSettled: boolean
  expiresAt: number
}

/**
 * Creates a store in this process.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory: Effect.Effect<BudgetStoreShape> = Effect.sync(() => {
  const accounts = new Map<string, Account>()

  /** Returns the account of a budget in its current period, without expired reservations. */
  const accountOf = (budget: Budget.Shared, now: number): Account => {
    const id = Budget.accountId(budget)
    const since = Budget.periodOf(budget, now).since
    const before = accounts.get(id)
    const account =
      before === undefined
        ? { since, spent: Budget.nothing, reserved: new Map<string, Held>() }
        : before.since < since
          ? { ...before, since, spent: Budget.nothing }
          : before
    accounts.set(id, account)
    for (const [id, { expiresAt }] of account.reserved) if (expiresAt <= now) account.reserved.delete(id)
    return account
  }
  const expiry = (now: number, lease: Duration.Input): number =>
    now + Duration.toMillis(Duration.fromInputUnsafe(lease))
  const at = <A, E = never>(body: (now: number) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.flatMap(Clock.currentTimeMillis, body)

  return {
    reserve: (budget, { amount, id, lease }) =>
      at((now) => {
        const { reserved, spent } = accountOf(budget, now)
        const others = [...reserved].filter(([other]) => other !== id).map(([, { amount }]) => amount)
        const held = others.reduce(Budget.add, Budget.nothing)
        const admitted = Budget.admission(budget, { spent, reserved: held, now }, amount)
        if (admitted === true) reserved.set(id, { amount, isSettled: false, expiresAt: expiry(now, lease) })
        return typeof admitted === "boolean" ? Effect.succeed(admitted) : Effect.fail(admitted)
      }),
    renew: (budget, id, lease) =>
      at((now) => {
        const held = accountOf(budget, now).reserved.get(id)
        if (held?.isSettled === false) held.expiresAt = expiry(now, lease)
        return Effect.void
      }),
    settle: (budget, id, used) =>
      at((now) => {
        const account = accountOf(budget, now)
        if (account.reserved.get(id)?.isSettled === true) return Effect.void
        account.reserved.set(id, { amount: Budget.nothing, isSettled: true, expiresAt: now + 60_000 })
        account.spent = Budget.add(account.spent, used)
        return Effect.void
      }),
    spent: (budget) => at((now) => Effect.succeed(accountOf(budget, now).spent))
  }
})

/**
 * Keeps the counters in this process: they begin again with the process, and other processes do not see them.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<BudgetStore> = Layer.effect(BudgetStore, makeMemory)

/**
 * Keeps the counters of shared budgets in a database, exact over all processes that use it.
 *
 * A reservation locks the row of its budget, so calls of several processes are admitted one after the other. Periods and
 * expiries follow the clock of the database.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Budget from "../Budget.ts"
import { BudgetStore, type BudgetStoreShape } from "../BudgetStore.ts"
import type { StoreError } from "../KernelError.ts"
import { nowOf } from "./internal/databaseTime.ts"
import * as Key from "./internal/key.ts"
import { migrate } from "./internal/migrate.ts"
import { onPg, onSqlite } from "./internal/ownClient.ts"
import type * as Postgres from "./internal/postgres.ts"
import { failed, orLost } from "./internal/sqlFault.ts"
import type * as SqliteClient from "./SqliteClient.ts"

/**
 * Creates a store in the database in context. Creates its tables if necessary.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make: Effect.Effect<BudgetStoreShape, StoreError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  yield* migrate(sql, "kernai_budget_migrations", { "0001_budgets": tables(sql) })
  const now = Effect.map(
    sql<{ readonly now: number }>`SELECT ${sql.literal(nowOf(sql))} AS now`,
    ([row]) => row?.now ?? 0
  )
  const locked = <A>(
    operation: string,
    budget: Budget.Shared,
    body: (account: Account) => Effect.Effect<A, SqlError>
  ): Effect.Effect<A, StoreError> => {
    const whole = Effect.flatMap(now, (now) => Effect.flatMap(accountOf(sql, budget, now), body))
    return Effect.catchTag(orLost(sql.withTransaction(whole)), "SqlError", failed(operation))
  }
  return {
    reserve: (budget, { amount, id, lease }) =>
      locked("reserve", budget, ({ name, now, spent }) =>
        Effect.gen(function* () {
          const reserved = yield* reservedBy(sql, name, Key.make(id), now)
          const admitted = Budget.admission(budget, { spent, reserved, now }, amount)
          if (typeof admitted !== "boolean") return admitted
          if (admitted)
            yield* hold(sql, { id: Key.make(id), budget: name, ...columns(amount), expires_at: now + millis(lease) })
          return admitted
        })
      ).pipe(
        Effect.flatMap((admitted) => (typeof admitted === "boolean" ? Effect.succeed(admitted) : Effect.fail(admitted)))
      ),
    renew: (_, id, lease) =>
      Effect.gen(function* () {
        const expiresAt = (yield* now) + millis(lease)
        yield* sql`
          UPDATE kernai_reservations SET expires_at = ${expiresAt} WHERE id = ${Key.make(id)} AND settled = 0`
      }).pipe(orLost, Effect.catchTag("SqlError", failed("renew"))),
    settle: (budget, id, used) =>
      locked("settle", budget, ({ name, now }) =>
        Effect.gen(function* () {
          if (!(yield* settles(sql, Key.make(id), name, now))) return
          yield* sql`
            UPDATE kernai_budgets SET tokens = tokens + ${used.tokens}, cost = cost + ${used.costUsd} WHERE id = ${name}`
        })
      ),
    spent: (budget) => locked("read", budget, ({ spent }) => Effect.succeed(spent))
  }
})

/**
 * Keeps the counters in the database in context.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<BudgetStore, StoreError, SqlClient.SqlClient> = Layer.effect(BudgetStore, make)

/**
 * Keeps the counters in a SQLite file, which may be that of a run store.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSqlite = (file: string | SqliteClient.Options): Layer.Layer<BudgetStore, StoreError> =>
  onSqlite(BudgetStore, file, make)

export type {
  /**
   * Options of the PostgreSQL connection.
   *
   * @category models
   * @since 0.1.0
   */
  Options as PgOptions
} from "./internal/postgres.ts"

/**
 * Keeps the counters in PostgreSQL, in a database which may be that of a run store. Needs the package `@effect/sql-pg`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerPg = (options: Postgres.Options): Layer.Layer<BudgetStore, StoreError> =>
  onPg(BudgetStore, options, make)

// ---------------------------------------------------------------- tables

const tables = (sql: SqlClient.SqlClient): ReadonlyArray<string> => {
  const { number, text } = sql.onDialectOrElse({
    pg: () => ({ number: "DOUBLE PRECISION", text: 'TEXT COLLATE "C"' }),
    orElse: () => ({ number: "REAL", text: "TEXT" })
  })
  return [
    `CREATE TABLE kernai_budgets (
      id ${text} PRIMARY KEY,
      since ${number} NOT NULL,
      tokens ${number} NOT NULL,
      cost ${number} NOT NULL
    )`,
    `CREATE TABLE kernai_reservations (
      id ${text} PRIMARY KEY,
      budget ${text} NOT NULL,
      tokens ${number} NOT NULL,
      cost ${number} NOT NULL,
      expires_at ${number} NOT NULL,
      settled INTEGER NOT NULL DEFAULT 0
    )`,
    "CREATE INDEX kernai_reservations_budget ON kernai_reservations (budget)"
  ]
}

/** The counters of a budget in its current period. */
interface Account {
  readonly name: string
  readonly now: number
  readonly spent: Budget.Spent
}

interface Sum {
  readonly tokens: number | null
  readonly cost: number | null
}

const spentOf = (row: Sum | undefined): Budget.Spent => ({ tokens: row?.tokens ?? 0, costUsd: row?.cost ?? 0 })

const columns = ({ costUsd, tokens }: Budget.Spent) => ({ tokens, cost: costUsd })

const millis = (lease: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(lease))

/**
 * Locks the row of a budget until the transaction ends, and begins its current period. A process that read the time just
 * before the period ended must not begin the last one again.
 */
const accountOf = (sql: SqlClient.SqlClient, budget: Budget.Shared, now: number): Effect.Effect<Account, SqlError> => {
  const name = Key.make(Budget.accountId(budget))
  const { since } = Budget.periodOf(budget, now)
  return Effect.map(
    sql<Sum>`
      INSERT INTO kernai_budgets (id, since, tokens, cost) VALUES (${name}, ${since}, 0, 0)
      ON CONFLICT (id) DO UPDATE SET
        tokens = CASE WHEN kernai_budgets.since < excluded.since THEN 0 ELSE kernai_budgets.tokens END,
        cost = CASE WHEN kernai_budgets.since < excluded.since THEN 0 ELSE kernai_budgets.cost END,
        since = CASE WHEN kernai_budgets.since < excluded.since THEN excluded.since ELSE kernai_budgets.since END
      RETURNING tokens, cost`,
    ([row]) => ({ name, now, spent: spentOf(row) })
  )
}

/** Returns the sum of the other reservations under a budget, and removes those that have expired. */
const reservedBy = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, name: string, id: string, now: number) {
  yield* sql`DELETE FROM kernai_reservations WHERE budget = ${name} AND expires_at <= ${now}`
  const [row] = yield* sql<Sum>`
    SELECT sum(tokens) AS tokens, sum(cost) AS cost FROM kernai_reservations WHERE budget = ${name} AND id <> ${id}`
  return spentOf(row)
})

const hold = (sql: SqlClient.SqlClient, row: Record<string, string | number>) => sql`
  INSERT INTO kernai_reservations ${sql.insert(row)}
  ON CONFLICT (id) DO UPDATE SET tokens = excluded.tokens, cost = excluded.cost, expires_at = excluded.expires_at`

/**
 * Marks a reservation as settled for a minute, in which a repetition is recognized: a connection that is lost hides
 * whether its transaction was stored. Returns whether it was not settled before.
 */
const settles = (sql: SqlClient.SqlClient, id: string, budget: string, now: number): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    sql`
      INSERT INTO kernai_reservations ${sql.insert({ id, budget, tokens: 0, cost: 0, expires_at: now + 60_000, settled: 1 })}
      ON CONFLICT (id) DO UPDATE SET tokens = 0, cost = 0, expires_at = excluded.expires_at, settled = 1
        WHERE kernai_reservations.settled = 0
      RETURNING id`,
    (rows) => rows.length > 0
  )

/**
 * Appends rows to the journals of a PostgreSQL database, the rows of many runs in one statement.
 *
 * A commit waits for the disk, and takes as long for one row as for hundreds. So rows are collected while a statement
 * is running, and the next statement writes all of them. A single row is written at once.
 *
 * Rows in one statement do not depend on each other: if the database rejects one, the others are written without it.
 */

import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { inTime } from "../../kit/foreignCode.ts"
import * as RunCodec from "../../RunCodec.ts"
import * as Tables from "./runTables.ts"
import { orLost } from "./sqlFault.ts"

/** Appends a row. Returns false if it does not follow the stored ones. */
export type AppendRow = (row: Tables.Row) => Effect.Effect<boolean, SqlError>

/** A row, and whether it was stored. */
interface Offer {
  readonly row: Tables.Row
  readonly stored: Deferred.Deferred<boolean, SqlError>
}

/** Rows that are written together, by the keys of their runs, at most one for each run. */
interface Group {
  readonly offers: Map<string, Offer>
  size: number
  /** The number of waiting callers. */
  callers: number
  /** Completed when no caller is waiting any more. */
  readonly left: Deferred.Deferred<void>
  /** The fiber that writes the group, once it has been taken. */
  fiber?: Fiber.Fiber<unknown, unknown>
}

/**
 * Appends while a scope is open. Rows offered before it closes are still written, within a second. Callers of other
 * rows fail.
 *
 * An append in a transaction of the host is part of that transaction.
 */
export const make = Effect.fnUntraced(function* (sql: SqlClient): Effect.fn.Return<AppendRow, never, Scope.Scope> {
  const groups = yield* Queue.unbounded<Group, Cause.Done>()
  const statements = yield* FiberSet.make()
  let last: Group | undefined
  const next = Effect.gen(function* () {
    const group = yield* Queue.take(groups)
    if (group === last) last = undefined
    if (group.offers.size === 0) return
    group.fiber = yield* FiberSet.run(statements, answered(sql, group), { startImmediately: true })
    yield* Effect.raceAllFirst([Fiber.await(group.fiber), Deferred.await(group.left), Effect.sleep(patience)])
  })
  const writer = yield* Effect.forkScoped(Effect.ignore(Effect.forever(next)))
  yield* Effect.addFinalizer(() => {
    const rest = Effect.andThen(Queue.end(groups), Effect.andThen(Fiber.await(writer), FiberSet.awaitEmpty(statements)))
    const abandoned = Effect.flatMap(
      Queue.clear(groups),
      Effect.forEach(({ offers }) => failed(offers.values(), closed))
    )
    return Effect.andThen(
      inTime(rest, 1_000, () => Effect.void),
      Effect.andThen(Fiber.interrupt(writer), abandoned)
    )
  })
  const offered = (row: Tables.Row) =>
    Effect.suspend(() => {
      if (last === undefined || !hasRoom(last, row)) {
        const group = emptyGroup()
        if (!Queue.offerUnsafe(groups, group)) return Effect.fail(closed)
        last = group
      }
      return joined(last, row)
    })
  return (row) =>
    Effect.flatMap(Effect.serviceOption(sql.transactionService), (transaction) =>
      Option.isSome(transaction) ? within(sql, row) : offered(row)
    )
})

// ---------------------------------------------------------------- groups

const emptyGroup = (): Group => ({ offers: new Map(), size: 0, callers: 0, left: Deferred.makeUnsafe() })

const hasRoom = ({ offers, size }: Group, row: Tables.Row): boolean =>
  offers.size === 0 || (offers.size < mostRows && size + charsOf(row) <= mostChars && !offers.has(row.id))

const charsOf = ({ body, origin }: Tables.Row): number =>
  (origin?.chunks ?? []).reduce((chars, chunk) => chars + chunk.body.length, body.length)

/** Adds a row to the open group, and waits for its result. */
const joined = (group: Group, row: Tables.Row): Effect.Effect<boolean, SqlError> => {
  const stored = Deferred.makeUnsafe<boolean, SqlError>()
  group.offers.set(row.id, { row, stored })
  group.size += charsOf(row)
  group.callers++
  return Effect.onExit(Deferred.await(stored), (exit) => {
    group.callers--
    return Exit.hasInterrupts(exit) ? withdrawn(group, row) : Effect.void
  })
}

/** Withdraws a row that has not been taken. Otherwise stops its statement once no caller waits for any of its rows. */
const withdrawn = ({ callers, fiber, left, offers }: Group, { id }: Tables.Row): Effect.Effect<void> => {
  if (fiber === undefined) return Effect.sync(() => offers.delete(id))
  return callers > 0 ? Effect.void : Effect.andThen(Deferred.succeed(left, undefined), Fiber.interrupt(fiber))
}

// ---------------------------------------------------------------- statements

/** Writes a group, and completes all of its callers. */
const answered = (sql: SqlClient, { offers }: Group): Effect.Effect<void> => {
  const all = [...offers.values()]
  const written =
    all.length === 1
      ? Effect.forEach(all, (offer) => alone(sql, offer))
      : Effect.flatMap(
          together(sql, all),
          // Only these rows wait, each in a statement of its own.
          Effect.forEach((offer) => alone(sql, offer), { concurrency: "unbounded" })
        )
  return Effect.asVoid(Effect.ensuring(written, failed(all, closed)))
}

/**
 * Writes rows in one statement. If the database rejects it, writes each half by itself, down to the rejected row.
 * Returns the rows that would have to wait for a lock.
 */
const together = (sql: SqlClient, offers: ReadonlyArray<Offer>): Effect.Effect<ReadonlyArray<Offer>> =>
  Effect.matchEffect(statement(sql, offers, true), {
    onSuccess: (keys) =>
      Effect.as(
        Effect.forEach(offers, (offer) => answer(offer, keys)),
        []
      ),
    onFailure: (error) => {
      const { _tag } = error.reason
      if (offers.length === 1 && _tag === "LockTimeoutError") return Effect.succeed(offers)
      if (offers.length === 1 || isUnknown(error)) return Effect.as(failed(offers, error), [])
      const half = Math.ceil(offers.length / 2)
      const halves = [offers.slice(0, half), offers.slice(half)]
      return Effect.map(
        Effect.forEach(halves, (some) => together(sql, some)),
        (waiting) => waiting.flat()
      )
    }
  })

/** Writes a row in a statement of its own. */
const alone = (sql: SqlClient, offer: Offer): Effect.Effect<void> =>
  Effect.matchEffect(statement(sql, [offer], false), {
    onSuccess: (keys) => answer(offer, keys),
    onFailure: (error) => failed([offer], error)
  })

const answer = ({ row, stored }: Offer, keys: ReadonlySet<string>): Effect.Effect<void> =>
  Effect.asVoid(Deferred.succeed(stored, keys.has(row.id)))

const failed = (offers: Iterable<Offer>, error: SqlError): Effect.Effect<void> =>
  Effect.forEach(offers, ({ stored }) => Deferred.fail(stored, error), { discard: true })

/** Writes a row in the transaction of the host, which can continue if that fails. */
const within = (sql: SqlClient, row: Tables.Row): Effect.Effect<boolean, SqlError> =>
  orLost(sql.withTransaction(Effect.map(statement(sql, [{ row }], false), (keys) => keys.has(row.id))))

/**
 * Writes rows and returns the keys of those that were stored. With `isHasty`, fails soon if it would have to wait for a
 * lock.
 */
const statement = (
  sql: SqlClient,
  offers: ReadonlyArray<Pick<Offer, "row">>,
  isHasty: boolean
): Effect.Effect<ReadonlySet<string>, SqlError> =>
  Effect.map(
    sql.unsafe<{ readonly id: string }>(
      Tables.appendPostgres,
      Tables.paramsOfPostgres(
        offers.map(({ row }) => row),
        RunCodec.format,
        isHasty ? `${patience}ms` : null
      )
    ),
    (rows) => new Set(rows.map(({ id }) => id))
  )

/**
 * Returns true if rows may be stored although their statement failed. Their callers check before they repeat an append.
 */
const isUnknown = ({ reason: { _tag } }: SqlError): boolean =>
  _tag === "ConnectionError" || _tag === "StatementTimeoutError" || _tag === "AuthenticationError"

const closed = new SqlError({
  reason: new ConnectionError({
    cause: new Error("the store is closed"),
    message: "the store is closed",
    operation: "append"
  })
})

/** Maximum rows of a statement, and maximum UTF-16 units of their bodies. */
const mostRows = 256
const mostChars = 4 * 1024 * 1024

/** Milliseconds that a hasty statement waits for a lock, and that a group waits for the group before it. */
const patience = 100

/** The queries of lists. */

import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import { storedStatuses } from "../../store-kit/StoreRules.ts"
import * as StoreSearch from "../../store-kit/StoreSearch.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunFilter, StatusWord } from "../../RunStore.ts"
import { nowOf } from "./databaseTime.ts"
import * as Key from "./key.ts"
import * as Tables from "./runTables.ts"
import * as SqlTags from "./sqlTags.ts"

/** The position of a run in a list. */
export interface Place {
  readonly created_at: number
  readonly due_at: number | null
  readonly id: string
}

/** A page of a list. */
export interface Page {
  readonly last: Place | undefined
  readonly limit: number
  /** A query of the only runs to list, as `found`. Default: all. */
  readonly among?: Fragment | undefined
}

/** Returns the query of a page. For few runs, which are sorted, only the journals of those on the page are looked up. */
export const pageOf = (sql: SqlClient, filter: RunFilter, page: Page): Fragment => {
  const columns = `created_at, due_at, id, ${columnsOf(sql)}`
  if (!selectsFew(filter, page) || filter.updatedBefore !== undefined) return rowsOf(sql, filter, page, columns, true)
  return sql`SELECT ${sql.literal(columns)} FROM (${rowsOf(sql, filter, page, "r.*", false)}) AS r
    JOIN kernai_journal AS j ON j.entry = ${sql.literal(Tables.lastEntry)}
    ORDER BY ${sql.literal(orderOf(filter, page))}`
}

/** Returns a query of the runs on a page, as `found`. */
export const runsOf = (sql: SqlClient, filter: RunFilter, page: Page): Fragment =>
  sql`SELECT run AS found FROM (
    ${rowsOf(sql, filter, page, "run, created_at, due_at, id", filter.updatedBefore !== undefined)}
  ) AS page`

/**
 * Returns the query of columns of the runs on a page, joined with the last rows of their journals or not. The runs of
 * each status are read in the order of an index and merged, since the database would sort all runs of several statuses.
 */
const rowsOf = (sql: SqlClient, filter: RunFilter, page: Page, columns: string, isJoined: boolean): Fragment => {
  const { among, last, limit } = page
  const runs = sql.literal(isJoined ? joined : "kernai_runs AS r")
  // SQLite reads the tables of a CROSS JOIN in their order.
  const from = among === undefined ? runs : sql`(${among}) AS among CROSS JOIN ${runs}`
  const where = [
    ...(among === undefined ? [] : [sql`r.run = found`]),
    ...conditions(sql, filter),
    ...(last === undefined ? [] : [behind(sql, last, filter)])
  ]
  const statuses = statusesOf(sql, filter)
  const parts = (selectsFew(filter, page) ? [sql.or(statuses)] : statuses).map(
    (status) => sql`SELECT ${sql.literal(columns)} FROM ${from} WHERE ${sql.and([...where, status])}`
  )
  const sorted = sql`ORDER BY ${sql.literal(orderOf(filter, page))} LIMIT ${limit}`
  // PostgreSQL walks an index only as far as a limit.
  const limited = (part: Fragment) => sql.onDialectOrElse({ pg: () => sql`(${part} ${sorted})`, orElse: () => part })
  return sql`${sql.join(" UNION ALL ", false)(parts.length === 1 ? parts : parts.map(limited))} ${sorted}`
}

/**
 * Returns whether ids, labels, a tag or a query select the runs. These are sorted, so that the database need not scan all
 * runs in their order.
 */
const selectsFew = (filter: RunFilter, { among }: Page): boolean =>
  among !== undefined || (filter.prefix ?? "") !== "" || labelsOf(filter).length > 0

/** Returns the keys of the labels and the tag of a filter. */
const labelsOf = ({ labels, tag }: RunFilter): ReadonlyArray<string> => [
  ...Tables.labelKeys(labels),
  ...(tag === undefined ? [] : [SqlTags.keyOf(tag)])
]

/** Returns the columns of a head: the row of a run with the last row of its journal. */
export const columnsOf = (sql: SqlClient): string => `facts, model, worker, expires_at, since, turns, detail, at,
  CASE WHEN expires_at > ${nowOf(sql)} THEN 1 ELSE 0 END AS live,
  CAST(entry + records - 1 - (CAST(r.run AS BIGINT) << 32) AS INTEGER) AS revision, ${SqlTags.columnOf(sql)} AS tags`

/** The runs with the last rows of their journals. */
export const joined = `kernai_runs AS r JOIN kernai_journal AS j ON j.entry = ${Tables.lastEntry}`

const conditions = (sql: SqlClient, filter: RunFilter): ReadonlyArray<Fragment> => {
  const { agent, caller, model, order, prefix = "", rootRunId, roots, search, tenant, unleased, updatedBefore } = filter
  const where: Array<Fragment> = [sql`format <= ${RunCodec.format}`]
  if (agent !== undefined) where.push(sql`agent = ${Key.make(agent)}`)
  if (caller !== undefined) where.push(sql`caller = ${Key.make(caller)}`)
  if (model !== undefined) where.push(sql`model = ${Key.make(model)}`)
  if (tenant !== undefined) where.push(sql`tenant = ${Key.make(tenant)}`)
  for (const label of labelsOf(filter)) {
    where.push(sql`run IN (SELECT run FROM kernai_labels WHERE label = ${label})`)
  }
  if (prefix !== "") where.push(sql.or(Key.rangesOf(prefix).map((range) => isWithin(sql, range))))
  if (rootRunId !== undefined) where.push(sql`root = ${Key.make(rootRunId)}`)
  if (roots === true) where.push(sql`parent IS NULL`)
  if (order === "due") where.push(sql`due_at < ${Tables.noDeadline}`)
  if (updatedBefore !== undefined) where.push(sql`at < ${updatedBefore}`)
  if (unleased === true) where.push(sql`(expires_at IS NULL OR expires_at <= ${sql.literal(nowOf(sql))})`)
  const position = sql.onDialectOrElse({ pg: () => "strpos", orElse: () => "instr" })
  const found = StoreSearch.wordsOf(search).map((word) => sql`${sql.literal(position)}(w.body, ${word}) > 0`)
  // PostgreSQL would turn EXISTS into a join that compares all texts.
  if (found.length > 0) where.push(sql`(SELECT ${sql.and(found)} FROM kernai_words AS w WHERE w.run = r.run)`)
  return where
}

const isWithin = (sql: SqlClient, { from, to }: Key.Range): Fragment =>
  to === undefined ? sql`id >= ${from}` : sql`(id >= ${from} AND id < ${to})`

/** Returns conditions on the status, of which a run meets at most one. */
const statusesOf = (sql: SqlClient, filter: RunFilter): ReadonlyArray<Fragment> => {
  const words = wordsOf(filter)
  // Only waiting runs have a deadline, and SQLite would prefer the index of the status.
  if (words === undefined || (filter.order === "due" && words.includes("waiting"))) return [sql`1 = 1`]
  const now = sql.literal(nowOf(sql))
  const leased = {
    queued: sql`expires_at = 0`,
    running: sql`(expires_at IS NULL OR expires_at > ${now})`,
    interrupted: sql`expires_at <> 0 AND expires_at <= ${now}`
  }
  const statuses = new Set<string>()
  const open: Array<Fragment> = []
  for (const word of words) {
    if (word === "queued" || word === "running" || word === "interrupted") open.push(leased[word])
    else for (const status of storedStatuses(word)) statuses.add(status)
  }
  const conditions = Array.from(statuses, (status) => sql`r.status = ${status}`)
  if (open.length > 0) conditions.push(sql`(r.status = 'running' AND ${sql.or(open)})`)
  return conditions.length === 0 ? [sql`1 = 0`] : conditions
}

const ended: ReadonlyArray<StatusWord> = ["completed", "failed", "poisoned", "cancelled", "no_answer"]

/**
 * Returns the statuses that a filter selects. A model selects runs that have ended, since a run that was resumed keeps
 * the model of its last end until the next one.
 */
const wordsOf = ({ model, status }: RunFilter): ReadonlyArray<StatusWord> | undefined =>
  model === undefined ? status : (status ?? ended).filter((word) => ended.includes(word))

/** Returns the columns that sort a list. */
const orderOf = (filter: RunFilter, page: Page): string => {
  const { order } = filter
  // The sum keeps the database from using the index of this order.
  const column = `${order === "due" ? "due_at" : "created_at"}${selectsFew(filter, page) ? " + 0" : ""}`
  return `${column} ${order === "due" || order === "oldest" ? "ASC" : "DESC"}, id`
}

const behind = (sql: SqlClient, { created_at, due_at, id }: Place, { order }: RunFilter): Fragment => {
  // The first condition is a range of the index: a page costs the same however many runs come before it.
  if (order === "due") return sql`due_at >= ${due_at} AND (due_at > ${due_at} OR id > ${id})`
  return order === "oldest"
    ? sql`created_at >= ${created_at} AND (created_at > ${created_at} OR id > ${id})`
    : sql`created_at <= ${created_at} AND (created_at < ${created_at} OR id > ${id})`
}

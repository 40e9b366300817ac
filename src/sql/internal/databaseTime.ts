/** The clock of a database, by which leases and reservations of several processes end. */

import type { SqlClient } from "effect/sql/SqlClient"

/** Returns SQL for the time of the database, in milliseconds since the epoch. */
export const nowOf = (sql: SqlClient): string =>
  sql.onDialectOrElse({
    pg: () => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS DOUBLE PRECISION)",
    orElse: () => "((julianday('now') - 2440587.5) * 86400000.0)"
  })

/** Creates stores with a database client of their own. */

import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { StoreError } from "../../KernelError.ts"
import * as SqliteClient from "../SqliteClient.ts"
import { failed } from "./sqlFault.ts"
import * as Postgres from "./postgres.ts"

type Making<S> = Effect.Effect<S, StoreError, SqlClient.SqlClient | Scope.Scope>

/** Creates a store in a SQLite file, which other stores may share. */
export const onSqlite = <I, S>(
  service: Context.Key<I, S>,
  file: string | SqliteClient.Options,
  making: Making<S>
): Layer.Layer<I, StoreError> => {
  const client = SqliteClient.make(typeof file === "string" ? { filename: file } : file)
  return on(service, Effect.catchTag(client, "SqlError", failed("open")), making)
}

/** Creates a store in a PostgreSQL database, which other stores may share. */
export const onPg = <I, S>(
  service: Context.Key<I, S>,
  options: Postgres.Options,
  making: Making<S>
): Layer.Layer<I, StoreError> => on(service, Postgres.make(options, { listening: 0, usual: 2 }), making)

const on = <I, S>(
  service: Context.Key<I, S>,
  opening: Effect.Effect<SqlClient.SqlClient, StoreError, Reactivity.Reactivity | Scope.Scope>,
  making: Making<S>
): Layer.Layer<I, StoreError> =>
  Layer.provide(
    Layer.effect(
      service,
      Effect.flatMap(opening, (client) => Effect.provideService(making, SqlClient.SqlClient, client))
    ),
    Reactivity.layer
  )

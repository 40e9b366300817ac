/**
 * The four stores as tests open them: each `place` is somewhere to keep runs, and the layer by which a process opens it.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer, Redacted, type Scope } from "effect"
import { RunStore } from "kernai"
import { FileRunStore } from "kernai/file"
import { PgRunStore, SqlRunStore } from "kernai/sql"
import { folder } from "./folder.ts"
import * as Postgres from "./postgres.ts"

export interface Place {
  readonly name: "memory" | "file" | "sqlite" | "postgres"
  readonly isThere: boolean
  readonly place: Effect.Effect<Layer.Layer<RunStore.RunStore, RunStore.StoreError>, unknown, Scope.Scope>
}

export const memory: Place = {
  name: "memory",
  isThere: true,
  place: Effect.map(RunStore.makeMemory, (store) => Layer.succeed(RunStore.RunStore, store))
}

export const file: Place = {
  name: "file",
  isThere: true,
  place: Effect.map(folder, (directory) => Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer))
}

export const sqlite: Place = {
  name: "sqlite",
  isThere: true,
  place: Effect.map(folder, (directory) => SqlRunStore.layerSqlite(`${directory}/runs.db`))
}

export const postgres: Place = {
  name: "postgres",
  isThere: Postgres.available,
  place: Effect.map(Postgres.database, ({ url }) =>
    PgRunStore.layer({ url: Redacted.make(url), maxConnections: 4, pollInterval: "1 hour" })
  )
}

export const stores: ReadonlyArray<Place> = [memory, file, sqlite, postgres]

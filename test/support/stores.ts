/**
 * The four stores as tests open them: each `place` is somewhere to keep runs, and the layer by which a process opens it.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, Layer, Redacted, type Scope } from "effect"
import { RunStore } from "kernai"
import { FileRunStore } from "kernai/file"
import { PgRunStore, SqlRunStore } from "kernai/sql"
import * as Postgres from "./postgres.ts"
import { folder } from "./folder.ts"

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

/** Takes what happened between two effects at once. */
export const grouped: Place = {
  name: "memory",
  isThere: true,
  place: Effect.map(Layer.build(RunStore.layerMemory), (context) => Layer.succeedContext(context))
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

/** The same place, each revision stored by itself. */
export const apart = (place: Place): Place => ({
  ...place,
  place: Effect.map(place.place, (layer) =>
    Layer.provide(Layer.effect(RunStore.RunStore, Effect.map(RunStore.RunStore, RunStore.eachRevision)), layer)
  )
})

export const stores: ReadonlyArray<Place> = [memory, file, sqlite, postgres]

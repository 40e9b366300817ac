/** Runners and clients of a cluster on PostgreSQL, which talk over sockets, all in this process. */
import { Effect, Layer, Redacted } from "effect"
import { type RunEvent, RunStore } from "kernai"
import { ClusterKernel, ClusterNode } from "kernai/cluster"
import { PgRunStore } from "kernai/sql"
import { createServer } from "node:net"
import * as Postgres from "../support/postgres.ts"
import { clerk, kernelOn, type Setting } from "./support.ts"

export const freePort = Effect.callback<number>((resume) => {
  const probe = createServer()
  probe.listen(0, "127.0.0.1", () => {
    const address = probe.address()
    probe.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})

/** The kernel of a process, on its own connections to the database. */
const kernelIn = (database: Postgres.Database, setting?: Setting) =>
  Layer.unwrap(Effect.map(RunStore.RunStore, (store) => kernelOn(store, setting))).pipe(
    Layer.provide(PgRunStore.layer({ url: Redacted.make(database.url), maxConnections: 4, pollInterval: "1 hour" }))
  )

interface Options extends Partial<ClusterNode.Options>, Partial<ClusterKernel.Options> {}

/** The processes of a cluster on a database. */
export const clusterOn = (database: Postgres.Database) => ({
  runner: Effect.fnUntraced(function* (setting?: Setting, options: Options = {}) {
    const node = ClusterNode.layer({ host: "127.0.0.1", port: yield* freePort, joinDelay: 0, ...options })
    const runner = ClusterKernel.layer({ agents: [clerk], ...options }).pipe(
      Layer.provide([kernelIn(database, setting), node]),
      Layer.provide(Postgres.client(database))
    )
    return yield* Layer.build(Layer.fresh(runner))
  }),
  client: Layer.build(
    Layer.fresh(
      ClusterKernel.layerClient.pipe(
        Layer.provideMerge(ClusterNode.layerClient()),
        Layer.provide([kernelIn(database), Postgres.client(database)])
      )
    )
  )
})

/** The processes of a cluster on a database of their own. */
export const cluster = Effect.map(Postgres.database, clusterOn)

/** Waits until something is true. */
export const until = <E, R>(isTrue: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(Effect.delay(isTrue, "10 millis"), { until: (is) => is })

/** The text of a reply, as it was streamed. */
export const textOf = (events: ReadonlyArray<RunEvent.RunEvent>) =>
  events.map((event) => (event.type === "text_chunk" ? event.text : "")).join("")

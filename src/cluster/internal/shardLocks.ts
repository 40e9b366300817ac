/**
 * The locks of shards, as rows that their runner renews.
 *
 * A lock of a database session is lost with its session, and PostgreSQL ends a session whose runner was busy for some
 * seconds. A row is kept until it expires or another runner has it, whatever happens to the connection, and a shard is
 * kept with its row (see `keptLocks.ts`). Shards that are given back at the same time are deleted by one statement:
 * hundreds of them would take longer than a lock lasts on a busy machine.
 */

import { PersistenceError } from "effect/cluster/ClusterError"
import { RunnerStorage } from "effect/cluster/RunnerStorage"
import { ShardingConfig } from "effect/cluster/ShardingConfig"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import { SqlClient } from "effect/sql/SqlClient"
import * as KeptLocks from "./keptLocks.ts"

/** Gives one shard of a runner back. */
class Release extends Request.TaggedClass("Release")<
  { readonly runner: string; readonly shard: string },
  void,
  PersistenceError
> {}

/** The runners of a database and the locks of their shards. Needs `shardLockDisableAdvisory`. */
export const layer: Layer.Layer<RunnerStorage, never, SqlClient | ShardingConfig> = Layer.effect(
  RunnerStorage,
  Effect.gen(function* () {
    const storage = yield* RunnerStorage
    const { shardLockExpiration, shardLockRefreshInterval } = yield* ShardingConfig
    const kept = yield* KeptLocks.make(storage, {
      expiration: Duration.toMillis(shardLockExpiration),
      interval: Duration.toMillis(shardLockRefreshInterval)
    })
    const sql = (yield* SqlClient).withoutTransforms()
    const resolver = RequestResolver.makeGrouped<Release, string>({
      key: ({ request }) => request.runner,
      resolver: (entries, runner) => {
        const shards = entries.map(({ request }) => request.shard)
        const released = sql`DELETE FROM cluster_locks WHERE address = ${runner} AND ${sql.in("shard_id", shards)}`
        return released.pipe(
          Effect.timeout("5 seconds"),
          PersistenceError.refail,
          Effect.andThen(Effect.forEach(entries, (entry) => Request.succeed(entry, undefined), { discard: true }))
        )
      }
    }).pipe(RequestResolver.setDelay("20 millis"))
    return RunnerStorage.of({
      ...storage,
      ...kept,
      release: ({ host, port }, shardId) =>
        Effect.request(new Release({ runner: `${host}:${port}`, shard: shardId.toString() }), resolver)
    })
  })
).pipe(Layer.provide(Layer.orDie(SqlRunnerStorage.layer)))

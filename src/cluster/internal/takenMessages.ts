/**
 * The messages of a cluster in its database, which are read again when their shard is taken.
 *
 * A message that a runner has read is hidden from others for ten minutes, unless its shard is reset. Effect's sharding
 * asks for that once as it takes a shard, and ignores that it failed or took too long, as while the database restarts:
 * the runs of those messages stayed queued. Here it is repeated until it succeeds.
 */

import { layerDigest } from "@effect/platform-node/NodeCrypto"
import { MessageStorage } from "effect/cluster/MessageStorage"
import type { ShardingConfig } from "effect/cluster/ShardingConfig"
import * as SqlMessageStorage from "effect/cluster/SqlMessageStorage"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"

/** Returns a storage that repeats a reset until it succeeds or the scope closes, even if its caller gave up waiting. */
export const make = (
  storage: MessageStorage["Service"]
): Effect.Effect<MessageStorage["Service"], never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) =>
    MessageStorage.of({
      ...storage,
      resetShards: (given) => {
        const shards = [...given]
        const reset = Effect.retry(storage.resetShards(shards), Schedule.spaced("500 millis"))
        return Effect.flatMap(Effect.forkIn(reset, scope), Fiber.join)
      }
    })
  )

/** The messages in the database in context. */
export const layer: Layer.Layer<MessageStorage, never, SqlClient | ShardingConfig> = Layer.effect(
  MessageStorage,
  Effect.flatMap(MessageStorage, make)
).pipe(Layer.provide(SqlMessageStorage.layer), Layer.provide(layerDigest))

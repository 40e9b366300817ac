/** The address of a run in the tables of messages. */

import * as EntityAddress from "effect/cluster/EntityAddress"
import * as EntityId from "effect/cluster/EntityId"
import type { Sharding } from "effect/cluster/Sharding"
import { idOf, RunEntity } from "../RunEntity.ts"

/** Returns the address of the entity of a run. */
export const addressOf = (sharding: Sharding["Service"], runId: string): EntityAddress.EntityAddress => {
  const entityId = EntityId.make(idOf(runId))
  const shardId = sharding.getShardId(entityId, RunEntity.getShardGroup(entityId))
  return EntityAddress.make({ entityType: RunEntity.type, entityId, shardId })
}

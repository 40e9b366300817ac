/**
 * The messages of a run in a cluster.
 *
 * An active run is an entity: the runner that owns its shard runs it. The entity holds nothing beyond the store of
 * runs, so losing a message, a runner or every table of the cluster loses no run. A run at rest has no entity.
 *
 * @since 0.1.0
 */

import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as DeliverAt from "effect/cluster/DeliverAt"
import * as Entity from "effect/cluster/Entity"
import * as DateTime from "effect/DateTime"
import * as PrimaryKey from "effect/PrimaryKey"
import * as Rpc from "effect/rpc/Rpc"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import { Resumption } from "./internal/wire.ts"

// ---------------------------------------------------------------- models

/**
 * Brings a run to rest: a new run, an answered one, and one whose runner died.
 *
 * The reply means that the run is at rest in the store. A run that is already at rest stays so, unless `how` resumes
 * it. A message for an earlier revision of the run changes nothing.
 *
 * @category models
 * @since 0.1.0
 */
export class Drive extends Schema.Class<Drive>("kernai/Run/Drive")({
  runId: Schema.String,
  /** The revision of the run that the sender saw. Equal messages for the same revision count as one. */
  revision: Schema.Int,
  /** Resumes a run at rest with these options. */
  how: Schema.optionalKey(Resumption),
  /** Distinguishes two resumes of one revision. */
  nonce: Schema.optionalKey(Schema.String),
  /** The time of delivery, in milliseconds since the epoch. Default: at once. */
  at: Schema.optionalKey(Schema.Finite)
}) {
  [PrimaryKey.symbol](): string {
    return [this.revision, this.at ?? "", this.nonce ?? ""].join("/")
  }
  [DeliverAt.symbol](): DateTime.DateTime {
    return DateTime.makeUnsafe(this.at ?? 0)
  }
}

/**
 * The reply to `Drive`. `refused` is the error of a resume that the run rejected.
 *
 * @category models
 * @since 0.1.0
 */
export const Driven = Schema.Struct({ refused: Schema.optionalKey(Schema.Json) })

/**
 * How a runner got on with the run of another one: it is at rest, and needs a message at `next`; it has to be driven
 * again; it rejected the resume; or this runner does not have its agent.
 *
 * @category models
 * @since 0.1.0
 */
export const Lent = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("rest"),
    next: Schema.optionalKey(Schema.Struct({ revision: Schema.Int, at: Schema.Finite }))
  }),
  Schema.Struct({ type: Schema.Literal("again") }),
  Schema.Struct({ type: Schema.Literal("refused"), refused: Schema.Json }),
  Schema.Struct({ type: Schema.Literal("unknown"), agent: Schema.String })
])

/**
 * A live event of a run, as JSON, with the last revision published before it.
 *
 * @category models
 * @since 0.1.0
 */
export const Live = Schema.Struct({ after: Schema.Int, isFirst: Schema.Boolean, event: Schema.String })

// ---------------------------------------------------------------- entity

/**
 * The entity of a run. Its id is `idOf` the root run.
 *
 * - `Drive` is stored until a runner has brought the run to rest and replied.
 * - `Follow` emits the live events of a run of the tree after a revision, until that run is at rest. Stored events are
 *   read from the store, which every process has.
 * - `Has` returns whether the runner has an agent. `Lend` drives the run of a runner that does not have its agent, as
 *   long as that runner waits for the reply. Both are sent to any entity of a runner.
 * - `Ping` returns the address of the runner.
 *
 * A run whose id is `<group>!<rest>` belongs to a group of shards, so that a runner may take only the runs of one
 * tenant, or the runs that need its machine. All others belong to the group `default`.
 *
 * A cancellation needs no message: it is stored, which fences the runner out and stops it.
 *
 * @category entities
 * @since 0.1.0
 */
export const RunEntity = Entity.make("kernai/Run", [
  Rpc.make("Drive", { payload: Drive, success: Driven })
    .annotate(ClusterSchema.Persisted, true)
    .annotate(ClusterSchema.InterruptOnTermination, true)
    .annotate(ClusterSchema.Uninterruptible, "client"),
  Rpc.make("Follow", {
    payload: { runId: Schema.String, after: Schema.Int },
    success: Live,
    stream: true
  }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Has", { payload: { agent: Schema.String }, success: Schema.Boolean }),
  Rpc.make("Lend", { payload: Drive, success: Lent }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Ping", { success: Schema.String })
])
  .annotate(ClusterSchema.ClientTracingEnabled, false)
  .annotate(ClusterSchema.ShardGroup, (entityId) => /^([a-z0-9-]{1,32})!/.exec(entityId)?.[1] ?? "default")

/**
 * Returns the id of a run's entity: the id of the run, or its digest if a table of messages could not hold it.
 *
 * @category entities
 * @since 0.1.0
 */
export const idOf = (runId: string): string =>
  /^[\x21-\x7e]{1,200}$/.test(runId) ? runId : `#${createHash("sha256").update(runId).digest("hex")}`

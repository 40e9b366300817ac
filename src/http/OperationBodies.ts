/**
 * The Schemas of requests and responses of operators: runs that need somebody, processes, and schedules.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import { needs } from "../Operations.ts"
import { states } from "../Processes.ts"
import { statusWords } from "../RunStore.ts"
import { Head } from "./RunBodies.ts"

const Need = Schema.Literals(needs)

const runsOf = {
  agent: Schema.optionalKey(Schema.String),
  /** Only runs that were started with this version of their agent. */
  version: Schema.optionalKey(Schema.String),
  tenant: Schema.optionalKey(Schema.String)
}

/**
 * Selects runs that need somebody.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Needy = Schema.Struct({ need: Schema.optionalKey(Need), ...runsOf })

/**
 * Runs that need the same, of one version of an agent. Instants are milliseconds since the epoch.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Group = Schema.Struct({
  need: Need,
  reason: Schema.optionalKey(Schema.String),
  agent: Schema.String,
  version: Schema.optionalKey(Schema.String),
  runs: Schema.Int,
  /** The run that changed least recently, and when it did. */
  oldest: Schema.String,
  since: Schema.Finite
})

/**
 * Offers all runs with a need to workers again.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Requeue = Schema.Struct({ need: Need, ...runsOf })

/**
 * Deletes runs whose last change is older than a time, with their tasks and media.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Prune = Schema.Struct({
  /** Milliseconds since the epoch. */
  updatedBefore: Schema.Finite,
  /** Default: `completed`. */
  status: Schema.optionalKey(Schema.Array(Schema.Literals(statusWords))),
  agent: Schema.optionalKey(Schema.String),
  tenant: Schema.optionalKey(Schema.String)
})

/**
 * The runs that an operation changed.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Changed = Schema.Struct({ runIds: Schema.Array(Schema.String) })

const target = {
  process: Schema.optionalKey(Schema.String),
  agent: Schema.optionalKey(Schema.String),
  version: Schema.optionalKey(Schema.String)
}

/**
 * Selects agents in processes: those of one process, an agent or a version of it in all processes, or all.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Target = Schema.Struct(target)

/**
 * Drains a target, for a reason.
 *
 * @category schemas
 * @since 0.1.0
 */
export const DrainRequest = Schema.Struct({ ...target, reason: Schema.optionalKey(Schema.String) })

/**
 * A drain that stands. Instants are milliseconds since the epoch.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Drain = Schema.Struct({
  ...target,
  at: Schema.Finite,
  by: Schema.optionalKey(Schema.String),
  reason: Schema.optionalKey(Schema.String)
})

/**
 * A process that runs stored runs. Instants are milliseconds since the epoch.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Process = Schema.Struct({
  name: Schema.String,
  state: Schema.Literals(states),
  since: Schema.Finite,
  agents: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      version: Schema.optionalKey(Schema.String),
      runs: Schema.Int,
      drain: Schema.optionalKey(Drain)
    })
  ),
  /** The 20 oldest of its runs. */
  holds: Schema.Array(Schema.Struct({ runId: Schema.String, agent: Schema.String, since: Schema.Finite }))
})

/**
 * The processes of a store, and the drains that stand.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Processes = Schema.Struct({ processes: Schema.Array(Process), drains: Schema.Array(Drain) })

/**
 * Selects schedules.
 *
 * @category schemas
 * @since 0.1.0
 */
export const SchedulesQuery = Schema.Struct({
  agent: Schema.optionalKey(Schema.String),
  tenant: Schema.optionalKey(Schema.String)
})

/**
 * A schedule, and what became of it. Instants are milliseconds since the epoch.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Schedule = Schema.Struct({
  name: Schema.String,
  agent: Schema.String,
  tenant: Schema.optionalKey(Schema.String),
  cron: Schema.String,
  timeZone: Schema.optionalKey(Schema.String),
  paused: Schema.optionalKey(
    Schema.Struct({
      at: Schema.Finite,
      by: Schema.optionalKey(Schema.String),
      reason: Schema.optionalKey(Schema.String)
    })
  ),
  next: Schema.optionalKey(Schema.Finite),
  last: Schema.optionalKey(Head)
})

/**
 * Pauses a schedule.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Pause = Schema.Struct({ reason: Schema.optionalKey(Schema.String) })

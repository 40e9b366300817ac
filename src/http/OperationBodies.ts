/**
 * The Schemas of requests and responses of operators: runs that need somebody, and schedules.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import { needs } from "../Operations.ts"
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

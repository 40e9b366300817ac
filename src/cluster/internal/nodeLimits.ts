/** Limits of a runner that its node sets and its runs keep. */

import * as Context from "effect/Context"

export interface NodeLimits {
  /** The number of runs that may be active. */
  readonly maxRuns: number
  /** Milliseconds after which another runner may have the shards of one that does not renew its locks. */
  readonly lockExpiration: number
}

export const NodeLimits = Context.Reference<NodeLimits>("kernai/cluster/NodeLimits", {
  defaultValue: () => ({ maxRuns: Infinity, lockExpiration: 10_000 })
})

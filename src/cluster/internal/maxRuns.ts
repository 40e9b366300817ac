/** The number of runs that may be active on a runner. Set by its node, applied by its driver. */

import * as Context from "effect/Context"

export const MaxRuns = Context.Reference<number>("kernai/cluster/MaxRuns", { defaultValue: () => Infinity })

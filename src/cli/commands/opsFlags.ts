/** The flags of `kernai ops`. */

import { Flag } from "effect/cli"
import { needs } from "../../Operations.ts"
import * as Shared from "./flags.ts"

export const opsFlags = {
  store: Shared.store,
  need: Flag.Literals("need", needs).pipe(
    Flag.withMetavar("<need>"),
    Flag.withDescription(`Only runs with this need: ${needs.join(", ")}`),
    Shared.optional
  ),
  agentName: Shared.optionalText("agent-name", "name", "Only runs of this agent"),
  version: Shared.optionalText("agent-version", "version", "Only runs started with this version of their agent"),
  tenant: Shared.optionalText("tenant", "name", "Only runs of this tenant"),
  retry: Shared.toggle("retry", "Offer the runs with this need to workers again, except those that ask a person"),
  json: Shared.toggle("json", "Print a line of JSON for each group")
}

/** The values of the flags of `ops`. */
export type OpsFlags = Shared.Values<typeof opsFlags>

/** The flags of `kernai dev`. */

import { Flag } from "effect/cli"
import * as Shared from "./flags.ts"

const { agent: _, ...agent } = Shared.agent

export const flags = {
  agents: Shared.optionalArgument(
    "agents",
    "The module of the agents, or one of them: ./agents.ts#support (default: agents.ts or agent.ts, here or in src)"
  ),
  ...agent,
  store: Shared.storeFor("Where the runs are stored").pipe(Flag.withDefault(".kernai/dev.db")),
  create: Shared.create,
  port: Shared.port,
  open: Shared.open,
  json: Shared.toggle("json", "Print the address as JSON")
}

/** The values of the flags of `dev`. */
export type DevFlags = Shared.Values<typeof flags>

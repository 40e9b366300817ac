/** The flags of `kernai acp`. */

import { Flag } from "effect/cli"
import * as Shared from "./flags.ts"

export const flags = {
  ...Shared.agent,
  store: Shared.storeFor("Where sessions are stored").pipe(Flag.withDefault(".kernai/acp.db"))
}

export type AcpFlags = Shared.Values<typeof flags>

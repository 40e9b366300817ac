/** The flags of `kernai acp`. */

import { Flag } from "effect/cli"
import * as Shared from "./flags.ts"

// The skills of a session are known when it begins, and its agent before.
const { code: _, ...agent } = Shared.agent

export const flags = {
  ...agent,
  workspace: Shared.toggle(
    "workspace",
    "Work in the folder of each session: read, search and edit files, run commands"
  ).pipe(Flag.withAlias("w")),
  sandbox: Shared.optionalToggle("sandbox", "Run the commands of --workspace without network and other files (Linux)"),
  plan: Shared.optionalToggle("plan", "Begin sessions in plan mode, which changes nothing"),
  store: Shared.storeFor("Where sessions are stored").pipe(Flag.withDefault(".kernai/acp.db")),
  create: Shared.create
}

export type AcpFlags = Shared.Values<typeof flags>

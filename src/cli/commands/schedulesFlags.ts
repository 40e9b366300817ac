/** The flags of `kernai schedules`. */

import { Argument, Flag } from "effect/cli"
import { localCaller } from "../localCaller.ts"
import * as Shared from "./flags.ts"

const { json, store } = Shared
const name = Argument.String("name").pipe(Argument.withDescription("The name of the schedule"))

export const listFlags = {
  store,
  agentName: Shared.optionalText("agent-name", "name", "Only schedules of this agent"),
  tenant: Shared.optionalText("tenant", "name", "Only schedules of this tenant"),
  json: Shared.toggle("json", "Print a line of JSON for each schedule")
}

/** The values of the flags of `list`. */
export type ListFlags = Shared.Values<typeof listFlags>

export const oneFlags = { name, store, json }

/** The values of the flags of `resume`, `run` and `remove`. */
export type OneFlags = Shared.Values<typeof oneFlags>

export const pauseFlags = {
  ...oneFlags,
  by: Shared.text("by", "name", "Who pauses it; stored with the schedule").pipe(Flag.withDefault(localCaller.id)),
  reason: Shared.optionalText("reason", "text", "Why; stored with the schedule")
}

/** The values of the flags of `pause`. */
export type PauseFlags = Shared.Values<typeof pauseFlags>

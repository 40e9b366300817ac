/** The flags of `kernai processes`. */

import { Flag } from "effect/cli"
import { localCaller } from "../localCaller.ts"
import * as Shared from "./flags.ts"

const { store } = Shared

export const listFlags = {
  store,
  agentName: Shared.optionalText("agent-name", "name", "Only processes with this agent"),
  version: Shared.optionalText("agent-version", "version", "Only processes with this version of an agent"),
  json: Shared.toggle("json", "Print a line of JSON for each process")
}

/** The values of the flags of `list`. */
export type ListFlags = Shared.Values<typeof listFlags>

export const targetFlags = {
  name: Shared.optionalArgument("name", "The name of the process, as 'kernai processes list' shows it"),
  store,
  agentName: Shared.optionalText("agent-name", "name", "This agent, in all processes"),
  version: Shared.optionalText("agent-version", "version", "This version of an agent"),
  all: Shared.toggle("all", "All agents, in all processes"),
  json: Shared.toggle("json", "Print a line of JSON for each process")
}

/** The values of the flags of `undrain`. */
export type TargetFlags = Shared.Values<typeof targetFlags>

export const drainFlags = {
  ...targetFlags,
  by: Shared.text("by", "name", "Who drains; stored with the drain").pipe(Flag.withDefault(localCaller.id)),
  reason: Shared.optionalText("reason", "text", "Why; stored with the drain")
}

/** The values of the flags of `drain`. */
export type DrainFlags = Shared.Values<typeof drainFlags>

/** The flags of `kernai studio`. */

import { Flag } from "effect/cli"
import { defaultReports } from "./evalFlags.ts"
import * as Shared from "./flags.ts"

export const flags = {
  store: Shared.optional(Shared.store),
  create: Shared.create,
  ...Shared.agent,
  agentName: Shared.agentName,
  playModel: Shared.text(
    "play-model",
    "model",
    "Offer this model in the playground, too: <provider>/<model>; repeatable, with --model or --agent"
  ).pipe(Flag.atLeast(0)),
  scenarios: Shared.optionalText(
    "scenarios",
    "folder",
    "Show the reports that 'kernai scenario matrix' wrote into this folder (.kernai/scenarios, where there is one)"
  ),
  evaluations: Shared.optionalText(
    "evaluations",
    "folder",
    `The folder of evaluations: reports of 'kernai eval', data sets and scores (${defaultReports})`
  ),
  endUser: Shared.toggle("end-user", "Serve the chat for end users instead, with --model, --agent or --script"),
  readOnly: Shared.toggle("read-only", "Show only: start, answer, cancel and fork nothing"),
  port: Shared.port,
  open: Shared.open,
  json: Shared.toggle("json", "Print the address as JSON")
}

/** The values of the flags of `studio`. */
export type StudioFlags = Shared.Values<typeof flags>

/**
 * `kernai studio`: runs in a browser.
 */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import * as Shared from "./flags.ts"

const flags = {
  store: Shared.optional(Shared.store),
  ...Shared.agent,
  agentName: Shared.agentName,
  scenarios: Shared.optionalText(
    "scenarios",
    "folder",
    "Show the reports that 'kernai scenario matrix' wrote into this folder (.kernai/scenarios, where there is one)"
  ),
  readOnly: Shared.toggle("read-only", "Show only: start, answer, cancel and fork nothing"),
  port: Shared.positive("port", "number", "The port on this machine (a free one)").pipe(Shared.optional),
  json: Shared.toggle("json", "Print the address as JSON")
}

/** The values of the flags of `studio`. */
export type StudioFlags = Shared.Values<typeof flags>

export const studio = Command.make(
  "studio",
  flags,
  Effect.fnUntraced(function* (input) {
    const { open } = yield* Effect.promise(() => import("../studio/openStudio.ts"))
    return yield* open(input)
  })
).pipe(
  Command.withDescription(
    `Show runs in a browser: follow and answer them, go back in them, fork and export them. With --model, --agent or --script it also runs them, and you can chat. Without a store a recorded run is played. Only this machine can open the printed address, and it holds a token for this start.`
  ),
  Command.withShortDescription("Show, answer and fork runs in a browser"),
  Command.withExamples([
    { command: "kernai studio", description: "Look at a recorded run, without any key" },
    { command: "kernai studio --store sqlite:runs.db --read-only", description: "Look at stored runs" },
    { command: "kernai studio --store sqlite:runs.db -m ollama/llama3.1", description: "Run them, and chat" }
  ])
)

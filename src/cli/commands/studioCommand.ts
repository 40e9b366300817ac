/**
 * `kernai studio`: runs in a browser.
 */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { flags } from "./studioFlags.ts"

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
    { command: "kernai studio --store sqlite:runs.db -m ollama/llama3.1", description: "Run them, and chat" },
    { command: "kernai studio --end-user --agent ./agents.ts", description: "Chat as a user of the agent would" }
  ])
)

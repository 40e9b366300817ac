/** `kernai dev`: the agents of a module in the studio, reloaded when it changes. */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { flags } from "./devFlags.ts"

export const dev = Command.make(
  "dev",
  flags,
  Effect.fnUntraced(function* (input) {
    const { dev } = yield* Effect.promise(() => import("../dev/devServer.ts"))
    return yield* dev(input)
  })
).pipe(
  Command.withDescription(
    "Serve the agents of a module in the studio, with its chat, and load them again when one of their files changes. A file with a mistake is reported, and the agents stay as they were. Runs are stored, and continue under the changed agents. The code of the module runs."
  ),
  Command.withShortDescription("Serve agents while you write them"),
  Command.withExamples([
    { command: "kernai dev", description: "Serve all agents of agents.ts" },
    { command: "kernai dev ./desk.ts#support -m ollama/llama3.1 --open", description: "Serve one, with a local model" }
  ])
)

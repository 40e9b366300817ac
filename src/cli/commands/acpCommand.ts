/** `kernai acp`: an agent in an editor. */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { flags } from "./acpFlags.ts"

export const acp = Command.make("acp", flags, (input) =>
  Effect.flatMap(
    Effect.promise(() => import("../acp/serveAcp.ts")),
    ({ serve }) => serve(input)
  )
).pipe(
  Command.withDescription(
    "Serve an agent to an editor over the Agent Client Protocol, on the standard streams: Zed, JetBrains, Neovim, Emacs. The editor starts the command. Sessions are stored; calls that may change something are asked about in the editor."
  ),
  Command.withShortDescription("Serve an agent to an editor"),
  Command.withExamples([
    {
      command: "kernai acp --workspace --model ollama/llama3.1",
      description: "Serve an agent that works in the folder that is open"
    },
    { command: "kernai acp --agent librarian.yaml", description: "Serve the agent of a file" }
  ])
)

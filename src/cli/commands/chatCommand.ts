/** `kernai chat`: a conversation that can be continued. */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { help } from "../exit.ts"
import { flags } from "./chatFlags.ts"

export const chat = Command.make(
  "chat",
  flags,
  Effect.fnUntraced(function* (input) {
    const { chat } = yield* Effect.promise(() => import("../chat/terminalChat.ts"))
    const { layerProcess } = yield* Effect.promise(() => import("../chat/lineReader.ts"))
    yield* Effect.provide(chat(input), layerProcess(input.history))
  })
).pipe(
  Command.withDescription(
    `Chat with a model. Every message is stored: a chat that was ended or killed can be continued. It keeps its flags, too: give only those to change. It asks before calls that may change something. Without a terminal, every line of the input is a message, and one that fails is the last. ${help}`
  ),
  Command.withShortDescription("Chat with a model, and continue later"),
  Command.withExamples([
    { command: "kernai chat --model ollama/llama3.1", description: "Chat with a local model" },
    {
      command: "kernai chat -m ollama/llama3.1 --session plans --skills-from ./skills",
      description: "Continue a conversation, with your own skills"
    },
    { command: "kernai chat --agent librarian.yaml", description: "Chat with the agent of a file" }
  ])
)

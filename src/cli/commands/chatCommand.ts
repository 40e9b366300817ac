/**
 * `kernai chat`: a conversation that continues where it was.
 */

import { Command, Flag } from "effect/cli"
import * as Effect from "effect/Effect"
import { help } from "../exit.ts"
import * as Shared from "./flags.ts"

const flags = {
  agent: Shared.optionalText(
    "agent",
    "file",
    "Chat with the agent of a YAML or JSON file; other flags override it"
  ).pipe(Flag.withAlias("a")),
  ...Shared.source,
  session: Shared.text("session", "name", "The conversation to continue, or to start (default)").pipe(
    Flag.withAlias("s"),
    Flag.withDefault("default")
  ),
  store: Shared.text(
    "store",
    "store",
    "Where conversations are stored: sqlite:FILE or only FILE, file:FOLDER, pg:URL (.kernai/chat.db)"
  ).pipe(Flag.withDefault(".kernai/chat.db")),
  system: Shared.agent.system,
  skillsFrom: Shared.agent.skillsFrom,
  skills: Shared.agent.skills,
  yes: Shared.agent.yes,
  maxSteps: Shared.positive(
    "max-steps",
    "number",
    "How many turns a message may take (20; with --agent what its file says, or 10)"
  ).pipe(Shared.optional),
  dialect: Flag.Literals("dialect", ["blocks", "tools", "auto"]).pipe(
    Flag.withMetavar("<dialect>"),
    Flag.withDescription("Blocks in text (default), the native tool calls of the model, or as it is best asked (auto)"),
    Shared.optional
  ),
  color: Shared.color
}

export type ChatFlags = Shared.Values<typeof flags>

export const chat = Command.make(
  "chat",
  flags,
  Effect.fnUntraced(function* (input) {
    const { chat } = yield* Effect.promise(() => import("../chat/terminalChat.ts"))
    const { layerProcess } = yield* Effect.promise(() => import("../chat/lineReader.ts"))
    yield* Effect.provide(chat(input), layerProcess)
  })
).pipe(
  Command.withDescription(
    `Chat with a model. Every message is stored: a chat that was ended or killed continues where it was. It asks before calls that may change something. Without a terminal, every line of the input is a message, and one that fails is the last. ${help}`
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

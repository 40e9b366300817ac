/** The flags of `kernai chat`. */

import { Flag } from "effect/cli"
import * as Config from "effect/Config"
import * as Shared from "./flags.ts"

export const flags = {
  ...Shared.agent,
  session: Shared.text("session", "name", "The conversation to continue, or to start (default)").pipe(
    Flag.withAlias("s"),
    Flag.withDefault("default")
  ),
  store: Shared.storeFor("Where conversations are stored").pipe(Flag.withDefault(".kernai/chat.db")),
  create: Shared.create,
  workspace: Shared.optionalText(
    "workspace",
    "folder",
    "Work in this folder: read, search and edit files, run commands"
  ).pipe(Flag.withAlias("w")),
  sandbox: Shared.optionalToggle("sandbox", "Run the commands of --workspace without network and other files (Linux)"),
  plan: Shared.optionalToggle("plan", "Begin in plan mode, which changes nothing; /work carries the plan out"),
  maxSteps: Shared.optional(
    Shared.positive("max-steps", "number", "Maximum turns of a message (20, or that of the agent file)")
  ),
  history: Flag.Boolean("history").pipe(
    Flag.withDescription("Offer the messages of earlier chats, from a file (--no-history, KERNAI_HISTORY=false)"),
    Flag.withFallbackConfig(Config.Boolean("KERNAI_HISTORY")),
    Flag.withDefault(true)
  ),
  color: Shared.color
}

export type ChatFlags = Shared.Values<typeof flags>

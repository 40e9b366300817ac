/**
 * All commands, and the parser that finds the one that is meant.
 *
 * A command is a file in `commands` that says how it is called; what it does is
 * loaded when it is.
 */

import * as NodeServices from "@effect/platform-node/NodeServices"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { LogToStderr } from "effect/References"
import { readFileSync } from "node:fs"
import { chat } from "./commands/chatCommand.ts"
import { doctor } from "./commands/doctorCommand.ts"
import { mcp } from "./commands/mcpCommand.ts"
import { run } from "./commands/runCommand.ts"
import { runs } from "./commands/runsCommand.ts"
import { scenario } from "./commands/scenarioCommand.ts"
import { worker } from "./commands/workerCommand.ts"
import { help } from "./exit.ts"
import * as Screen from "./screen.ts"
import * as Text from "./terminalText.ts"

const root = Command.make("kernai").pipe(
  Command.withDescription(`An agent kernel: a model speaks in blocks, kernai runs what they ask for. ${help}`),
  Command.withSubcommands([run, chat, runs, worker, scenario, mcp, doctor])
)

/** Calls the command that these arguments name. */
export const call = (args: ReadonlyArray<string>) =>
  Screen.Screen.use((screen) =>
    Effect.provide(Command.runWith(root, manifest())(args), CliOutput.layerPresenter(presenter(screen)))
  ).pipe(
    Effect.provide(NodeServices.layer),
    // The output is for answers, and for machines.
    Effect.provideService(LogToStderr, true)
  )

// From src and from dist alike, the package is two folders up.
const manifest = (): { readonly version: string } =>
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))

/** A mistake on the command line is told in lines, not in a page of help. */
const presenter = (screen: Screen.Shape): CliOutput.Presenter => ({
  present: (event) =>
    event._tag !== "InvalidInvocation"
      ? CliOutput.defaultPresenter.present(event)
      : Effect.sync(() => {
          for (const error of event.errors) screen.error(`kernai: ${Text.flat(error.message)}\n`)
          screen.error(`'${event.commandPath.join(" ")} --help' tells how it is called\n`)
        })
})

/**
 * All commands, and the parser of the command line.
 *
 * A file in `commands` describes how a command is called. What the command does
 * is loaded when it is called.
 */

import * as NodeServices from "@effect/platform-node/NodeServices"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import type { HelpDoc } from "effect/cli/HelpDoc"
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

/** Calls the command that the arguments name. */
export const call = (args: ReadonlyArray<string>) =>
  Screen.Screen.use((screen) =>
    Effect.provide(Command.runWith(root, manifest())(args), CliOutput.layerPresenter(presenter(screen)))
  ).pipe(
    Effect.provide(NodeServices.layer),
    // Answers have the output to themselves.
    Effect.provideService(LogToStderr, true)
  )

// Two folders up, from src and from dist.
const manifest = (): { readonly version: string } =>
  JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))

/** Prints help, and reports a mistake on the command line in two lines, without a page of help. */
const presenter = (screen: Screen.Shape): CliOutput.Presenter => ({
  present: (event) =>
    Effect.sync(() => {
      switch (event._tag) {
        case "Help":
          return screen.out(`${helpOf(event.helpDoc)}\n`)
        case "Version":
          return screen.out(`${standard.formatVersion(event.name, event.version)}\n`)
        case "InvalidInvocation":
          for (const error of event.errors) screen.error(`kernai: ${Text.flat(error.message)}\n`)
          return screen.error(`'${event.commandPath.join(" ")} --help' explains the command\n`)
      }
    })
})

// ---------------------------------------------------------------- help

const standard = CliOutput.defaultFormatter({ colors: false, globalFlags: "summary" })

/** Formats help in 80 columns. */
const helpOf = (doc: HelpDoc): string => standard.formatHelpDoc(shortened(doc)).split("\n").map(wrap).join("\n")

/** Replaces the lists of choices in the global flags by one word. */
const shortened = (doc: HelpDoc): HelpDoc =>
  doc.globalFlags === undefined
    ? doc
    : {
        ...doc,
        globalFlags: doc.globalFlags.map((flag) => ({ ...flag, type: flag.type.includes("|") ? "<name>" : flag.type }))
      }

/** Breaks a line at blanks, and indents what follows like its last column. */
const wrap = (line: string): string => {
  const [start = ""] = /^ *(?:\S.*? {2,})?/.exec(line) ?? []
  const words = line.slice(start.length).split(" ")
  let text = start + (words.shift() ?? "")
  let used = text.length
  for (const word of words) {
    const isFull = used + 1 + word.length > 80
    text += isFull ? `\n${" ".repeat(start.length)}${word}` : ` ${word}`
    used = isFull ? start.length + word.length : used + 1 + word.length
  }
  return text
}

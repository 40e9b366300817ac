/**
 * All commands, the parser of the command line, and the reports of errors. The implementation of a command is loaded
 * when it is called; a file in `commands` only describes its flags.
 */

import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import { CliError, CliOutput, Command, type HelpDoc } from "effect/cli"
import * as Effect from "effect/Effect"
import { LogToStderr } from "effect/References"
import { readFileSync } from "node:fs"
import { acp } from "./commands/acpCommand.ts"
import { chat } from "./commands/chatCommand.ts"
import { dev } from "./commands/devCommand.ts"
import { doctor } from "./commands/doctorCommand.ts"
import { evalCommand } from "./commands/evalCommand.ts"
import { mcpCommand } from "./commands/mcpCommand.ts"
import { ops } from "./commands/opsCommand.ts"
import { processes } from "./commands/processesCommand.ts"
import { run } from "./commands/runCommand.ts"
import { runs } from "./commands/runsCommand.ts"
import { scenario } from "./commands/scenarioCommand.ts"
import { schedules } from "./commands/schedulesCommand.ts"
import { store } from "./commands/storeCommand.ts"
import { studio } from "./commands/studioCommand.ts"
import { worker } from "./commands/workerCommand.ts"
import { CommandFailed, help } from "./exit.ts"
import { packageFolder } from "./packageFolder.ts"
import { Screen, type Shape } from "./screen.ts"
import * as Text from "./terminalText.ts"

const root = Command.make("kernai").pipe(
  Command.withDescription(`Run agents, store their runs, and inspect them. ${help}`),
  Command.withSubcommands([
    run,
    chat,
    acp,
    runs,
    schedules,
    ops,
    processes,
    dev,
    studio,
    worker,
    store,
    scenario,
    evalCommand,
    mcpCommand,
    doctor
  ])
)

/**
 * Runs a command and reports its failure: as a line for people and, with `--json`, as an object unless the command
 * printed one.
 */
export const program = (args: ReadonlyArray<string>): Effect.Effect<unknown, unknown, Screen> =>
  Screen.use((screen) => {
    let isPrinted = !args.some((arg) => /^--json(=(true|yes|on|1|y))?$/.test(arg))
    const out = (text: string) => {
      isPrinted = true
      screen.out(text)
    }
    return call(args).pipe(
      Effect.provideService(Screen, { ...screen, out }),
      Effect.onError((cause) =>
        Effect.sync(() => {
          if (!isPrinted) screen.out(`${Text.json({ ok: false, error: failureOf(cause) })}\n`)
          report(screen, cause)
        })
      )
    )
  })

const failureOf = (cause: Cause.Cause<unknown>) => {
  if (Cause.hasInterruptsOnly(cause)) return { message: "interrupted" }
  const error = Cause.squash(cause)
  if (error instanceof CommandFailed) return { tag: error.tag, message: error.reason, hint: error.hint }
  return { message: isShowHelp(error) ? error.errors.map(messageOf).join("; ") : messageOf(error) }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const isShowHelp = (error: unknown): error is CliError.ShowHelp => error instanceof CliError.ShowHelp

const report = (screen: Shape, cause: Cause.Cause<unknown>): void => {
  if (Cause.hasInterruptsOnly(cause)) return screen.error("kernai: interrupted\n")
  const error = Cause.squash(cause)
  if (error instanceof CommandFailed) {
    const hint = error.hint === undefined ? "" : `  ${Text.flat(error.hint)}\n`
    return screen.error(`kernai: ${Text.flat(error.reason)}\n${hint}`)
  }
  // The parser has reported mistakes on the command line. Anything else is a bug, shown with its stack.
  if (!isShowHelp(error)) screen.error(Text.paragraph(`kernai: ${Cause.pretty(cause)}`))
}

const call = (args: ReadonlyArray<string>) =>
  Screen.use((screen) =>
    Effect.provide(Command.runWith(root, manifest())(args), CliOutput.layerPresenter(presenter(screen)))
  ).pipe(
    Effect.provide(NodeServices.layer),
    // Only answers go to the output.
    Effect.provideService(LogToStderr, true)
  )

const manifest = (): { readonly version: string } =>
  JSON.parse(readFileSync(new URL("package.json", packageFolder), "utf8"))

/** Prints help, and reports a mistake on the command line in two lines, without the help page. */
const presenter = (screen: Shape): CliOutput.Presenter => ({
  present: (event) =>
    Effect.sync(() => {
      switch (event._tag) {
        case "Help":
          return screen.out(`${helpOf(event.helpDoc)}\n`)
        case "Version":
          return screen.out(`${standard.formatVersion(event.name, event.version)}\n`)
        case "InvalidInvocation":
          for (const error of event.errors) screen.error(`kernai: ${Text.flat(error.message)}\n`)
          return screen.error(`  ${event.commandPath.join(" ")} --help\n`)
      }
    })
})

const standard = CliOutput.defaultFormatter({ colors: false, globalFlags: "summary" })

/** Formats help in 80 columns. The choices of global flags are in their descriptions. */
const helpOf = (doc: HelpDoc.HelpDoc): string => {
  const shorten = (flag: HelpDoc.FlagDoc) => ({ ...flag, type: flag.type.includes("|") ? "<name>" : flag.type })
  const help = standard.formatHelpDoc({ ...doc, globalFlags: (doc.globalFlags ?? []).map(shorten) })
  return help.split("\n").map(wrap).join("\n")
}

/** Breaks a line at spaces, and indents the rest like its last column. */
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

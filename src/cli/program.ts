/**
 * One call of the command line, with its errors reported.
 */

import * as Cause from "effect/Cause"
import * as CliError from "effect/cli/CliError"
import * as Effect from "effect/Effect"
import { CommandFailed } from "./exit.ts"
import { call } from "./root.ts"
import { Screen, type Shape } from "./screen.ts"
import * as Text from "./terminalText.ts"

/**
 * Runs a command and reports why it failed: as a line for people and, with `--json`, as an object unless the command
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
  if (error instanceof CommandFailed) return { tag: error.tag, message: error.reason }
  return { message: isShowHelp(error) ? error.errors.map(messageOf).join("; ") : messageOf(error) }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const isShowHelp = (error: unknown): error is CliError.ShowHelp => error instanceof CliError.ShowHelp

const report = (screen: Shape, cause: Cause.Cause<unknown>): void => {
  if (Cause.hasInterruptsOnly(cause)) return screen.error("kernai: interrupted\n")
  const error = Cause.squash(cause)
  if (error instanceof CommandFailed) return screen.error(`kernai: ${Text.flat(error.reason)}\n`)
  // A mistake on the command line was reported by the parser. Anything else is a bug, shown with its stack.
  if (!isShowHelp(error)) screen.error(Text.paragraph(`kernai: ${Cause.pretty(cause)}`))
}

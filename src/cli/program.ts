/**
 * A call of the command line, from its arguments to its last word.
 *
 * What a call needs is loaded when it is made.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { CommandFailed, isHelp } from "./exit.ts"
import * as Screen from "./screen.ts"
import * as Text from "./terminalText.ts"

/**
 * What a call does, up to the words about why it did not work.
 *
 * Above all, `kernai run` alone has nothing to parse, and starts without the parser of arguments.
 */
export const program = (args: ReadonlyArray<string>): Effect.Effect<unknown, unknown, Screen.Screen> =>
  Screen.Screen.use((screen) => {
    let isTold = args.flatMap((arg) => formFlag.exec(arg)?.[1] ?? []).join() !== "--json"
    const out = (text: string) => {
      isTold = true
      screen.out(text)
    }
    return commandOf(args).pipe(
      Effect.provideService(Screen.Screen, { ...screen, out }),
      Effect.onError((cause) =>
        Effect.sync(() => {
          if (!isTold) screen.out(forMachines(cause))
          report(screen, cause)
        })
      )
    )
  })

const commandOf = (args: ReadonlyArray<string>): Effect.Effect<unknown, unknown, Screen.Screen> =>
  args.length === 1 && args[0] === "run"
    ? Effect.flatMap(
        Effect.promise(() => import("./replayModel.ts")),
        (module) => module.replayStandard
      )
    : Effect.flatMap(
        Effect.promise(() => import("./root.ts")),
        (module) => module.call(args)
      )

// Of two that exclude each other none was asked for.
const formFlag = /^(--json|--events|--quiet|-q)(?:=(?:true|yes|on|1|y))?$/

/** Why there was no answer, as whoever asked for JSON is told it when nothing was printed yet. */
const forMachines = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  const message = Cause.hasInterruptsOnly(cause)
    ? "interrupted"
    : isHelp(error)
      ? error.errors.map(messageOf).join("; ")
      : messageOf(error)
  const tag = error instanceof CommandFailed ? error.tag : undefined
  return `${Text.json({ ok: false, error: { tag, message } })}\n`
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Says in a line why there was no answer; what nobody expected is told whole. */
const report = (screen: Screen.Shape, cause: Cause.Cause<unknown>): void => {
  if (Cause.hasInterruptsOnly(cause)) return screen.error("kernai: interrupted\n")
  const error = Cause.squash(cause)
  if (error instanceof CommandFailed) return screen.error(`kernai: ${Text.flat(error.reason)}\n`)
  if (!isHelp(error)) screen.error(Text.paragraph(`kernai: ${Cause.pretty(cause)}`))
}

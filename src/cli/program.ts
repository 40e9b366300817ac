/**
 * A call of the command line, from its arguments to its last word.
 *
 * What a call needs is loaded when it is made.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { CommandFailed, isHelp } from "./exit.ts"
import * as Screen from "./screen.ts"
import * as Text from "./text.ts"

/**
 * What a call does, up to the words about why it did not work.
 *
 * Above all, `kernai run` alone has nothing to parse, and starts without the parser of arguments.
 *
 * @category running
 * @since 0.1.0
 */
export const program = (args: ReadonlyArray<string>): Effect.Effect<unknown, unknown, Screen.Screen> =>
  Screen.Screen.use((screen) => Effect.onError(commandOf(args), (cause) => Effect.sync(() => report(screen, cause))))

const commandOf = (args: ReadonlyArray<string>): Effect.Effect<unknown, unknown, Screen.Screen> =>
  args.length === 1 && args[0] === "run"
    ? Effect.flatMap(
        Effect.promise(() => import("./replay.ts")),
        (module) => module.replayStandard
      )
    : Effect.flatMap(
        Effect.promise(() => import("./root.ts")),
        (module) => module.call(args)
      )

/** Says in a line why there was no answer; what nobody expected is told whole. */
const report = (screen: Screen.Shape, cause: Cause.Cause<unknown>): void => {
  if (Cause.hasInterruptsOnly(cause)) return screen.error("kernai: interrupted\n")
  const error = Cause.squash(cause)
  if (error instanceof CommandFailed) return screen.error(`kernai: ${Text.flat(error.reason)}\n`)
  if (!isHelp(error)) screen.error(Text.paragraph(`kernai: ${Cause.pretty(cause)}`))
}

/** The end of a command: an exit code for scripts, and one line for people. */

import * as Cause from "effect/Cause"
import * as CliError from "effect/cli/CliError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Refusal } from "../kit/files.ts"
import { withVendorWords } from "../KernelError.ts"
import { excerpt } from "./terminalText.ts"

export const Codes = {
  /** The run has an answer, or the command succeeded. */
  done: 0,
  /** The run or the command failed. */
  failed: 1,
  /** Nothing was done: the command line, a file or a key is invalid. */
  usage: 2,
  /** The run waits for a person. */
  paused: 3,
  interrupted: 130,
  /** Ended by SIGTERM. */
  terminated: 143
} as const

export const help =
  "Exit codes: 0 success, 1 failure, 2 nothing was done (wrong flags, or a missing key, file or run), 3 the run waits for a person, 130 interrupted, 143 terminated."

/** Ends a command with a code and a one-line reason. */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  code: Schema.Int,
  reason: Schema.String,
  /** The tag of the underlying error, for programs that read `--json`. */
  tag: Schema.optionalKey(Schema.String),
  /** A command that helps, ready to paste. */
  hint: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    return this.reason
  }
}

/** Ends a command with code 2. */
export const usage = (reason: string): CommandFailed => new CommandFailed({ code: Codes.usage, reason })

/** Ends a command with code 1. */
export const failed = (reason: string): CommandFailed => new CommandFailed({ code: Codes.failed, reason })

/** Ends a command because a file could not be read. */
export const unreadable = (name: string, refusal: Refusal): CommandFailed =>
  usage(typeof refusal === "string" ? `${name} is ${refusal}` : `${name} cannot be read (${refusal.reason._tag})`)

/** Ends a command with another error before anything was run. */
export const asUsage = (error: { readonly message: string }, what = ""): CommandFailed =>
  error instanceof CommandFailed ? error : usage(`${what}${excerpt(error.message, 400)}`)

/** Ends a command with another error: with code 1, unless the error is about its input. */
export const asFailure = (error: { readonly _tag: string; readonly message: string }): CommandFailed => {
  if (error instanceof CommandFailed) return error
  const code = unknown.has(error._tag) ? Codes.usage : Codes.failed
  return new CommandFailed({ code, reason: excerpt(withVendorWords(error), 800), tag: error._tag })
}

/** Errors about a name that the store does not know. */
const unknown: ReadonlySet<string> = new Set(["RunNotFound", "ScheduleNotFound", "ProcessNotFound", "QuestionNotFound"])

/** Reports the failure of a layer before anything was run. */
export const orUsage = <A, E extends { readonly message: string }, R>(
  layer: Layer.Layer<A, E, R>,
  what?: string
): Layer.Layer<A, CommandFailed, R> =>
  Layer.catch(layer, (error) => Layer.effectContext<A, CommandFailed, never>(Effect.fail(asUsage(error, what))))

/** Returns the exit code of a command. */
export const codeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return Codes.done
  if (Cause.hasInterruptsOnly(exit.cause)) return Codes.interrupted
  const error = Cause.squash(exit.cause)
  if (error instanceof CommandFailed) return error.code
  if (!(error instanceof CliError.ShowHelp)) return Codes.failed
  return error.errors.length === 0 ? Codes.done : Codes.usage
}

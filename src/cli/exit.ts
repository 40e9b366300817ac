/**
 * How the command line ends: a code for scripts, a line for people.
 */

import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type { Refusal } from "../internal/base/files.ts"

/** The exit codes. */
export const Codes = {
  /** The run has an answer. */
  done: 0,
  /** The run failed. */
  failed: 1,
  /** Nothing was run: the command line, a file or a key is not what it should be. */
  usage: 2,
  /** The run waits for a person. */
  paused: 3,
  interrupted: 130
} as const

/** The codes as help tells them. */
export const help =
  "Exit codes: 0 answer, 1 the run failed, 2 nothing was run (usage, a missing key or file), 3 the run waits for a person, 130 interrupted."

/** A command ends here. The message is one line for whoever called it. */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  code: Schema.Int,
  reason: Schema.String,
  /** The tag of the error behind it, for machines. */
  tag: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    return this.reason
  }
}

/** Nothing was run, and why. */
export const usage = (reason: string): CommandFailed => new CommandFailed({ code: Codes.usage, reason })

/** Nothing was run, for a file is not what it should be, or cannot be read. */
export const unread = (name: string, refusal: Refusal): CommandFailed =>
  usage(typeof refusal === "string" ? `${name} is ${refusal}` : `${name} cannot be read (${refusal.reason._tag})`)

/** The code of an end. */
export const codeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return Codes.done
  if (Cause.hasInterruptsOnly(exit.cause)) return Codes.interrupted
  const error = Cause.squash(exit.cause)
  if (error instanceof CommandFailed) return error.code
  if (isHelp(error)) return error.errors.length === 0 ? Codes.done : Codes.usage
  return Codes.failed
}

/**
 * Tells the end of a call that showed help, or what was wrong with its arguments.
 *
 * By its shape: whoever only wants to know need not load the parser.
 */
export const isHelp = (error: unknown): error is { readonly errors: ReadonlyArray<unknown> } =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  error._tag === "ShowHelp" &&
  "errors" in error &&
  Array.isArray(error.errors)

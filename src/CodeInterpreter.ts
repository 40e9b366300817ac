/**
 * The port of interpreters for code that a model writes.
 *
 * An interpreter runs a program until all of it waits for calls, and returns these calls. With their results it
 * continues. It must be repeatable: the same program with the same results makes the same calls, in any process and at
 * any time. `kernai/code` runs agents on it and has an implementation; `CodeInterpreterSuite` of `kernai/testing` checks
 * others.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

/**
 * Fails when a program cannot be run to its end.
 *
 * - `source`: it is too long.
 * - `syntax`: it is not JavaScript, or TypeScript with types that can be removed.
 * - `thrown`: it threw an error that it did not catch.
 * - `stuck`: it waits for a promise that nothing settles.
 * - `cpu`, `memory`, `stack`, `calls`, `output`: it reached this limit.
 * - `unavailable`: the interpreter did not start, or stopped working.
 *
 * @category errors
 * @since 0.1.0
 */
export class CodeFailed extends Schema.TaggedError<CodeFailed>()("CodeFailed", {
  reason: Schema.Literals([
    "source",
    "syntax",
    "thrown",
    "stuck",
    "cpu",
    "memory",
    "stack",
    "calls",
    "output",
    "unavailable"
  ]),
  detail: Schema.String,
  /** The line of the program, counted from 1. */
  line: Schema.optionalKey(Schema.Int),
  /** The text of that line. */
  text: Schema.optionalKey(Schema.String),
  /** The names of the calls that had run. */
  calls: Schema.optionalKey(Schema.Array(Schema.String)),
  /** What the program had logged. */
  log: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const { calls, detail, line, log, text } = this
    return [
      detail,
      ...(line === undefined ? [] : [`  at line ${line}: ${text?.trim() ?? ""}`]),
      ...(calls === undefined ? [] : [`Calls that had run: ${calls.length === 0 ? "none" : calls.join(", ")}`]),
      ...(log === undefined ? [] : [`Log:\n${log}`])
    ].join("\n")
  }
}

/**
 * The bounds of one program.
 *
 * @category models
 * @since 0.1.0
 */
export interface CodeLimits {
  /** UTF-8 bytes of its source. Default: 64 KiB. */
  readonly sourceBytes: number
  /** Bytes of its memory, of which QuickJS takes 5 MB. Default: 64 MiB. At least 16 MiB with QuickJS. */
  readonly memoryBytes: number
  /** Bytes of its stack. Default: 128 KiB. */
  readonly stackBytes: number
  /** Processor time between calls. Default: 5 seconds. */
  readonly cpuTime: Duration.Duration
  /** Number of its calls. Default: 256. */
  readonly calls: number
  /** Length of its result as JSON, and of the inputs of calls that wait together. Default: 1 Mi. */
  readonly outputLength: number
  /** Length of what it logs. The rest is left out. Default: 8 Ki. */
  readonly logLength: number
}

/**
 * A program: the body of an async function in JavaScript, or in TypeScript with types that can be removed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Code {
  readonly source: string
  /** The names of the global functions, which take one input and return a promise. */
  readonly functions: ReadonlyArray<string>
  /** The time that its `Date` shows, in UTC. */
  readonly now: number
  /** The seed of its `Math.random`. */
  readonly seed: number
  readonly limits: CodeLimits
}

/**
 * A call that a program makes.
 *
 * @category models
 * @since 0.1.0
 */
export interface CodeCall {
  readonly name: string
  readonly input: Schema.Json
  /** The line of the program, counted from 1. */
  readonly line?: number
}

/**
 * The result of a call: its value, or the error that the program can catch.
 *
 * @category models
 * @since 0.1.0
 */
export type CodeResult =
  | { readonly _tag: "Value"; readonly value: Schema.Json }
  | { readonly _tag: "Error"; readonly name: string; readonly message: string }

/**
 * Where a program waits: for calls, or no more, since it returned.
 *
 * @category models
 * @since 0.1.0
 */
export type CodeStep =
  | { readonly _tag: "Calls"; readonly calls: ReadonlyArray<CodeCall> }
  | { readonly _tag: "Returned"; readonly value: Schema.Json; readonly log: string }

/**
 * A program that an interpreter runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface CodeExecution {
  /**
   * Runs the program until it waits. It also waits at its end for calls that it has made. `results` are those of the calls of the step before, all of them in their order;
   * none for the first step. May run again with the same results after it was interrupted.
   */
  readonly next: (results: ReadonlyArray<CodeResult>) => Effect.Effect<CodeStep, CodeFailed>
}

/**
 * Runs programs that a model has written, apart from everything else.
 *
 * @category services
 * @since 0.1.0
 */
export class CodeInterpreter extends Context.Service<
  CodeInterpreter,
  {
    /** Prepares a program. The end of the scope stops it at once, without waiting. */
    readonly open: (code: Code) => Effect.Effect<CodeExecution, never, Scope.Scope>
  }
>()("kernai/CodeInterpreter") {}

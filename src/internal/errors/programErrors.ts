/**
 * Errors of programs: agents whose steps are code.
 */

import * as Schema from "effect/Schema"

/** The program failed, or could not read its input. The run can be resumed once the program is corrected. */
export class ProgramFailed extends Schema.TaggedError<ProgramFailed>()("ProgramFailed", {
  program: Schema.String,
  /** The tag of the failure, `Defect`, or `InvalidInput`. */
  error: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the program '${this.program}' failed: ${this.detail === "" ? this.error : this.detail}`
  }
}

/**
 * The program no longer makes the call that its run has recorded. Nothing was run again. The run can be resumed with the
 * program as it was, or with one that makes the recorded calls for older runs.
 */
export class ProgramChanged extends Schema.TaggedError<ProgramChanged>()("ProgramChanged", {
  program: Schema.String,
  /** The turn, counted from 1. */
  turn: Schema.Int,
  /** The recorded call: its name and its input as JSON. Absent if the program had ended there. */
  recorded: Schema.optionalKey(Schema.String),
  /** The call that the program makes now. Absent if it ends there. */
  now: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const { now = "nothing", recorded = "nothing" } = this
    return `the program '${this.program}' has changed: in turn ${this.turn} it called ${recorded}, now it calls ${now}`
  }
}

/**
 * The program waits for something that is not recorded, such as a promise or a timer, so it could not be replayed. Put it
 * into `Program.step`.
 */
export class ProgramImpure extends Schema.TaggedError<ProgramImpure>()("ProgramImpure", {
  program: Schema.String,
  /** The last call of the program before it. Absent if there was none. */
  after: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const place = this.after === undefined ? "before its first call" : `after the call ${this.after}`
    return `the program '${this.program}' waits for something outside of it ${place}: wrap it in Program.step`
  }
}

/**
 * Questions of calls to a person, and the answers, as they are stored.
 */

import * as Schema from "effect/Schema"
import { lazily, type TypeOf } from "../../kit/schemas.ts"
import type { Json } from "../../kit/json.ts"
import * as Storable from "../../kit/storable.ts"
import { Asking } from "./asking.ts"
import { Answerers } from "../../Caller.ts"
import { ownId } from "./messageSchema.ts"

/**
 * A call that waits for a person. The answer is stored in the journal.
 *
 * @category models
 * @since 0.1.0
 */
export interface Question extends TypeOf<typeof question> {}

const asking = lazily(() =>
  Schema.Struct({
    ...Asking.fields,
    form: Schema.optionalKey(Storable.JsonObject),
    output: Schema.optionalKey(Storable.JsonObject)
  })
)

export const question = lazily(() =>
  Schema.Struct({
    callId: ownId(),
    name: Schema.String,
    input: Storable.Json,
    reason: Schema.String,
    /** The call was approved before and could not run, as `reason` says: its skill is gone, or its input does not fit. */
    notRun: Schema.optionalKey(Schema.Literal(true)),
    /** The question of the running call. Absent if the question is whether the call may run. */
    asking: Schema.optionalKey(asking()),
    /**
     * The time at which the question is declined unless it was answered, in milliseconds since the epoch (see
     * `Policy.confirm`).
     */
    answerBy: Schema.optionalKey(Schema.Finite),
    /** Rules about who may answer; each must admit the caller. Absent: everyone who may see the run. */
    answerers: Schema.optionalKey(Schema.Array(Answerers)),
    answer: Schema.optionalKey(answer())
  })
)

/**
 * A question that waits for its answer, and where it was asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface OpenQuestion extends Question {
  /** The run that asks: the run itself, or a child below it. */
  readonly runId: string
  /** The names of the agents from the run down to the one that asks. */
  readonly agents: ReadonlyArray<string>
}

/**
 * A person's decision about a call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Answer extends TypeOf<typeof answer> {}

/**
 * An answer as it is given: a decision, or the result or failure of an external call.
 *
 * @category models
 * @since 0.1.0
 */
export type GivenAnswer = Answer | (External & { readonly output: Json }) | (External & { readonly error: string })

/** Declines the questions that nobody answered in time (`Answer.by`). */
export const deadline = "deadline"

/** An answer without a decision. */
interface External extends Pick<Answer, "callId" | "by"> {
  readonly approved?: never
  readonly reason?: never
  readonly input?: never
  readonly values?: never
  readonly dismissed?: never
}

/** Returns an answer in its recorded form. */
export const decisionOf = (given: GivenAnswer): Answer => {
  if (given.approved !== undefined) return given
  const { by, callId } = given
  const signed = by === undefined ? { callId } : { callId, by }
  return "output" in given
    ? { ...signed, approved: true, output: given.output }
    : { ...signed, approved: false, reason: given.error }
}

export const answer = lazily(() =>
  Schema.Struct({
    callId: ownId(),
    approved: Schema.Boolean,
    reason: Schema.optionalKey(Schema.String),
    by: Schema.optionalKey(Schema.String),
    /** The input to run the call with, instead of the requested one. */
    input: Schema.optionalKey(Storable.Json),
    /** The values of the form that the call asks for (`Question.asking`). */
    values: Schema.optionalKey(Storable.JsonObject),
    /** The result of an external call (see `Skill.external`). */
    output: Schema.optionalKey(Storable.Json),
    /** True if the person dismissed the question without a decision; `approved` is then false. */
    dismissed: Schema.optionalKey(Schema.Boolean)
  })
)

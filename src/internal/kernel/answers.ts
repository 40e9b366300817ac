/**
 * Checks the answers of a person before they are recorded: each belongs to an open question, its caller may answer that
 * question, and its values fit the form.
 */

import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import { AnswerRefused, QuestionNotFound } from "../../KernelError.ts"
import * as FormValues from "../../kit/formValues.ts"
import type { Answer, Caller, GivenAnswer, Question, RunState } from "../../RunState.ts"
import type { RunTree } from "../../store-kit/StoredRuns.ts"
import { unanswered } from "../state/state.ts"
import { misfit } from "../../kit/jsonFit.ts"
import type { JsonObject } from "../../kit/json.ts"
import { flat, shorten } from "../../kit/text.ts"
import { deadline, decisionOf } from "../words/question.ts"
import { mayAnswer, signatureOf } from "../../Caller.ts"

/**
 * The giver of answers: a caller, a program that names none, or the kernel itself. The decisions of the kernel, such as
 * those of a deadline or of a recorded run, are not checked.
 */
export type Giver = Caller | "kernel" | undefined

/**
 * Returns the answers as they are recorded, with the name of their caller and the values of their forms decoded.
 *
 * Each must fit a different open question of the run or its tasks. An answer that a task already has may be repeated,
 * because its writer may have been interrupted before it answered the run itself.
 */
export const decided = ([root, ...below]: RunTree, answers: ReadonlyArray<GivenAnswer>, giver: Giver) =>
  Effect.suspend(() => Effect.fromResult(checked(root, below, answers.map(decisionOf), giver)))

const checked = (
  root: RunState,
  below: ReadonlyArray<RunState>,
  answers: ReadonlyArray<Answer>,
  giver: Giver
): Result.Result<ReadonlyArray<Answer>, QuestionNotFound | AnswerRefused> => {
  const left = new Map([root, ...below].flatMap(({ questions }) => unanswered(questions).map(byCall)))
  const recorded = below.flatMap(({ questions }) => questions.filter(({ answer }) => answer !== undefined))
  const found: Array<Answer> = []
  for (const answer of answers) {
    const { callId } = answer
    const question = left.get(callId)
    left.delete(callId)
    const repeated = recorded.filter((other) => question === undefined && other.callId === callId)
    const given = question === undefined ? repeated.find((other) => isSame(root, other, answer, giver)) : question
    if (given === undefined) return Result.fail(new QuestionNotFound({ runId: root.runId, callId }))
    const decision = decisionOn(root, given, answer, giver)
    if (Result.isFailure(decision)) return Result.fail(decision.failure)
    found.push(decision.success)
  }
  return Result.succeed(found)
}

/** Returns the answers that decline questions whose deadline has passed. */
export const declined = (questions: ReadonlyArray<Question>, now: number): ReadonlyArray<Answer> =>
  questions
    .filter(({ answer, answerBy = Infinity }) => answer === undefined && answerBy <= now)
    .map(({ callId }) => ({ callId, approved: false, reason: "Nobody answered in time.", by: deadline }))

const byCall = (question: Question) => [question.callId, question] as const

const isSame = (root: RunState, question: Question, answer: Answer, giver: Giver): boolean => {
  const decision = decisionOn(root, question, answer, giver)
  return Result.isSuccess(decision) && Equal.equals(decision.success, question.answer)
}

/** Returns an answer as it is recorded, if its caller may give it. */
const decisionOn = (
  { caller: owner, runId }: RunState,
  { answerers, asking, callId }: Question,
  answer: Answer,
  giver: Giver
): Result.Result<Answer, AnswerRefused> => {
  if (giver === "kernel") return Result.succeed(answer)
  const refused = (reason: AnswerRefused["reason"], detail: string) =>
    Result.fail(new AnswerRefused({ runId, callId, reason, detail }))
  if (!mayAnswer(answerers, giver, owner)) {
    return refused("not_allowed", giver === undefined ? unnamed : `'${giver.id}' may not answer this question`)
  }
  const signed = giver === undefined ? answer : { ...answer, by: signatureOf(giver) }
  const wrong = asking?.output === undefined ? unasked(signed) : misfitting(asking.output, signed)
  if (wrong !== undefined) return refused("invalid", wrong)
  if (!signed.approved || asking?.form === undefined) return Result.succeed(signed)
  const values = FormValues.decode(asking.form, signed.values ?? {})
  return Result.isFailure(values)
    ? refused("invalid", `the values do not fit the form: ${values.failure}`)
    : Result.succeed({ ...signed, values: values.success })
}

const unasked = ({ output }: Answer): string | undefined =>
  output === undefined ? undefined : "the question takes a decision, not an output"

/** Returns why an answer is no result of an external call. */
const misfitting = (schema: JsonObject, { approved, output }: Answer): string | undefined => {
  if (!approved) return undefined
  if (output === undefined) return "the call is run by somebody else: the answer needs its `output`, or an `error`"
  const reason = misfit(output, schema)
  return reason === undefined ? undefined : `the output does not fit its schema: ${shorten(flat(reason), 500)}`
}

const unnamed = "the question names who may answer, so the answer needs a 'caller'"

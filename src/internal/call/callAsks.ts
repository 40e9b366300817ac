/**
 * Questions to a person and requests to the model that a call makes while it runs.
 *
 * A question without an answer ends the call. The call becomes pending again, and runs from its beginning once the
 * answer is there.
 */

import * as Effect from "effect/Effect"
import type { Call, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import { AnswerPending, SamplingRefused } from "../../KernelError.ts"
import * as Messages from "../../Message.ts"
import * as Policy from "../../Policy.ts"
import type { Answer, Question } from "../../RunState.ts"
import type { CallScope } from "../../Skill.ts"
import * as Usage from "../../Usage.ts"
import * as Budget from "../run/treeBudget.ts"
import { plusExpense } from "../state/expenses.ts"
import { askPolicy } from "../policy/decision.ts"
import { ask as askModel } from "../prompt/sideCall.ts"
import type { Asking, Reply, Sampling } from "../words/asking.ts"
import { type Run, policyScope } from "../run/run.ts"
import { deadline } from "../words/question.ts"

/** The placeholder result of a call that waits for a person. */
export interface AskingResult extends CallResult {
  readonly asks: Question
}

export const isAsking = (result: CallResult): result is AskingResult => "asks" in result

export const asking = (call: Call, asks: Question, spent: CallResult["spent"]): AskingResult => {
  const error = Calls.error("AnswerPending", new AnswerPending({ callId: call.callId }).message)
  return { ...Calls.failed(call, error, spent === undefined ? {} : { spent }), asks }
}

/** Questions and requests of one execution of a call. */
export class CallAsks implements Required<Pick<CallScope, "answered" | "ask" | "sample">> {
  readonly answered: ReadonlyArray<Asking>
  readonly #run: Run
  readonly #call: Call
  #used: ReadonlyArray<Question> = none
  #question: Question | undefined
  #spent: CallResult["spent"]

  constructor(run: Run, call: Call) {
    this.#run = run
    this.#call = call
    this.answered = answeredOf(run.state.questions, call)
  }

  /** Returns the unanswered question, if there is one. */
  open(): Question | undefined {
    return this.#question
  }

  /** Returns the usage of its model calls. */
  spent(): CallResult["spent"] {
    return this.#spent
  }

  readonly ask = (asking: Asking): Effect.Effect<Reply, AnswerPending> =>
    asking.isTimer === true || asking.output !== undefined
      ? this.#answer(asking)
      : Effect.flatMap(this.#decide(asking), (decision) =>
          decision._tag === "Denied"
            ? Effect.succeed<Reply>({ _tag: "Declined", reason: decision.reason })
            : this.#answer(asking)
        )

  readonly sample = (sampling: Sampling): ReturnType<Required<CallScope>["sample"]> =>
    Effect.flatMap(this.#decide(sampling), (decision) => {
      if (decision._tag === "Allowed") return this.#sample(sampling)
      if (decision._tag === "Denied") return Effect.fail(denied(decision.reason))
      const { name } = sampling
      const confirmed = this.#answer({ message: decision.reason, ...(name === undefined ? {} : { name }) })
      return Effect.flatMap(confirmed, (reply) =>
        reply._tag === "Accepted" ? this.#sample(sampling) : Effect.fail(denied("a person refused it"))
      )
    })

  #decide(input: Asking | Sampling): Effect.Effect<Policy.Decision> {
    const { policy } = this.#run
    if (policy === undefined) return Effect.succeed(Policy.allowed)
    const { callId, kind, name } = this.#call
    const asked = { callId, name: input.name ?? name ?? "", kind, input: inputOf(input), effects: "read" } as const
    return askPolicy(policy, { ...policyScope(this.#run), ...asked })
  }

  /** Returns the stored answer of a person. Each counts once. Without one, the question stays open. */
  #answer(asking: Asking): Effect.Effect<Reply, AnswerPending> {
    return Effect.suspend(() => {
      const { callId, input, name } = this.#call
      const known = this.#run.state.questions.find(
        (one) => !this.#used.includes(one) && isAbout(one, this.#call, asking)
      )
      if (known?.answer !== undefined) {
        this.#used = [...this.#used, known]
        return Effect.succeed(replyOf(known.answer))
      }
      const { answerBy, message: reason } = asking
      this.#question ??= {
        callId,
        name: name ?? "",
        input,
        reason,
        asking,
        ...(answerBy !== undefined && { answerBy })
      }
      return Effect.fail(new AnswerPending({ callId }))
    })
  }

  #sample(sampling: Sampling) {
    return Effect.map(sample(this.#run, sampling), (reply) => {
      const { finishReason, model, spent, text } = reply
      this.#spent = { ...plusExpense(this.#spent, spent ?? { usage: Usage.zero }), turns: 0 }
      return { text, model, finishReason, usage: spent?.usage ?? null }
    })
  }
}

/** Returns the questions of earlier executions of a call that a person has answered. */
const answeredOf = (questions: ReadonlyArray<Question>, call: Call): ReadonlyArray<Asking> =>
  questions.length === 0
    ? none
    : questions.flatMap(({ answer, asking, callId }) =>
        callId === call.callId && answer !== undefined && asking !== undefined ? [asking] : []
      )

const none: ReadonlyArray<never> = []

const denied = (detail: string) => new SamplingRefused({ reason: "denied", detail })

/** Returns the input that a policy and a person see. */
const inputOf = (input: Asking | Sampling) =>
  "messages" in input
    ? { system: input.system ?? null, messages: input.messages.map(Messages.text), maxTokens: input.maxTokens }
    : { message: input.message, ...(input.form && { form: input.form }), ...(input.url && { url: input.url }) }

/**
 * Returns whether a call asks a stored question again. URLs are compared by origin only, because servers put new ids
 * into them each time.
 */
const isAbout = (question: Question, { callId }: Call, asking: Asking): boolean =>
  question.callId === callId &&
  question.asking !== undefined &&
  JSON.stringify(comparable(question.asking)) === JSON.stringify(comparable(asking))

const comparable = ({ form, message, name, output, url }: Asking) => ({
  message,
  name,
  form,
  output,
  origin: url === undefined ? undefined : (URL.parse(url)?.origin ?? url)
})

const replyOf = ({ approved, by, dismissed, output, reason, values }: Answer): Reply => {
  if (approved) return { _tag: "Accepted", values: values ?? {}, ...(output === undefined ? {} : { output }) }
  if (dismissed === true) return { _tag: "Dismissed" }
  return { _tag: "Declined", ...(reason === undefined ? {} : { reason }), ...(by === deadline && { isLate: true }) }
}

/** Calls the model of the run, within the budget of the tree. */
const sample = (run: Run, { maxTokens, messages, stopSequences, system, temperature }: Sampling) => {
  const { budget, media, middleware, model, provider, state } = run
  const reply = askModel({
    provider,
    model,
    messages: system === undefined ? messages : [Messages.system(system), ...messages],
    generation: {
      maxTokens,
      ...(temperature === undefined ? {} : { temperature }),
      ...(stopSequences === undefined ? {} : { stopSequences })
    },
    state,
    middleware,
    media
  })
  const counted = Effect.map(reply, (reply) => ({
    ...reply,
    usage: reply.spent?.usage ?? null,
    costUsd: reply.spent?.costUsd
  }))
  return Effect.mapError(
    Budget.reserving(budget, state.depth, (waiting) => waiting, counted),
    (error) =>
      new SamplingRefused({
        reason: error._tag === "BudgetExhaustedError" ? "budget" : "failed",
        detail: error.message
      })
  )
}

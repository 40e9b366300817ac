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
import * as Budget from "../run/sharedBudget.ts"
import { plusExpense } from "../run/sharedBudget.ts"
import { askPolicy } from "../policy/decision.ts"
import { ask as askModel } from "../prompt/sideCall.ts"
import type { Asking, Reply, Sampling } from "../words/asking.ts"
import { type Run, policyScope } from "../run/run.ts"

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
export interface Asks extends Required<Pick<CallScope, "answered" | "ask" | "sample">> {
  /** Returns the unanswered question, if there is one. */
  readonly open: () => Question | undefined
  /** Returns the usage of its model calls. */
  readonly spent: () => CallResult["spent"]
}

/** Starts an execution of a call. */
export const make = (run: Run, call: Call): Asks => {
  const used = new Set<Question>()
  let question: Question | undefined
  let spent: NonNullable<CallResult["spent"]> | undefined
  const decide = (name: string | undefined, input: Asking | Sampling) => {
    if (run.policy === undefined) return Effect.succeed(Policy.allowed)
    const { callId, kind } = call
    const policyCall = { callId, name: name ?? call.name ?? "", kind, input: inputOf(input), effects: "read" } as const
    return askPolicy(run.policy, { ...policyScope(run), ...policyCall })
  }
  const answered = (asking: Asking): Effect.Effect<Reply, AnswerPending> =>
    Effect.suspend(() => {
      const known = run.state.questions.find((one) => !used.has(one) && isAbout(one, call, asking))
      if (known?.answer !== undefined) {
        used.add(known)
        return Effect.succeed(replyOf(known.answer))
      }
      question ??= { callId: call.callId, name: call.name ?? "", input: call.input, reason: asking.message, asking }
      return Effect.fail(new AnswerPending({ callId: call.callId }))
    })
  const sampled = (sampling: Sampling) =>
    Effect.map(sample(run, sampling), (reply) => {
      const { costUsd, usage } = reply
      spent = { ...plusExpense(spent, { usage: usage ?? Usage.zero, costUsd }), turns: 0 }
      return { text: reply.text, model: reply.model, finishReason: reply.finishReason, usage }
    })
  return {
    answered: answeredOf(run.state.questions, call),
    open: () => question,
    spent: () => spent,
    ask: (asking) =>
      Effect.flatMap(decide(asking.name, asking), (decision) =>
        decision._tag === "Denied"
          ? Effect.succeed<Reply>({ _tag: "Declined", reason: decision.reason })
          : answered(asking)
      ),
    sample: (sampling) =>
      Effect.flatMap(decide(sampling.name, sampling), (decision) => {
        if (decision._tag === "Allowed") return sampled(sampling)
        if (decision._tag === "Denied") return Effect.fail(denied(decision.reason))
        const { name } = sampling
        const confirmed = answered({ message: decision.reason, ...(name === undefined ? {} : { name }) })
        return Effect.flatMap(confirmed, (reply) =>
          reply._tag === "Accepted" ? sampled(sampling) : Effect.fail(denied("a person refused it"))
        )
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

const comparable = ({ form, message, name, url }: Asking) => ({
  message,
  name,
  form,
  origin: url === undefined ? undefined : (URL.parse(url)?.origin ?? url)
})

const replyOf = ({ approved, dismissed, reason, values }: Answer): Reply => {
  if (approved) return { _tag: "Accepted", values: values ?? {} }
  if (dismissed === true) return { _tag: "Dismissed" }
  return { _tag: "Declined", ...(reason === undefined ? {} : { reason }) }
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
    costUsd: reply.spent?.costUsd ?? 0
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

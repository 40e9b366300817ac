/**
 * Reviews calls before they run: by a policy, a person and a hook.
 */

import type * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Call } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import { ExtensionFailed } from "../../KernelError.ts"
import type { Decision } from "../../Policy.ts"
import * as Policy from "../../Policy.ts"
import type { PhaseEvent } from "../../RunRecord.ts"
import type { CallChange, Question } from "../../RunState.ts"
import type { Json } from "../../kit/json.ts"
import { attempt, inTime, logIgnored } from "../../kit/foreignCode.ts"
import { askAboutSkill, askPolicy } from "../policy/decision.ts"
import { unanswered } from "../state/state.ts"
import { ask, hookArgs, obey, observePause, pause } from "../run/askHooks.ts"
import { commit, flush, record } from "../run/commit.ts"
import type { Draft } from "../run/publish.ts"
import { short } from "../skill/failureText.ts"
import { paramsOf } from "../skill/skillInput.ts"
import { type HookError, type Run, now, currentTurn, policyScope } from "../run/run.ts"
import { runnable, skillCallOf, targetFor } from "./targets.ts"
import { effectsOf } from "../policy/callEffects.ts"

// ---------------------------------------------------------------- all calls

/** Returns whether a hook, a policy or an approval of a skill reviews all calls of a reply together. */
export const isReviewed = (run: Run): boolean =>
  run.hooks.onToolCallsStarted !== undefined ||
  run.policy !== undefined ||
  currentTurn(run).pending.some((call) => mayNeedApproval(run, call))

/** Returns whether a call may need the approval that its skill demands. */
const mayNeedApproval = (run: Run, call: Call): boolean => {
  const name = call.kind === "skill" ? call.name : attempt(() => skillCallOf(run, call)?.name, undefined)
  return Option.exists(run.skills.find(name ?? ""), ({ needsApproval }) => needsApproval !== undefined)
}

/**
 * Opens the calls of a reply. A hook can change them, and a policy can deny them or require confirmation by a person,
 * for which the run pauses.
 */
export const reviewAll = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, HookError> {
  const hook = run.hooks.onToolCallsStarted
  let calls = currentTurn(run).pending
  let isRewritten = false
  if (hook !== undefined) {
    const before = calls
    const { control, value } = yield* ask(run, "onToolCallsStarted", () => hook(hookArgs(run, { calls: before })))
    if (control !== undefined && control.type !== "continue") return yield* obey(run, control)
    if (value !== undefined) {
      calls = yield* declared(calls, value)
      isRewritten = true
    }
  }
  const questions: Array<Question> = []
  const decisions: Array<PolicyDecision> = []
  if (run.policy !== undefined || calls.some((call) => mayNeedApproval(run, call))) {
    yield* flush(run)
    const judged: Array<Call> = []
    for (const call of calls) {
      const verdict = yield* judge(run, call)
      judged.push(verdict.call)
      isRewritten ||= verdict.call !== call
      if (verdict.decision !== undefined) decisions.push(decisionOf(call, verdict.decision))
      if (verdict.question !== undefined) questions.push(verdict.question)
    }
    calls = judged
  }
  const started: Draft = {
    type: "tool_calls_started",
    ...(isRewritten ? { calls } : {}),
    ...(questions.length === 0 ? {} : { questions }),
    ...(decisions.length === 0 ? {} : { decisions })
  }
  const open = unanswered(questions)
  if (open.length === 0) return record(run, started)
  const metadata = questionMetadata(open)
  commit(run, "phase", [started, { type: "paused", reason: "approval_required", metadata }], {})
  yield* observePause(run, "approval_required", metadata)
})

type PolicyDecision = NonNullable<Extract<PhaseEvent, { readonly type: "tool_calls_started" }>["decisions"]>[number]

const decisionOf = ({ callId }: Call, { _tag, reason, rule }: Decision): PolicyDecision => ({
  callId,
  decision: decisionWords[_tag],
  ...(rule === undefined ? {} : { rule }),
  ...(reason === undefined ? {} : { reason })
})

const decisionWords = { Allowed: "allowed", Confirm: "confirm", Denied: "denied" } as const

/** Checks the calls that a hook returns. A hook can rewrite, drop and reorder calls, but not add any. */
const declared = (
  before: ReadonlyArray<Call>,
  after: ReadonlyArray<Call>
): Effect.Effect<ReadonlyArray<Call>, ExtensionFailed> => {
  const known = new Map(before.map((call) => [call.callId, call]))
  for (const call of after) {
    const was = known.get(call.callId)
    if (was?.kind !== call.kind || was.name !== call.name) {
      const detail = `'${call.callId}' is not a call of this turn, or is listed twice`
      return Effect.fail(new ExtensionFailed({ extension: "onToolCallsStarted", detail }))
    }
    known.delete(call.callId)
  }
  return Effect.succeed(after.map((call): Call => ({ ...call, review: "unreviewed" })))
}

/** Returns the metadata of a pause that asks these questions. */
export const questionMetadata = (open: ReadonlyArray<Question>): Json => ({
  callIds: open.map(({ callId }) => callId),
  questions: open.map(({ answerBy, answerers, asking, callId, input, name, reason }) => ({
    callId,
    name,
    input,
    reason,
    ...(asking === undefined ? {} : { asking: { ...asking } }),
    ...(answerBy === undefined ? {} : { answerBy }),
    ...(answerers === undefined ? {} : { answerers: answerers.map((rule) => ({ ...rule })) })
  }))
})

// ---------------------------------------------------------------- the policy

/**
 * A call as the policy judged it, and the question that follows. A denial is a question that the policy answered
 * itself.
 */
interface Judgement {
  readonly call: Call
  /** Absent if no policy was asked. */
  readonly decision?: Decision
  readonly question?: Question
}

/**
 * Asks the policy, and a skill with an `approval`, about a call. A policy that fails denies it. Builtins, faulty calls and tasks are not judged; the
 * calls inside a task are. Calls of agents and transfers are judged by the name of the agent. A protocol call that
 * stands for a skill is judged as both, and the stricter decision applies.
 */
const judge = (run: Run, call: Call): Effect.Effect<Judgement> => {
  const { policy } = run
  if (call.fault !== undefined || call.kind === "builtin" || call.kind === "task") return Effect.succeed({ call })
  if (policy === undefined && !mayNeedApproval(run, call)) return Effect.succeed({ call })
  const authorize = (candidate: Call): Effect.Effect<Decision, unknown> => {
    const { callId, input, kind, name } = candidate
    const effects = effectsOf(run, candidate)
    const skill = kind === "skill" ? Option.getOrUndefined(run.skills.find(name ?? "")) : undefined
    // A call by an earlier name of its skill is judged by the name that rules know now.
    const policyCall = { ...policyScope(run), callId, name: skill?.name ?? name ?? "", kind, input, effects }
    const asked =
      skill !== undefined
        ? askAboutSkill(policy, policyCall, skill, run.limits)
        : policy === undefined
          ? Effect.succeed(Policy.allowed)
          : askPolicy(policy, policyCall)
    return Effect.map(asked, (decision) =>
      withRule(
        decision,
        attempt(() => policy?.ruleOf?.(policyCall), undefined)
      )
    )
  }
  const judged = Effect.suspend(() => {
    const skill = skillCallOf(run, call)
    if (skill === undefined) return Effect.map(authorize(call), (decision) => judgement(run, call, decision))
    const other = authorize({ ...call, kind: "skill", name: skill.name, input: skill.input })
    const named = { ...call, skill: skill.name }
    return Effect.zipWith(authorize(call), other, (a, b) => judgement(run, named, Policy.stricter(a, b)))
  })
  const denied = (cause: Cause.Cause<unknown>) =>
    Effect.as(logIgnored("a policy failed")(cause), judgement(run, call, Policy.denied("policy_error")))
  return run.restore(Effect.catchCause(judged, denied))
}

const withRule = (decision: Decision, rule: string | undefined): Decision =>
  rule === undefined || decision.rule !== undefined ? decision : { ...decision, rule }

/** Turns a decision into a judgement. A skill that cannot run anyway is denied without asking a person. */
const judgement = (run: Run, call: Call, decision: Decision): Judgement => {
  if (decision._tag === "Allowed") return { call, decision }
  if (decision._tag === "Confirm" && call.kind === "skill") {
    const skill = runnable(run, call)
    if (Result.isFailure(skill)) return judgement(run, call, Policy.denied(skill.failure.message))
  }
  const { callId, input, name } = call
  const { reason } = decision
  const question = { callId, name: name ?? "", input, reason }
  if (decision._tag === "Confirm") {
    const { by, within } = decision
    return {
      call,
      decision,
      question: {
        ...question,
        ...(within === undefined ? {} : { answerBy: now(run) + Duration.toMillis(within) }),
        ...(by === undefined ? {} : { answerers: by })
      }
    }
  }
  return { call, decision, question: { ...question, answer: { callId, approved: false, reason, by: "policy" } } }
}

// ---------------------------------------------------------------- one call

/** Returns whether the next call must be reviewed: by a hook, or because a person was asked about this reply. */
export const needsReview = ({ hooks, state }: Run): boolean =>
  hooks.onToolCallStarted !== undefined || state.questions.length > 0

/** Accepts a call, with `change` applied if given, about which a policy may have decided. Synchronous. */
export const accept = (run: Run, call: Call, change?: CallChange, decision?: Decision): void =>
  record(run, {
    type: "tool_call_started",
    callId: call.callId,
    ...(change && { change: shortChange(run, change) }),
    ...(decision && { decision: decisionOf(call, decision) })
  })

const shortChange = ({ limits }: Run, change: CallChange): CallChange =>
  change.type === "skip" && change.result.error !== undefined
    ? { type: "skip", result: { ...change.result, error: short(change.result.error, limits) } }
    : change

/** Reviews one call: applies the person's answer, runs the hook, and asks the policy again if the call changed. */
export const review = Effect.fnUntraced(function* (run: Run, call: Call): Effect.fn.Return<void, HookError> {
  const question = run.state.questions.findLast(({ callId }) => callId === call.callId)
  const answer = question?.answer
  if (answer !== undefined && !answer.approved) return accept(run, call, skipDenied(call, answer.reason))
  if (run.policy !== undefined) yield* flush(run)
  let current = call
  let decision: Decision | undefined
  if (answer?.input !== undefined) {
    // A person can change the input, but cannot allow a call that the policy denies.
    const verdict = yield* judge(run, { ...call, input: answer.input })
    decision = verdict.decision
    if (isDenied(verdict)) return accept(run, call, skipDenied(call, decision?.reason), decision)
    current = verdict.call
  }
  if (question !== undefined && answer !== undefined) {
    const approved = answer.input === undefined ? { ...call, input: question.input } : current
    const lost = yield* unrunnable(run, approved)
    if (lost !== undefined) return yield* askAgain(run, question, lost)
  }
  if (answer !== undefined && question !== undefined && !sameJson(question.input, call.input)) {
    // The question shows the input that the hook returned, so the hook has already run.
    const approved = answer.input === undefined ? withSkill(run, { ...call, input: question.input }) : current
    return accept(run, call, { type: "rewrite", call: { ...approved, review: "accepted" } }, decision)
  }
  const hook = run.hooks.onToolCallStarted
  if (hook !== undefined) {
    const offered = current
    const { control, value } = yield* ask(run, "onToolCallStarted", () => hook(hookArgs(run, { call: offered })))
    if (control !== undefined && control.type !== "continue") return yield* obey(run, control)
    if (value?._tag === "Skip") {
      return accept(run, call, { type: "skip", result: Calls.resultOf(call, { ...value.result, skipped: true }) })
    }
    if (value?._tag === "Rewrite") {
      current = { ...current, input: value.input }
      // An answer covers only the input that was approved.
      const isGranted = answer !== undefined && sameJson(answer.input ?? question?.input, value.input)
      const verdict: Judgement = isGranted ? { call: current } : yield* judge(run, current)
      decision = verdict.decision ?? decision
      if (isDenied(verdict)) return accept(run, call, skipDenied(call, decision?.reason), decision)
      if (verdict.question !== undefined) {
        const open = [verdict.question]
        return yield* pause(run, "approval_required", questionMetadata(open), { asked: open })
      }
      current = verdict.call
    }
  }
  accept(
    run,
    call,
    current === call ? undefined : { type: "rewrite", call: { ...current, review: "accepted" } },
    decision
  )
})

const isDenied = ({ question }: Judgement): boolean => question?.answer !== undefined

/**
 * Returns why an approved call cannot run as it was approved: its skill is gone, or has another input by now. The person
 * decided about a call, so its approval is not spent on an error.
 */
export const unrunnable = (run: Run, call: Call): Effect.Effect<string | undefined> =>
  Effect.suspend(() => {
    const found = targetFor(run, call)
    if (Result.isFailure(found)) return Effect.succeed(found.failure.message)
    const skill = call.kind === "skill" ? Option.getOrUndefined(run.skills.find(call.name ?? "")) : undefined
    if (skill?.normalize === undefined) return Effect.undefined
    const limit = skill.timeout ?? run.limits.skillTimeout
    const read = inTime(skill.normalize(paramsOf(skill, call.input)), limit, () => Effect.undefined)
    return Effect.match(run.restore(read), { onFailure: ({ message }) => message, onSuccess: () => undefined })
  })

/** Asks about an approved call again, which could not run. Those who may answer stay the same. */
const askAgain = (run: Run, { answer: _answer, answerBy: _answerBy, ...question }: Question, why: string) => {
  const open: ReadonlyArray<Question> = [{ ...question, reason: `the approved call did not run: ${why}`, notRun: true }]
  return pause(run, pauseReason(open), questionMetadata(open), { asked: open })
}

/** Returns the reason of a pause for questions. */
export const pauseReason = (open: ReadonlyArray<Question>): string =>
  open.some(({ notRun }) => notRun === true) ? "approval_not_run" : "approval_required"

/** Names the skill that a protocol call stands for: the call can reach no other. */
const withSkill = (run: Run, call: Call): Call => {
  const skill = attempt(() => skillCallOf(run, call), undefined)
  return skill === undefined ? call : { ...call, skill: skill.name }
}

const skipDenied = (call: Call, reason: string | undefined): CallChange => ({
  type: "skip",
  result: Calls.failed(call, Calls.error("Denied", reason ?? "This call was denied.", false), { skipped: true })
})

const sameJson = (a: Json | undefined, b: Json): boolean => a !== undefined && JSON.stringify(a) === JSON.stringify(b)

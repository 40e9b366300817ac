/**
 * The calls of one reply: opened, reviewed, launched, each by its own commit (DR-11 to DR-13, DR-22).
 *
 * All calls are reviewed before any is launched; a call is in flight from the
 * commit before its code is entered to the commit of its result. Sequential and
 * parallel calls and the tasks of a workflow are the same three steps under
 * another order.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import type { Call, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Review } from "../../Hooks.ts"
import type { KernelError } from "../../KernelError.ts"
import { ExtensionFailed } from "../../KernelError.ts"
import type { Decision } from "../../Policy.ts"
import * as Policy from "../../Policy.ts"
import type { Question, CallChange } from "../../RunState.ts"
import { askAboutSkill } from "../policy/askAboutSkill.ts"
import { askPolicy } from "../policy/askPolicy.ts"
import { resultOf } from "../words/callResult.ts"
import { unanswered, unreviewed } from "../state/turnFold.ts"
import { commit, type Draft, flush, locked, send, write } from "./commit.ts"
import { effectsOf, execute, runnable, skillCallOf } from "./dispatch.ts"
import { goOn } from "./goOn.ts"
import type { Json } from "../base/json.ts"
import { passedOver } from "../base/passedOver.ts"
import { openTurn, policyScope, type Run } from "./run.ts"
import { ask, defer, deferred, hookArgs, obey, observePause, pause, settle } from "./askHooks.ts"
import { runWorkflow } from "./workflow.ts"

// ---------------------------------------------------------------- opening

/** Opens the batch: the hook may change it, the policy may refuse or ask a person (DR-11, DR-22). */
export const startCalls = (run: Run): Effect.Effect<void, KernelError> =>
  run.hooks.onToolCallsStarted === undefined && run.policy === undefined
    ? commit(run, "phase", [{ type: "tool_calls_started" }])
    : openBatch(run)

const openBatch = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, KernelError> {
  const hook = run.hooks.onToolCallsStarted
  let calls = openTurn(run).pending
  let rewritten = false
  if (hook !== undefined) {
    const asked = calls
    const result = yield* ask(run, "onToolCallsStarted", () => hook(hookArgs(run, { calls: asked })))
    if (result.control !== undefined && result.control.type !== "continue") return yield* obey(run, result.control)
    if (result.value !== undefined) {
      calls = yield* declared(calls, result.value)
      rewritten = true
    }
  }
  const questions: Array<Question> = []
  if (run.policy !== undefined) {
    yield* flush(run)
    const judged: Array<Call> = []
    for (const call of calls) {
      const [meant, approval] = yield* judge(run, call)
      judged.push(meant)
      rewritten ||= meant !== call
      if (approval !== undefined) questions.push(approval)
    }
    calls = judged
  }
  const started: Draft = {
    type: "tool_calls_started",
    ...(rewritten ? { calls } : {}),
    ...(questions.length === 0 ? {} : { questions })
  }
  const open = unanswered(questions)
  if (open.length === 0) return yield* commit(run, "phase", [started])
  const metadata = question(open)
  yield* commit(run, "phase", [started, { type: "paused", reason: "approval_required", metadata }])
  yield* observePause(run, "approval_required", metadata)
})

/** A hook may rewrite, drop and reorder calls, not invent them. */
const declared = (
  before: ReadonlyArray<Call>,
  after: ReadonlyArray<Call>
): Effect.Effect<ReadonlyArray<Call>, ExtensionFailed> => {
  const known = new Map(before.map((call) => [call.callId, call]))
  for (const call of after) {
    const was = known.get(call.callId)
    if (was?.kind !== call.kind || was.name !== call.name) {
      const detail = `'${call.callId}' is no call of this turn, or is listed twice`
      return Effect.fail(new ExtensionFailed({ extension: "onToolCallsStarted", detail }))
    }
    known.delete(call.callId)
  }
  return Effect.succeed(after.map((call): Call => ({ ...call, review: "unreviewed" })))
}

/** A call in the form it was judged in, and the question or the refusal that comes of it. */
type Judged = readonly [call: Call, approval: Question | undefined]

/**
 * What the policy says; one that fails denies. Nobody is asked about the
 * kernel's own words, faulty calls and tasks: a task's calls are judged. A
 * protocol's call that is another way to call a skill is judged as both, and
 * the stricter word holds.
 */
const judge = (run: Run, call: Call): Effect.Effect<Judged> => {
  const { kind } = call
  const { policy } = run
  if (policy === undefined || call.fault !== undefined || kind === "builtin" || kind === "task") {
    return Effect.succeed([call, undefined])
  }
  const authorize = (judged: Call) => {
    const asked = {
      ...policyScope(run),
      callId: judged.callId,
      name: judged.name ?? "",
      kind: judged.kind,
      input: judged.input,
      effects: effectsOf(run, judged)
    }
    const skill = asked.kind === "skill" ? Option.getOrUndefined(run.skills.find(asked.name)) : undefined
    return skill === undefined ? askPolicy(policy, asked) : askAboutSkill(policy, asked, skill, run.limits)
  }
  return Effect.suspend(() => {
    const skill = skillCallOf(run, call)
    if (skill === undefined) return Effect.map(authorize(call), (decision) => approvalOf(run, call, decision))
    const other = authorize({ ...call, kind: "skill", name: skill.name, input: skill.input })
    const meant = { ...call, skill: skill.name }
    return Effect.zipWith(authorize(call), other, (a, b) => approvalOf(run, meant, Policy.stricter(a, b)))
  }).pipe(
    Effect.catchCause((cause) =>
      Effect.as(passedOver("a policy failed")(cause), approvalOf(run, call, Policy.denied("policy_error")))
    )
  )
}

/**
 * The question or the refusal that comes of a decision: a refusal is an approval the policy answered itself. Nobody is
 * asked about a skill that cannot be run, whatever the answer: it is denied, in the words the model would read (AC-18).
 */
const approvalOf = (run: Run, call: Call, decision: Decision): Judged => {
  if (decision._tag === "Allowed") return [call, undefined]
  if (decision._tag === "Confirm" && call.kind === "skill") {
    const skill = runnable(run, call)
    if (Result.isFailure(skill)) return approvalOf(run, call, Policy.denied(skill.failure.message))
  }
  const asked = {
    callId: call.callId,
    name: call.name ?? "",
    input: call.input,
    reason: decision.reason
  }
  if (decision._tag === "Confirm") return [call, asked]
  const answer = { callId: call.callId, approved: false, reason: decision.reason, by: "policy" }
  return [call, { ...asked, answer }]
}

const question = (open: ReadonlyArray<Question>): Json => ({
  callIds: open.map((approval) => approval.callId),
  questions: open.map(({ input, reason, callId, name }) => ({ callId, name, input, reason }))
})

// ---------------------------------------------------------------- going on

/** The next step of an open batch: ask again, review, launch, or close it. */
export const continueCalls = (run: Run): Effect.Effect<void, KernelError> => {
  const result = openTurn(run).completed.at(-1)
  const hook = run.hooks.onToolCallCompleted
  return run.state.status.phase === "tool_call_completed" && result !== undefined && hook !== undefined
    ? settle(run, "onToolCallCompleted", hook, { result }, nextCall, (run, control) => {
        defer(run, control)
        return nextCall(run)
      })
    : nextCall(run)
}

const nextCall = (run: Run): Effect.Effect<void, KernelError> => {
  const { pending } = openTurn(run)
  if (deferred(run) !== undefined) {
    // What was under way when the run was cut off comes to its end first, as it would have.
    return pending.some((call) => isReplayed(run, call)) ? launch(run) : stop(run)
  }
  const open = unanswered(run.state.questions)
  if (open.length > 0) return pause(run, "approval_required", question(open))
  const next = unreviewed(pending)
  if (next !== undefined) {
    return run.hooks.onToolCallStarted === undefined && run.state.questions.length === 0
      ? started(run, next, undefined)
      : review(run, next)
  }
  return pending.length > 0 ? launch(run) : commit(run, "phase", [{ type: "tool_calls_completed" }])
}

// ---------------------------------------------------------------- review

/** Reviews one call: the person's answer, then the hook, then the policy again if the hook changed it. */
const review = Effect.fnUntraced(function* (run: Run, call: Call): Effect.fn.Return<void, KernelError> {
  const approval = run.state.questions.findLast((approval) => approval.callId === call.callId)
  const answer = approval?.answer
  if (answer !== undefined && !answer.approved) return yield* started(run, call, refuse(call, answer.reason))
  if (run.policy !== undefined) yield* flush(run)
  let asked = call
  let renewed: Question | undefined
  if (answer?.input !== undefined) {
    // A person may change what was asked for, but not allow what is forbidden (AC-19).
    ;[asked, renewed] = yield* judge(run, { ...call, input: answer.input })
    if (renewed?.answer !== undefined) return yield* started(run, call, refuse(call, renewed.reason))
  }
  if (answer !== undefined && approval !== undefined && !sameJson(approval.input, call.input)) {
    // The question was about what the hook had made of the call: it has had its turn (DR-11).
    const input = answer.input ?? approval.input
    return yield* started(run, call, { type: "rewrite", call: { ...call, input, review: "accepted" } })
  }
  const hook = run.hooks.onToolCallStarted
  if (hook !== undefined) {
    const offered = asked
    const result = yield* ask(run, "onToolCallStarted", () => hook(hookArgs(run, { call: offered })))
    if (result.control !== undefined && result.control.type !== "continue") return yield* obey(run, result.control)
    const value: Review | undefined = result.value
    if (value?._tag === "Skip") {
      return yield* started(run, call, { type: "skip", result: resultOf(call, { ...value.result, skipped: true }) })
    }
    if (value?._tag === "Rewrite") {
      asked = { ...asked, input: value.input }
      // What was granted was granted for other arguments (AC-19, R-25).
      const granted = answer !== undefined && sameJson(answer.input ?? approval?.input, value.input)
      ;[asked, renewed] = granted ? [asked] : yield* judge(run, asked)
      if (renewed?.answer !== undefined) return yield* started(run, call, refuse(call, renewed.reason))
      if (renewed !== undefined)
        return yield* pause(run, "approval_required", question([renewed]), { asked: [renewed] })
    }
  }
  yield* started(run, call, asked === call ? undefined : { type: "rewrite", call: { ...asked, review: "accepted" } })
})

const started = (run: Run, call: Call, change: CallChange | undefined): Effect.Effect<void, KernelError> =>
  commit(run, "phase", [{ type: "tool_call_started", callId: call.callId, ...(change && { change }) }])

const refuse = (call: Call, reason: string | undefined): CallChange => ({
  type: "skip",
  result: Calls.failed(call, Calls.error("Denied", reason ?? "This call was denied.", false), { skipped: true })
})

const sameJson = (a: Json | undefined, b: Json): boolean => a !== undefined && JSON.stringify(a) === JSON.stringify(b)

// ---------------------------------------------------------------- launch

/** Launches what was accepted: one call, several at once, or the tasks of a workflow. */
const launch = (run: Run): Effect.Effect<void, KernelError> => {
  const { outcome, pending } = openTurn(run)
  const [next] = pending
  if (next === undefined) return Effect.void
  if (outcome?.type === "workflow") {
    return together(
      run,
      runWorkflow(run, outcome.plan, (call, task) => beside(run, call, task))
    )
  }
  if (run.agent.concurrency === 1 || pending.length === 1) return one(run, next)
  const calls = Effect.forEach(pending, (call) => beside(run, call, execute(run, call)), {
    concurrency: run.agent.concurrency,
    discard: true
  })
  return together(run, calls)
}

/** Several calls share one lock for their commits; what a hook asked for meanwhile is done when all have ended. */
const together = (run: Run, calls: Effect.Effect<void, KernelError>): Effect.Effect<void, KernelError> =>
  Effect.flatMap(flush(run), () => {
    run.lock = Semaphore.makeUnsafe(1)
    const unlocked = Effect.ensuring(
      calls,
      Effect.sync(() => {
        run.lock = undefined
      })
    )
    return Effect.flatMap(unlocked, () => stop(run))
  })

/** Does what was asked for, if anything was. */
const stop = (run: Run): Effect.Effect<void, KernelError> => {
  const control = deferred(run)
  return control === undefined ? Effect.void : obey(run, control)
}

/** Whether a call was launched in an earlier life of the run, and is launched again. */
const isReplayed = (run: Run, call: Call): boolean => openTurn(run).recovered?.includes(call.callId) === true

/** One call, alone. A result in hand is committed even when the run is being stopped (DR-7). */
const one = (run: Run, call: Call): Effect.Effect<void, KernelError> =>
  Effect.uninterruptibleMask((restore) => {
    const launched = goOn(commit(run, "launch", [], { launched: [call.callId] }), () => send(run))
    return goOn(launched, () =>
      Effect.flatMap(restore(execute(run, call)), (result) => {
        const done = commit(run, "phase", [completed(result)])
        // What cannot be done again is known to be done as soon as it is.
        return effectsOf(run, call) === "read" ? done : goOn(done, () => send(run))
      })
    )
  })

/**
 * One call among others: its hook is asked here, and what it asks for waits until all are done.
 * A body without a result leaves its call in flight.
 */
const beside = (
  run: Run,
  call: Call,
  body: Effect.Effect<CallResult | undefined, KernelError>
): Effect.Effect<CallResult | undefined, KernelError> =>
  Effect.suspend(() => {
    if (deferred(run) !== undefined && !isReplayed(run, call)) return Effect.undefined
    return Effect.andThen(
      commit(run, "launch", [], { launched: [call.callId] }),
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(body), (result) =>
          result === undefined ? Effect.undefined : Effect.as(finish(run, result, restore), result)
        )
      )
    )
  })

const finish = (
  run: Run,
  result: CallResult,
  restore: typeof Effect.interruptible
): Effect.Effect<void, KernelError> => {
  const body = Effect.gen(function* () {
    yield* write(run, "phase", [completed(result)], {})
    const hook = run.hooks.onToolCallCompleted
    if (hook === undefined) return
    run.settled = true
    const asked = yield* restore(ask(run, "onToolCallCompleted", () => hook(hookArgs(run, { result }))))
    if (asked.control !== undefined && asked.control.type !== "continue") defer(run, asked.control)
  })
  return locked(run, body)
}

const completed = ({ spent, ...result }: CallResult): Draft => ({
  type: "tool_call_completed",
  callId: result.callId,
  result,
  ...(spent && { spent })
})

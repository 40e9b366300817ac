/**
 * The steps of a turn besides its prompt and its calls: start, model, decision, end.
 *
 * A step is a part of the turn's generator, which delegates to it, so that it costs no effect of its own.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { BudgetExhaustedError } from "../../KernelError.ts"
import { CutReplies, EmptyReplies, LoopDetected, ProviderError } from "../../KernelError.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import { guarded, observed } from "../../kit/foreignCode.ts"
import { clip } from "../../kit/text.ts"
import type { Repair } from "../../RunModel.ts"
import { extensionError } from "../errors/extensionError.ts"
import { cutTurns, lastCorrective, lastText, turnLog } from "../state/state.ts"
import { nextEnded, waiting } from "../call/background.ts"
import { complete, hookArgs, obey, obeyOnce, settle } from "../run/askHooks.ts"
import { flush, record } from "../run/commit.ts"
import type { AskError, Run, StartError } from "../run/run.ts"
import { currentTurn, drop } from "../run/run.ts"
import { emit } from "../run/publish.ts"
import { intent } from "../model/intent.ts"
import { callModel } from "../model/modelCall.ts"
import type { ModelReply } from "../model/modelReply.ts"
import { carryUsage, completedDraft, keepMedia, refusal, replyEvents, wantsRestart } from "../model/modelReply.ts"
import { repairOf } from "../model/repair.ts"
import { corrected, type Intent, repetition, replyRules } from "../model/meaning.ts"
import * as Budget from "../run/treeBudget.ts"
import { handOver } from "./handOver.ts"
import { isSteered, takeSteering } from "./steering.ts"

// ---------------------------------------------------------------- start

/** Opens the next turn, hands the run over to another agent, or ends the run at `maxSteps`. */
export function* startTurn(run: Run): Effect.fn.Return<void, StartError> {
  const turn = turnLog(run.state).length + 1
  if (turn > run.maxSteps) {
    const { corrective } = lastCorrective(run.state)
    return yield* complete(run, "max_turns", corrective, { maxTurns: run.maxSteps })
  }
  // The loop of the other agent opens the turn.
  if (handOver(run)) return
  const turnId = `${run.state.runId}:t${turn}`
  if (isSteered(run) || run.state.background !== undefined) yield* takeSteering(run, turnId)
  else record(run, { type: "turn_started", turnId })
}

// ---------------------------------------------------------------- model

/** Starts another attempt, after the run or the reply was interrupted, or with a repaired request. */
export function* restartModel(run: Run, repair?: Repair): Effect.fn.Return<void, AskError> {
  record(run, { type: "model_restarted", attempt: currentTurn(run).attempt + 1, ...(repair && { repair }) })
  const observer = run.hooks.onModelRestarted
  if (observer === undefined) return
  yield* flush(run)
  yield* run.restore(observed("onModelRestarted", () => observer(hookArgs(run, {}))))
}

/**
 * Stores pending records, calls the model and records what its reply means. Returns the parts of the reply. A complete
 * reply is recorded even while the run is being interrupted. A refused reply is requested again if a middleware wants
 * it, and a refused request once its content is repaired.
 */
export function* readReply(
  run: Run,
  repairs: number = run.limits.requestRepairs
): Effect.fn.Return<ModelReply["raw"], AskError> {
  yield* flush(run)
  const called = Budget.reserving(run.budget, run.state.depth, run.restore, callModel(run))
  const read = yield* Effect.catchTag(called, "ProviderError", (error) => Effect.succeed(error))
  if (read instanceof ProviderError) {
    const repair = repairs > 0 ? yield* repairOf(run, read) : undefined
    if (repair === undefined) return yield* read
    yield* restartModel(run, repair)
    return yield* readReply(run, repairs - 1)
  }
  const reply = yield* keepMedia(run, read)
  const refused = refusal(reply)
  if (refused !== undefined) {
    carryUsage(run, reply)
    if (!(yield* wantsRestart(run, refused))) return yield* Effect.failCause(refused)
    yield* restartModel(run)
    return yield* readReply(run, repairs)
  }
  const understood = intent(reply.reply, yield* replyRules(run))
  const fault = recordMeaning(run, reply, yield* checked(run, reply, understood))
  if (fault !== undefined) return yield* Effect.fail(fault)
  return reply.raw
}

/** Decides what a reply means for the run and records it. Returns the error that stops the run, if any. Synchronous. */
const recordMeaning = (
  run: Run,
  reply: ModelReply,
  understood: Intent
): BudgetExhaustedError | LoopDetected | undefined => {
  const { maxRepeats } = run.agent
  const repeated =
    maxRepeats === undefined ? undefined : repetition(run.state, understood, reply.reply.text, maxRepeats)
  const meaning = repeated?.meaning ?? understood
  run.output = meaning.output
  record(run, completedDraft(run, reply, meaning))
  for (const event of replyEvents(reply, meaning)) emit(run, event)
  const overrun = Budget.isBounded(run.budget) ? Budget.overrun(run.budget) : undefined
  if (overrun !== undefined) return overrun
  if (repeated?.isStop !== true) return undefined
  return new LoopDetected({ runId: run.state.runId, repeats: repeated.repeats, ...lastCorrective(run.state) })
}

/** Asks the check of the agent about an answer. The tokens of a reply are stored even if the check is interrupted. */
function* checked(run: Run, reply: ModelReply, understood: Intent): Effect.fn.Return<Intent, AskError> {
  const { until } = run.agent
  const { outcome, output } = understood
  if (until === undefined || (outcome.type !== "final" && outcome.type !== "prose")) return understood
  const asked = guarded(
    "until",
    () => until(output, { text: outcome.text, turn: turnLog(run.state).length + 1 }),
    (error) => extensionError("until", error)
  )
  const exit = yield* Effect.exit(run.restore(asked))
  if (Exit.isFailure(exit)) {
    carryUsage(run, reply)
    return yield* Effect.failCause(exit.cause)
  }
  if (exit.value === undefined) return understood
  const corrective = InstructionBuilder.goal(clip(String(exit.value), run.limits.resultBytes))
  return { ...understood, ...corrected("goal", corrective, understood.facts), output: undefined }
}

// ---------------------------------------------------------------- end

/** Ends the turn and reports its answer. Synchronous. */
export const closeTurn = (run: Run): void => {
  const { outcome, turnId } = currentTurn(run)
  record(run, { type: "turn_completed", turnId })
  if (outcome?.type === "final") emit(run, { type: "final", text: outcome.text })
  if (outcome?.type === "final" || outcome?.type === "prose") emit(run, { type: "result", text: outcome.text })
}

/** Ends the run after its last turn, fails it at its limit of empty or cut replies, or opens the next turn. */
export function* endOrContinue(run: Run): Effect.fn.Return<void, StartError | EmptyReplies | CutReplies> {
  const control = yield* settle(run, "onTurnCompleted", run.hooks.onTurnCompleted, {})
  if (control !== undefined && control.type !== "continue") return yield* obeyOnce(run, control)
  // A crash before the next turn is recorded must run the hook again.
  if (control !== undefined) drop(run, "settled")
  // Messages that arrive during the last allowed turn are not received.
  const isLast = turnLog(run.state).length >= run.maxSteps
  if (isDone(run) && control === undefined && !isLast) yield* nextEnded(run)
  const isAsked = control !== undefined || (isSteered(run) && !isLast)
  if (isDone(run) && !isAsked) {
    const stop = isLast ? undefined : waiting(run)
    return yield* stop === undefined ? complete(run, "model_done") : obey(run, stop)
  }
  const { emptyReplies } = run.state
  const spoiled = tooManySpoiled(run)
  if (spoiled !== undefined) return yield* spoiled
  if (emptyReplies > 0) {
    // Wait longer after each empty reply.
    yield* flush(run)
    yield* run.restore(Effect.sleep(250 * 2 ** (emptyReplies - 1)))
  }
  yield* startTurn(run)
}

/**
 * Returns the error of a run at its limit of empty or cut replies. Whoever resumes such a run has decided to ask once
 * more, whatever the limit.
 */
const tooManySpoiled = ({ limits, state }: Run): EmptyReplies | CutReplies | undefined => {
  const { emptyReplies, resumedAfter, runId } = state
  if (resumedAfter === turnLog(state).length) return undefined
  if (emptyReplies > limits.emptyReplies)
    return new EmptyReplies({ runId, count: emptyReplies, ...lastCorrective(state) })
  const cut = cutTurns(state, limits.cutReplies + 1)
  if (cut.length <= limits.cutReplies) return undefined
  const finishReason = cut.at(-1)?.finishReason ?? "unknown"
  return new CutReplies({ runId, count: cut.length, finishReason, text: lastText(state), ...lastCorrective(state) })
}

/** Returns whether the last turn made no calls, got no corrective and was not paused. */
const isDone = ({ state }: Run): boolean => {
  const turn = turnLog(state).last()
  if (turn === undefined || turn.completed.length > 0) return false
  return turn.outcome?.type !== "corrective" && turn.outcome?.type !== "pause"
}

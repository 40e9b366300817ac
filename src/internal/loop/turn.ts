/**
 * One turn, step by step: start, prompt, model, decision, end.
 *
 * Each step moves a run from one phase to a later one. A run that was stopped continues at its phase with the same
 * steps. Hooks that can change a phase run before it is recorded, settle hooks run after.
 */

import * as Effect from "effect/Effect"
import { EmptyReplies, LoopDetected } from "../../KernelError.ts"
import { observed } from "../../kit/foreignCode.ts"
import { turnLog } from "../state/state.ts"
import { complete, hookArgs, obeyOnce, settle, settled } from "../run/askHooks.ts"
import { recordPrompt } from "../model/buildPrompt.ts"
import { startCalls } from "./calls.ts"
import { flush, record } from "../run/commit.ts"
import type { AskError, HookError, PrepareError, Run, StartError } from "../run/run.ts"
import { carry, drop, openTurn } from "../run/run.ts"
import { emit } from "../run/publish.ts"
import { intent } from "../model/intent.ts"
import { callModel } from "../model/modelCall.ts"
import type { ModelReply } from "../model/modelReply.ts"
import { completedDraft, keepMedia, refusal, replyEvents, wantsRestart } from "../model/modelReply.ts"
import { repetition, replyRules } from "../model/meaning.ts"
import * as Budget from "../run/sharedBudget.ts"
import { closeTurn, isDone, openNextTurn, turnIdOf } from "./stepAtOnce.ts"
import { isSteered, takeSteering } from "./steering.ts"

// ---------------------------------------------------------------- start

/** Starts the first turn of a run. */
export const startRun = (run: Run): Effect.Effect<void, StartError> =>
  settled(run, "onRunStarted", run.hooks.onRunStarted, {}, startTurn)

/** Opens the next turn, or ends the run at `maxSteps`. */
const startTurn = (run: Run): Effect.Effect<void, StartError> =>
  Effect.suspend((): Effect.Effect<void, StartError> => {
    if (openNextTurn(run)) return Effect.void
    const turn = turnLog(run.state).length + 1
    return turn > run.maxSteps
      ? complete(run, "max_turns", undefined, { maxTurns: run.maxSteps })
      : takeSteering(run, turnIdOf(run, turn))
  })

// ---------------------------------------------------------------- prompt

/** Builds the prompt of the turn and records what is new in it. */
export const preparePrompt = (run: Run): Effect.Effect<void, PrepareError> =>
  settled(run, "onTurnStarted", run.hooks.onTurnStarted, {}, recordPrompt)

// ---------------------------------------------------------------- model

/** Calls the model for the first time in this turn. */
export const askModel = (run: Run): Effect.Effect<void, AskError> =>
  Effect.suspend(() => {
    record(run, { type: "model_started", attempt: 1 })
    return settled(run, "onModelStarted", run.hooks.onModelStarted, {}, readReply)
  })

/** Calls the model again after the run or the reply was interrupted. */
export const askModelAgain = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, AskError> {
  record(run, { type: "model_restarted", attempt: openTurn(run).attempt + 1 })
  const observer = run.hooks.onModelRestarted
  if (observer !== undefined) {
    yield* flush(run)
    yield* run.restore(observed("onModelRestarted", () => observer(hookArgs(run, {}))))
  }
  yield* readReply(run)
})

/**
 * Stores pending records, then calls the model. A complete reply is recorded even while the run is being interrupted.
 */
const readReply = (run: Run): Effect.Effect<void, AskError> => {
  const reply = Budget.reserving(run.budget, run.state.depth, run.restore, callModel(run))
  const read = Effect.flatMap(reply, (reply) => Effect.flatMapEager(keepMedia(run, reply), (kept) => decide(run, kept)))
  return Effect.andThen(flush(run), read)
}

// ---------------------------------------------------------------- decision

/** Decides what a reply means for the run and records it. */
const decide = (run: Run, reply: ModelReply): Effect.Effect<void, AskError> => {
  const refused = reply.refused ?? refusal(reply)
  if (refused !== undefined) {
    if (reply.usage !== null) carry(run, { spent: { usage: reply.usage, costUsd: reply.costUsd } })
    return Effect.flatMap(wantsRestart(run, refused), (isWanted) =>
      isWanted ? askModelAgain(run) : Effect.failCause(refused)
    )
  }
  return Effect.flatMapEager(replyRules(run), (rules): Effect.Effect<void, AskError> => {
    const understood = intent(reply.reply, rules)
    const { maxRepeats } = run.agent
    const repeated =
      maxRepeats === undefined ? undefined : repetition(run.state, understood, reply.reply.text, maxRepeats)
    const meaning = repeated?.meaning ?? understood
    run.output = meaning.output
    record(run, completedDraft(reply, meaning))
    for (const event of replyEvents(reply, meaning)) emit(run, event)
    const overrun = Budget.isBounded(run.budget) ? Budget.overrun(run.budget) : undefined
    if (overrun !== undefined) return Effect.fail(overrun)
    if (repeated?.isStop === true) {
      return Effect.fail(new LoopDetected({ runId: run.state.runId, repeats: repeated.repeats }))
    }
    return run.hooks.onModelCompleted === undefined ? Effect.void : afterModel(run, reply.raw)
  })
}

/** Runs the hook of the reply, then starts its calls or ends the turn. */
export const afterModel = (run: Run, raw: ModelReply["raw"] = []): Effect.Effect<void, HookError> =>
  settled(run, "onModelCompleted", run.hooks.onModelCompleted, { raw }, (run) =>
    openTurn(run).pending.length > 0 ? startCalls(run) : endTurn(run)
  )

// ---------------------------------------------------------------- end

/** Runs the hook of the calls, then ends the turn. */
export const afterCalls = (run: Run): Effect.Effect<void, HookError> =>
  settled(run, "onToolCallsCompleted", run.hooks.onToolCallsCompleted, {}, endTurn)

const endTurn = (run: Run): Effect.Effect<boolean> => Effect.sync(() => closeTurn(run))

/** Ends the run, fails it at its limit of empty replies, or starts the next turn. */
export const afterTurn = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, StartError | EmptyReplies> {
  const control = yield* settle(run, "onTurnCompleted", run.hooks.onTurnCompleted, {})
  if (control !== undefined && control.type !== "continue") return yield* obeyOnce(run, control)
  // A crash before the next turn is recorded must run the hook again.
  if (control !== undefined) drop(run, "settled")
  // Messages sent during the last allowed turn stay in the queue.
  const isAsked = control !== undefined || (isSteered(run) && turnLog(run.state).length < run.maxSteps)
  if (isDone(run) && !isAsked) return yield* complete(run, "model_done")
  const { emptyReplies, runId } = run.state
  if (emptyReplies > run.limits.emptyReplies) return yield* new EmptyReplies({ runId, count: emptyReplies })
  if (emptyReplies > 0) {
    // Wait longer after each empty reply.
    yield* flush(run)
    yield* run.restore(Effect.sleep(250 * 2 ** (emptyReplies - 1)))
  }
  yield* startTurn(run)
})

/**
 * The background calls of a run in this process: those that work, the results that its next turn receives, and what
 * the run waits for.
 *
 * The state of the run says which background calls are open. Each of them is a child run, so a process that resumes the
 * run continues them from their own journals.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Calls from "../../Call.ts"
import type { Call, CallResult } from "../../Call.ts"
import type { Stop } from "../../RunState.ts"
import { failureIn } from "../../kit/foreignCode.ts"
import type { FlushError } from "../../store-kit/internal/storeGuard.ts"
import { cancelChild } from "../run/cancel.ts"
import { flush } from "../run/commit.ts"
import { type Background, type Run, type TaskError, isTaskError } from "../run/run.ts"
import * as Budget from "../run/treeBudget.ts"
import { questionsOf } from "./pauses.ts"

/** Runs an open call beside the turns of the run. Its interruption leaves it open. */
export const work = (run: Run, { callId }: Call, body: Effect.Effect<CallResult, TaskError>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const background = (run.background ??= {
      fibers: new Map(),
      ended: new Map(),
      waits: new Map(),
      failure: undefined
    })
    return Effect.map(Effect.forkDetach(body), (fiber) => {
      background.fibers.set(callId, fiber)
      fiber.addObserver((exit) => note(background, callId, exit))
    })
  })

const note = (background: Background, callId: string, exit: Exit.Exit<CallResult, TaskError>): void => {
  background.fibers.delete(callId)
  if (Exit.isSuccess(exit)) return void background.ended.set(callId, exit.value)
  const error = failureIn(exit.cause)
  if (!isTaskError(error)) return
  if (error._tag === "RunPaused") background.waits.set(callId, error)
  else background.failure ??= error
}

// ---------------------------------------------------------------- results

/** Returns whether a background call has ended, so that the next turn receives its result or fails with its error. */
export const hasEnded = ({ background }: Run): boolean =>
  background !== undefined && (background.ended.size > 0 || background.failure !== undefined)

/** Takes the results that the next turn receives. */
export const takeEnded = Effect.fnUntraced(function* (
  run: Run
): Effect.fn.Return<ReadonlyArray<CallResult>, TaskError> {
  const { background } = run
  if (background === undefined) return []
  const awaited = awaitedBy(run)
  if (awaited !== undefined) yield* working(run, () => awaited.every((callId) => background.ended.has(callId)))
  if (background.failure !== undefined) return yield* Effect.fail(background.failure)
  const taken = (awaited ?? [...background.ended.keys()]).flatMap((callId) => background.ended.get(callId) ?? [])
  for (const { callId } of taken) background.ended.delete(callId)
  return taken
})

/** Waits until a background call ends or the host sends a message. Returns at once if no call works. */
export const nextEnded = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, FlushError> {
  if (run.background === undefined) return
  yield* flush(run)
  yield* working(run, () => hasEnded(run) || run.steering?.isWaiting() === true)
})

/** Lets the background calls work until `isEnough`, or until none of them can continue. */
const working = Effect.fnUntraced(function* (run: Run, isEnough: () => boolean): Effect.fn.Return<void> {
  const { background, budget, state, steering } = run
  const sent = steering === undefined || state.depth > 0 ? [] : [steering.arrival]
  while (background !== undefined && background.fibers.size > 0 && !isEnough()) {
    const first = Effect.raceAllFirst([...Array.from(background.fibers.values(), Fiber.await), ...sent])
    yield* Budget.lending(budget, state.depth, run.restore(first))
  }
})

const awaitedBy = ({ state, steering }: Run): ReadonlyArray<string> | undefined => steering?.awaited?.(state.runId)

/** Waits until every background call has ended or waits for a person. */
export const settled = (run: Run): Effect.Effect<void> =>
  Effect.suspend(() =>
    run.background === undefined
      ? Effect.void
      : Budget.lending(
          run.budget,
          run.state.depth,
          run.restore(Fiber.awaitAll(Array.from(run.background.fibers.values())))
        )
  )

/** Returns the pause of a run that has nothing left to do while its background calls wait for a person. */
export const waiting = ({ background, state }: Run): Stop | undefined =>
  background === undefined
    ? undefined
    : questionsOf(
        (state.background ?? []).map(({ callId }) => callId),
        background.waits
      )

/** Interrupts the background calls of a run that stops. Those of a run that has completed are cancelled. */
export const endBackground = (run: Run): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { background, state } = run
    if (background === undefined) return Effect.void
    const cancelled = Effect.forEach(
      state.status.type === "completed" ? (state.background ?? []) : [],
      ({ callId }) => cancelChild(run, callId, { reason: "the run has ended", by: "kernel" }),
      { discard: true }
    )
    return Effect.andThen(Fiber.interruptAll(Array.from(background.fibers.values())), Effect.ignore(cancelled))
  })

// ---------------------------------------------------------------- the model

/** Returns the open background calls as JSON for the model. */
export const listed = ({ background, state }: Run): string => {
  const statusOf = (callId: string) =>
    background?.ended.has(callId) ? "ended" : background?.waits.has(callId) ? "waiting for a person" : "running"
  return JSON.stringify(
    (state.background ?? []).map((call) => ({
      id: Calls.backgroundId(call),
      name: call.name,
      input: call.input,
      status: statusOf(call.callId)
    }))
  )
}

/** Cancels a background call, whose result is then that it was cancelled. Returns what the model reads. */
export const cancelCall = Effect.fnUntraced(function* (run: Run, id: string): Effect.fn.Return<string> {
  const { background, state } = run
  const call = state.background?.find((call) => Calls.backgroundId(call) === id)
  if (background === undefined || call === undefined) return `No background call '${id}' is open.`
  const { callId } = call
  const fiber = background.fibers.get(callId)
  if (fiber !== undefined) yield* Fiber.interrupt(fiber)
  if (background.ended.has(callId)) return `'${id}' has ended: its result follows.`
  // A store that fails here fails the run at its next step.
  yield* Effect.ignore(cancelChild(run, callId, { by: "model" }))
  background.waits.delete(callId)
  background.ended.set(callId, cancelledCall(call))
  return `'${id}' is cancelled.`
})

/** Returns the result of a cancelled call. */
export const cancelledCall = (call: Call): CallResult =>
  Calls.failed(call, Calls.error("Cancelled", "This call was cancelled.", false))

/**
 * Brings a run to rest on the runner that received its message.
 *
 * Only the store decides: whatever error a resume has, the head of the run is read again, and the reply is sent when
 * the run is at rest. A runner whose append was rejected waits and looks again, because another runner may have the
 * run, and may die.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { flat } from "../../kit/text.ts"
import { answerBy, declineLate } from "../../internal/worker/deadlines.ts"
import { giveUp, patience } from "../../internal/worker/retries.ts"
import { logOutcome } from "../../internal/worker/workerLoop.ts"
import { AgentCrashError, CancellationError, type StopError } from "../../KernelError.ts"
import type { ResumeOptions } from "../../RunOptions.ts"
import type { RunHead, RunStore } from "../../RunStore.ts"
import type { Runnable, TakeUpError } from "../../RunWorker.ts"
import { Drive, type Driven } from "../RunEntity.ts"
import type { Driver } from "./driver.ts"
import { refusal } from "./runEnd.ts"

const rested: typeof Driven.Type = {}

/** Replies once the run is at rest in the store. */
export const drive = Effect.fnUntraced(function* <R>(
  driver: Driver<R>,
  message: Drive
): Effect.fn.Return<typeof Driven.Type> {
  const look = headOf(driver, message.runId)
  for (let failures = 0; ; failures++) {
    const head = yield* look
    if (head === undefined) return rested
    const next = nextOf(head, message)
    if (next === "rest") {
      if (yield* declineLate(driver, head)) continue
      return yield* rest(driver, head)
    }
    const exit = yield* bring(driver, head, next === "resume" ? message.how : undefined)
    if (exit !== undefined && Exit.isSuccess(exit)) return rested
    const now = yield* look
    if (now === undefined || nextOf(now, message) === "rest") continue
    if (next === "resume" && now.revision === head.revision && exit !== undefined) {
      const refused = refusal(exit)
      if (refused !== undefined) return { refused }
    }
    if (now.revision !== head.revision) failures = 0
    yield* Effect.sleep(yield* pause(failures))
  }
})

/** Returns the action for a message: to continue the run, to resume it from rest, or none. */
export const nextOf = (
  { revision, status: { type } }: Pick<RunHead, "revision" | "status">,
  { how, revision: seen }: Pick<Drive, "how" | "revision">
): "continue" | "resume" | "rest" => {
  if (how !== undefined && revision === seen && type !== "completed") return "resume"
  return type === "queued" || type === "running" || type === "interrupted" ? "continue" : "rest"
}

/** Returns the head of a run, and retries until the store responds. Returns undefined for a removed run. */
const headOf = <R>({ soon, store }: Driver<R>, runId: string): Effect.Effect<RunHead | undefined> =>
  soon(store.head(runId)).pipe(
    Effect.tapError((error) => Effect.logDebug(`the head of run ${flat(runId)} could not be read`, error)),
    Effect.retry(Schedule.spaced("1 second")),
    Effect.map(Option.getOrUndefined),
    Effect.orDie
  )

/**
 * Returns the milliseconds to wait for another runner that may have the run: one to three seconds at first, later up to
 * half a minute.
 */
const pause = (failures: number): Effect.Effect<number> =>
  Effect.map(Random.next, (chance) => Math.min(30_000, (1_000 + 2_000 * chance) * 2 ** Math.min(failures, 5)))

// ---------------------------------------------------------------- one attempt

/** Continues a run once. Returns its exit, or undefined if it was not tried. */
const bring = Effect.fnUntraced(function* <R>(
  driver: Driver<R>,
  head: RunHead,
  how: Drive["how"]
): Effect.fn.Return<Exit.Exit<unknown, TakeUpError> | undefined> {
  const { runId } = head
  const agent = driver.agents.get(head.agent)
  if (agent === undefined) {
    yield* Effect.logWarning(`run ${flat(runId)} waits for a runner with the agent ${flat(head.agent)}`)
    return undefined
  }
  // Neither a new run nor one that a person resumes has crashed.
  if (how === undefined && head.revision > 1 && !(yield* isDue(driver, head, agent))) return undefined
  const exit = yield* Effect.exit(toItsRest(driver, head, agent, how))
  yield* driver.onRun?.(head, exit) ?? logOutcome(runId, exit)
  return exit
})

/** Waits until a crashed run may be continued. If it has crashed too often, fails it and returns false. */
const isDue = Effect.fnUntraced(
  function* <R>(driver: Driver<R>, head: RunHead, agent: Runnable<R>) {
    const patient = yield* patience(driver.store, driver.retry, head)
    if (patient._tag === "Moved") return false
    if (patient._tag === "Wait") return yield* Effect.as(Effect.sleep(patient.millis), true)
    yield* giveUp(driver, head, patient.attempts)
    const end = Exit.fail(new AgentCrashError({ runId: head.runId, agentId: agent.name }))
    yield* driver.onRun?.(head, end) ?? Effect.void
    return false
  },
  Effect.catch((error) => Effect.as(Effect.logDebug("a run was not continued", error), false))
)

/**
 * Resumes a run. If the runner has to give it up, first finishes the current step and its launched call, within the
 * drain time.
 */
const toItsRest = <R>(
  driver: Driver<R>,
  head: RunHead,
  agent: Runnable<R>,
  how: Drive["how"]
): Effect.Effect<unknown, TakeUpError> => {
  const { runId } = head
  let isDraining = false
  const stop = (): StopError | undefined => {
    if (driver.pulse.isStale()) return new AgentCrashError({ runId, agentId: agent.name })
    return isDraining ? new CancellationError({ runId }) : undefined
  }
  const resumed = resume(driver, head, agent, {
    ...how,
    ...(how === undefined ? {} : { revision: head.revision }),
    stop
  })
  return Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.forkDetach(Effect.interruptible(resumed)), (fiber) =>
      Effect.onInterrupt(restore(Fiber.join(fiber)), () => {
        isDraining = true
        return Effect.andThen(
          within(driver.drain, Fiber.await(fiber)),
          Effect.suspend(() => within(driver.cleanUp, Fiber.interrupt(fiber)))
        )
      })
    )
  )
}

const within = (time: Driver<never>["drain"], ended: Effect.Effect<unknown>): Effect.Effect<unknown> =>
  Effect.interruptible(Effect.timeoutOption(ended, time))

const resume = <R>(
  { kernel, resume, services, workerId }: Driver<R>,
  head: RunHead,
  agent: Runnable<R>,
  options: ResumeOptions
): Effect.Effect<unknown, TakeUpError> => {
  const taken = resume?.(head) ?? {}
  const told: Effect.Effect<ResumeOptions, TakeUpError, RunStore | R> = Effect.isEffect(taken)
    ? taken
    : Effect.succeed(taken)
  return Effect.provideContext(
    Effect.flatMap(told, (how) => kernel.resume(agent, head.runId, { ...how, ...options, workerId })),
    services
  )
}

// ---------------------------------------------------------------- at rest

/** Schedules messages for the next retry of a failed run, and for the deadline of a question. */
const rest = Effect.fnUntraced(
  function* <R>({ later, retries, retry, store, workerId }: Driver<R>, head: RunHead) {
    const until = answerBy(head)
    if (until !== undefined) yield* later(new Drive({ runId: head.runId, revision: head.revision, at: until }))
    if (head.status.type !== "failed") return rested
    // A run of a runner looks like a run of a worker.
    const held = { ...head, lease: { workerId, expiresAt: 0, isLive: false } }
    if (!retries(held)) return rested
    const patient = yield* patience(store, retry, head)
    if (patient._tag !== "Wait") return rested
    const notBefore = head.status.error.fields?.["retryAt"]
    const due = head.updatedAt + patient.millis
    const at = typeof notBefore === "number" ? Math.max(due, notBefore) : due
    yield* later(new Drive({ runId: head.runId, revision: head.revision, how: {}, at }))
    return rested
  },
  Effect.catch((error) => Effect.as(Effect.logDebug("the next try of a run was not sent", error), rested))
)

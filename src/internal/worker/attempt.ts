/**
 * Attempts a run once: claims it, resumes it until it stops, gives the claim back and reports.
 */

import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Schedule from "effect/Schedule"
import type * as Semaphore from "effect/Semaphore"
import type { Kernel } from "../../Kernel.ts"
import { AgentCrashError, CancellationError } from "../../KernelError.ts"
import type { RunHead, RunStore, StoreError } from "../../RunStore.ts"
import { causeText, inTime, messageOf, tagOf } from "../../kit/foreignCode.ts"
import { flat, logText } from "../../kit/text.ts"
import { isHiccup } from "../errors/failedCall.ts"
import { CurrentClaim, type RunClaim } from "../run/claim.ts"
import type { Drains } from "./drains.ts"
import { type DueRuns, defer } from "./dueRuns.ts"
import type { Asked, Claim, Next, Options, RunDriver, Runnable, TakeUpError } from "./driverModel.ts"
import type { Holder } from "./lease.ts"
import type { RunState } from "../../RunState.ts"
import { stored, treeOf } from "../../store-kit/StoredRuns.ts"
import type { Places } from "../../kit/sharedPlaces.ts"
import type { Parties } from "../../kit/turns.ts"

/** A driver with what its process knows of runs. */
export interface Driver<R> extends RunDriver, Holder {
  readonly kernel: Kernel["Service"]
  readonly services: Context.Context<RunStore | R>
  readonly options: Options<R>
  readonly agents: ReadonlyMap<string, Runnable<R>>
  readonly drains: Drains
  readonly places: Places
  readonly partiesOf: (run: RunHead) => Parties
  readonly retry: Schedule.Schedule<unknown>
  /** How long a run may take to finish its step when its attempt is interrupted. */
  readonly drain: Duration.Duration
  readonly cleanUpTimeout: Duration.Duration
  /** Runs that need nothing before a time, which is not computed again. */
  readonly due: DueRuns
  /** Held while a suspect of a crash is attempted. */
  readonly suspects: Semaphore.Semaphore
  /** Decides what a run needs next. Not to be attempted unless `isFree`: another process may be at work on it. */
  readonly next: (head: RunHead, isFree?: Effect.Effect<boolean, StoreError>) => Effect.Effect<Next, StoreError>
}

/**
 * Attempts a run of an agent. Undefined without a claim. If it is interrupted, or its agent is drained, the run first
 * finishes its step.
 */
export const attempt = <R>(
  driver: Driver<R>,
  head: RunHead,
  agent: Runnable<R>,
  claimed: Effect.Effect<Claim | undefined>,
  how: Asked | undefined
): Effect.Effect<Exit.Exit<unknown, TakeUpError> | undefined> => {
  const { drains } = driver
  const drained = Effect.andThen(drains.of(agent.name), Effect.interrupt)
  const whole = Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(drains.has(agent.name) ? Effect.undefined : claimed, (claim) => {
      if (claim === undefined) return Effect.undefined
      let isDraining = false
      const resumed = resume(driver, head, agent, claim, how, () => isDraining)
      const attempted = Effect.flatMap(
        Effect.forkDetach(Effect.interruptible(resumed), { startImmediately: true }),
        (fiber) => {
          const ended = Effect.suspend(() => {
            isDraining = true
            return endOf(fiber, driver)
          })
          return restore(Effect.raceFirst(Fiber.await(fiber), drained)).pipe(
            Effect.catchCause(() => ended),
            Effect.tap(() => claim.release ?? Effect.void)
          )
        }
      )
      return Effect.tap(drains.holding({ runId: head.runId, agent: agent.name }, attempted), (exit) =>
        report(driver, head, exit)
      )
    })
  )
  return driver.places.hold(driver.partiesOf(head), Effect.provideContext(whole, driver.services))
}

/** Resumes a run under a claim. Losing the claim interrupts it immediately. */
const resume = <R>(
  driver: Driver<R>,
  head: RunHead,
  agent: Runnable<R>,
  { isAlone, isLost, keep, prove }: Claim,
  how: Asked | undefined,
  isDraining: () => boolean
): Effect.Effect<unknown, TakeUpError, RunStore | R> => {
  const { due, kernel, options, workerId } = driver
  const { runId } = head
  const lost = () => new AgentCrashError({ runId, agentId: agent.name })
  const claim: RunClaim = {
    isAlone,
    seen: prove === undefined ? head : "leased",
    stop: () => {
      if (isLost()) return lost()
      return isDraining() ? new CancellationError({ runId }) : undefined
    },
    prove:
      prove === undefined
        ? undefined
        : (root) => Effect.flatMap(prove(root), (isProven) => (isProven ? Effect.void : Effect.fail(lost())))
  }
  const postponed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.tapError(effect, (error) => defer(due, head, isHiccup(error)))
  const resumed = Effect.gen(function* () {
    const inFlight = options.resume === undefined ? undefined : yield* postponed(callsInFlight(driver, head))
    const given = options.resume?.(head)
    const own = Effect.isEffect(given) ? yield* postponed(given) : given
    const resumed = kernel.resume(agent, runId, { ...own, ...how, workerId })
    return yield* Effect.provideService(resumed, CurrentClaim, { ...claim, inFlight })
  })
  return keep === undefined
    ? resumed
    : Effect.raceFirst(
        resumed,
        Effect.andThen(
          keep,
          Effect.suspend(() => Effect.fail(lost()))
        )
      )
}

/** Returns the ids of all calls of a run and its tasks that are in flight. A run that was only submitted has none. */
const callsInFlight = <R>({ store, timed }: Driver<R>, { revision, runId }: RunHead) =>
  revision === 1
    ? Effect.succeed<ReadonlySet<string>>(new Set())
    : timed(Effect.flatMap(stored(store, runId), (state) => treeOf(store, state))).pipe(
        Effect.map((tree): ReadonlySet<string> => new Set(tree.flatMap(launchedIn)))
      )

const launchedIn = ({ currentTurn }: RunState): ReadonlyArray<string> =>
  (currentTurn?.inFlight ?? []).map(({ callId }) => callId)

/** Waits until a run has finished its step, then interrupts it. Code that does not stop is abandoned. */
const endOf = <A, E>(
  fiber: Fiber.Fiber<A, E>,
  { cleanUpTimeout, drain }: Pick<Driver<never>, "cleanUpTimeout" | "drain">
): Effect.Effect<Exit.Exit<A, E>> => {
  const abandoned = Effect.succeed<Exit.Exit<A, E>>(Exit.interrupt())
  return inTime(Fiber.await(fiber), drain, () => {
    fiber.interruptUnsafe()
    return inTime(Fiber.await(fiber), cleanUpTimeout, () => abandoned)
  })
}

/** Reports the end of an attempt, with the current head of the run if the store responds. */
export const report = <R>(
  { options: { onRun }, store, timed }: Driver<R>,
  head: RunHead,
  exit: Exit.Exit<unknown, TakeUpError>
): Effect.Effect<void> =>
  onRun === undefined
    ? logOutcome(head.runId, exit)
    : Effect.flatMap(
        Effect.orElseSucceed(timed(store.head(head.runId)), () => Option.none()),
        (now) =>
          onRun(
            Option.getOrElse(now, () => head),
            exit
          )
      )

/** Logs that a run is paused, or why it stopped: a failure as a sentence, a defect with its stack. */
const logOutcome = (runId: string, exit: Exit.Exit<unknown, TakeUpError>): Effect.Effect<void> => {
  if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return Effect.void
  const failure = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (failure?._tag === "RunPaused") return Effect.logInfo(logText(failure.message))
  const why = failure === undefined ? causeText(exit.cause) : `${tagOf(failure)}: ${messageOf(failure)}`
  return Effect.logInfo(`run ${flat(runId)} stopped`, logText(why))
}

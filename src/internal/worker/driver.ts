/**
 * The driver of stored runs: what happens to a run that this process has, however it got it.
 */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Semaphore from "effect/Semaphore"
import { Kernel } from "../../Kernel.ts"
import { ConfigInvalid } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import { type RunHead, RunStore, StoreError } from "../../RunStore.ts"
import { failureIn, inTime, logIgnored } from "../../kit/foreignCode.ts"
import { byName } from "../agent/team.ts"
import { isHiccup } from "../errors/failedCall.ts"
import { answerBy, hasFailed, isEnded } from "../store/runStatus.ts"
import { randomId } from "../../kit/randomId.ts"
import { flat } from "../../kit/text.ts"
import { type Driver, attempt, report } from "./attempt.ts"
import type { Asked, Claim, Driven, Next, Options, Runnable, TakeUpError } from "./driverModel.ts"
import * as Drains from "./drains.ts"
import * as DueRuns from "./dueRuns.ts"
import { giveUp } from "./giveUp.ts"
import { isTaken } from "./lease.ts"
import * as Places from "../../kit/sharedPlaces.ts"
import type { Parties } from "../../kit/turns.ts"
import { declineLate } from "./questionDeadlines.ts"
import { isPassing, patience } from "./retries.ts"
import * as Suspects from "./suspects.ts"

/** Creates a driver without runs. */
export const make = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<Driver<R>, ConfigInvalid, Kernel | RunStore | R> {
  const { concurrency = Infinity, drain = "4 seconds", share = 0.5 } = options
  const refused = problem(options)
  if (refused !== undefined) return yield* refused
  const { appendTimeout, cleanUpTimeout } = yield* Limits
  // A query may take longer than an append, but needs a limit.
  const limit = 6 * Duration.toMillis(appendTimeout)
  const late = new StoreError({
    operation: "look for runs",
    reason: "timeout",
    detail: `it took longer than ${limit} ms`
  })
  const timed: Driver<R>["timed"] = (effect) => inTime(effect, limit, () => Effect.fail(late))
  const store = yield* RunStore
  const workerId = options.workerId ?? `worker-${randomId(yield* Random.Random)}`
  const agents = byName<Runnable<R>>(options.agents)
  const drains = Drains.make({ store, workerId, timed }, options.agents)
  const driver: Driver<R> = {
    kernel: yield* Kernel,
    store,
    services: yield* Effect.context<RunStore | R>(),
    options,
    agents,
    workerId,
    drains,
    register: drains.register,
    undrained: drains.lifted,
    takes: (name) => {
      const agent = agents.get(name)
      return agent !== undefined && !drains.has(agent.name)
    },
    retry: options.retry ?? Schedule.upTo(Schedule.exponential("1 second"), { times: 5 }),
    places: Places.make(concurrency, share),
    partiesOf: options.partiesOf ?? callerOf,
    drain: Duration.fromInputUnsafe(drain),
    cleanUpTimeout,
    due: DueRuns.make(yield* Clock.clockWith(Effect.succeed)),
    suspects: Semaphore.makeUnsafe(1),
    timed,
    next: (head, isFree) => driver.timed(next(driver, head, isFree)),
    attempt: (head, claim, how) => {
      const agent = driver.agents.get(head.agent)
      return agent === undefined ? Effect.succeed(undefined) : attempt(driver, head, agent, claim, how)
    },
    drive: (runId, claim, how) => drive(driver, runId, claim, how)
  }
  return driver
})

/** Returns the error for invalid options. */
const problem = ({ concurrency = 1, share = 1 }: Pick<Options, "concurrency" | "share">): ConfigInvalid | undefined => {
  if (!(concurrency >= 1)) {
    return new ConfigInvalid({ path: "concurrency", reason: "at least one run must be allowed at a time" })
  }
  return share > 0 && share <= 1
    ? undefined
    : new ConfigInvalid({ path: "share", reason: "the share of a party must be more than 0 and at most 1" })
}

/** Returns the tenant and the caller of a run, as far as they are known. */
const callerOf = ({ caller }: RunHead): Parties => {
  if (caller === undefined) return []
  return caller.tenant === undefined ? [caller.id] : [caller.tenant, caller.id]
}

// ---------------------------------------------------------------- deciding

const next = Effect.fnUntraced(function* <R>(
  driver: Driver<R>,
  head: RunHead,
  isFree: Effect.Effect<boolean, StoreError> = Effect.succeed(true)
): Effect.fn.Return<Next, StoreError> {
  const { due, options, retry, store } = driver
  const now = yield* Clock.currentTimeMillis
  const later = DueRuns.dueLater(due, head)
  if (later !== undefined) return waitUntil(later)
  if (isEnded(head.status)) return { _tag: "Rest" }
  const isFailed = hasFailed(head.status)
  if (head.status.type === "waiting") return yield* nextOfWaiting(driver, head, now)
  if (isFailed && !(options.retries ?? isPassing)(head)) return { _tag: "Rest" }
  if (!driver.takes(head.agent)) return { _tag: "UnknownAgent" }
  if (!(yield* isFree)) return { _tag: "Rest" }
  const patient = yield* patience(store, retry, head)
  if (patient._tag === "Changed") return { _tag: "Changed" }
  if (patient._tag === "From") {
    return patient.at > now
      ? waitUntil(patient.at)
      : { _tag: "Attempt", ...(patient.isSuspect ? { isSuspect: true } : {}) }
  }
  if (!isFailed) return yield* abandon(driver, head, patient.attempts)
  DueRuns.setDue(due, head, Infinity)
  return { _tag: "Rest" }
})

/** Declines the questions of a waiting run after their deadline. */
const nextOfWaiting = <R>(driver: Driver<R>, head: RunHead, now: number): Effect.Effect<Next> => {
  const until = answerBy(head)
  if (until === undefined) return Effect.succeed({ _tag: "Rest" })
  if (until > now) return Effect.succeed(waitUntil(until))
  if (!driver.agents.has(head.agent)) return Effect.succeed({ _tag: "UnknownAgent" })
  return Effect.matchEffect(driver.timed(declineLate(driver.store, head)), {
    onSuccess: (isDeclined) => Effect.succeed<Next>({ _tag: isDeclined ? "Changed" : "Rest" }),
    onFailure: (error) =>
      Effect.as(Effect.logDebug("questions were not declined in time", error), waitUntil(now + DueRuns.deferredMs))
  })
}

/** Fails a run after too many attempts. */
const abandon = Effect.fnUntraced(function* <R>(
  driver: Driver<R>,
  head: RunHead,
  attempts: number
): Effect.fn.Return<Next> {
  const exit = yield* Effect.exit(giveUp(driver, head, attempts))
  if (Exit.isSuccess(exit)) {
    if (exit.value !== undefined) yield* report(driver, head, Exit.fail(exit.value))
    return { _tag: "Changed" }
  }
  const isHeld = isTaken(exit.cause)
  if (!isHeld) yield* logIgnored(`run ${flat(head.runId)} could not be given up`)(exit.cause)
  yield* DueRuns.defer(driver.due, head, isHeld || isHiccup(failureIn(exit.cause)))
  return { _tag: "Changed" }
})

const waitUntil = (until: number): Next => (until === Infinity ? { _tag: "Rest" } : { _tag: "Wait", until })

// ---------------------------------------------------------------- driving

/**
 * Attempts a run until it is at rest.
 *
 * Only the store decides: whatever error an attempt has, the head of the run is read again. A process whose append was
 * refused waits and reads it again, because another process may have the run, and may die.
 */
const drive = Effect.fnUntraced(function* <R>(
  driver: Driver<R>,
  runId: string,
  claim: Claim,
  how: Asked | undefined
): Effect.fn.Return<Driven> {
  let seen = 0
  for (let failures = 0; ; failures++) {
    const head = yield* headOf(driver, runId)
    if (head === undefined) return { _tag: "AtRest" }
    const { revision } = head
    if (revision !== seen) failures = 0
    seen = revision
    const isAsked = how?.revision === revision && head.status.type !== "completed"
    const step: Next | undefined = isAsked
      ? { _tag: driver.takes(head.agent) ? "Attempt" : "UnknownAgent" }
      : yield* Effect.catch(driver.next(head), (error) => Effect.succeed(isLasting(error) ? undefined : changed))
    if (step === undefined) return yield* postpone(head)
    switch (step._tag) {
      case "Attempt": {
        const claimed = step.isSuspect === true ? aloneWith(driver, head, claim) : Effect.succeed(claim)
        const exit = yield* driver.attempt(head, claimed, isAsked ? how : undefined)
        if (exit !== undefined && Exit.isSuccess(exit)) return { _tag: "AtRest" }
        if (!driver.takes(head.agent)) continue
        if (exit === undefined) break
        const error = Option.getOrUndefined(Exit.findErrorOption(exit))
        const after = yield* headOf(driver, runId)
        if (after === undefined || (after.revision !== revision && !isUnderWay(after))) continue
        if (error === undefined || after.revision !== revision) break
        if (isAsked) return { _tag: "Refused", error }
        if (isLasting(error)) return yield* postpone(after)
        break
      }
      case "Wait":
        if (!isUnderWay(head)) return { _tag: "AtRest", next: { revision, at: step.until } }
        yield* Effect.sleep(Math.min(longestPause, step.until - (yield* Clock.currentTimeMillis)))
        continue
      case "Rest":
        if (!isUnderWay(head)) return { _tag: "AtRest" }
        break
      case "UnknownAgent":
        return { _tag: "UnknownAgent", agent: head.agent }
      case "Changed":
        // Its late questions were declined, so it continues at once.
        if (head.status.type === "waiting") continue
        break
    }
    if (claim.isLent === true) return { _tag: "Again" }
    yield* Effect.sleep(yield* pause(failures))
  }
})

const changed: Next = { _tag: "Changed" }

/** Returns whether each attempt of this process would fail in the same way: it has not what the run needs. */
const isLasting = (error: TakeUpError): boolean =>
  error._tag === "StoreError" ? !isHiccup(error) : lasting.has(error._tag)

const lasting: ReadonlySet<TakeUpError["_tag"]> = new Set(["AgentConfigInvalid", "ExtensionFailed", "ToolNotFound"])

/** Leaves a run that this process cannot continue for half a minute, and longer the longer it has not changed. */
const postpone = ({ revision, updatedAt }: RunHead): Effect.Effect<Driven> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const millis = Math.min(Math.max(now - updatedAt, DueRuns.deferredMs), longestDelay)
    return { _tag: "Postponed", next: { revision, at: now + millis } }
  })

const longestDelay = 300_000

/** Returns the claim on a suspect of a crash once no other suspect is attempted. It has its place already. */
const aloneWith = <R>({ store, suspects }: Driver<R>, head: RunHead, claim: Claim): Effect.Effect<Claim> =>
  Effect.map(Effect.interruptible(suspects.take(1)), () => {
    let isCleared = false
    const cleared = Effect.suspend(() => {
      if (isCleared) return Effect.void
      isCleared = true
      return suspects.release(1)
    })
    return Suspects.alone(store, head, claim, cleared)
  })

/** Returns whether a process is at work on a run, or should be. */
const isUnderWay = ({ status: { type } }: RunHead): boolean =>
  type === "queued" || type === "running" || type === "interrupted"

/** Returns the head of a run, and retries until the store responds. Returns undefined for a removed run. */
const headOf = <R>({ store, timed }: Driver<R>, runId: string): Effect.Effect<RunHead | undefined> =>
  timed(store.head(runId)).pipe(
    Effect.tapError((error) => Effect.logDebug(`the head of run ${flat(runId)} could not be read`, error)),
    Effect.retry(Schedule.spaced("1 second")),
    Effect.map(Option.getOrUndefined),
    Effect.orDie
  )

/**
 * Returns the milliseconds to wait for another process that may have the run: one to three seconds at first, later up to
 * half a minute.
 */
const pause = (failures: number): Effect.Effect<number> =>
  Effect.map(Random.next, (chance) => Math.min(longestPause, (1_000 + 2_000 * chance) * 2 ** Math.min(failures, 5)))

const longestPause = 30_000

/**
 * Gets runs by leases of their store: polls for runs, hears of offers, claims those that need an attempt.
 */

import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Kernel } from "../../Kernel.ts"
import type { ConfigInvalid } from "../../KernelError.ts"
import type { RunHead, RunStore, StoreError } from "../../RunStore.ts"
import { logIgnored } from "../../kit/foreignCode.ts"
import { flat } from "../../kit/text.ts"
import { emitOffer, emitted, onOffer } from "../../store-kit/Offers.ts"
import * as Pages from "../../store-kit/RunPages.ts"
import { isOverdue } from "../run/deadline.ts"
import { answerBy } from "../store/runStatus.ts"
import type { Driver } from "./attempt.ts"
import * as Drivers from "./driver.ts"
import * as DueRuns from "./dueRuns.ts"
import { type Leases, acquire } from "./lease.ts"
import * as QuestionDeadlines from "./questionDeadlines.ts"
import * as RestingPolls from "./restingPolls.ts"
import { tasksOf } from "./retries.ts"
import * as Suspects from "./suspects.ts"
import * as Turns from "../../kit/turns.ts"
import { type Options, isPassing, leaseDefault, problem } from "./workerOptions.ts"

/** A worker, which gets runs by leases. */
export interface Worker {
  /** Runs stored runs until it is interrupted. Then lets each run finish its step, and releases the leases. */
  readonly run: Effect.Effect<never>
  /** Runs stored runs until none is left to claim. Returns how many it claimed. */
  readonly runOnce: Effect.Effect<number>
  /** Claims a run now, if it can be claimed and a place is free. */
  readonly take: (runId: string) => Effect.Effect<void>
}

/** A worker's driver, its leases, and its runs in progress. */
interface State<R> extends Leases {
  readonly driver: Driver<R>
  readonly orphanMs: (head: RunHead) => number
  /** The time between two polls for late questions. */
  readonly questionsMs: number
  /** Runs that are claimed, being claimed, or being released. */
  readonly claims: Map<string, Fiber.Fiber<unknown>>
  /** The revisions of runs when they were claimed. A run without progress since waits for the next poll. */
  readonly revisions: Map<string, number>
  /** The suspect of a crash that is being attempted, and those that wait for it. */
  suspect: string | undefined
  readonly waitingSuspects: Set<string>
  /** Runs for which no place was free. */
  readonly passedOver: Turns.Turns<string>
  /** The parties with further runs that were passed over, which only a poll finds. */
  readonly beyond: Set<string>
  /** Whether a poll ended when all places were taken. */
  isPollCut: boolean
  /** Held while a run is considered for a place. */
  readonly one: Semaphore.Semaphore
  claimed: number
  isDraining: boolean
}

/** Creates a worker without runs. */
export const make = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<Worker, ConfigInvalid, Kernel | RunStore | R> {
  const refused = problem(options)
  if (refused !== undefined) return yield* refused
  const driver = yield* Drivers.make<R>({
    ...options,
    retries: options.retries ?? isPassing,
    concurrency: options.concurrency ?? 1
  })
  const worker: State<R> = {
    driver,
    store: driver.store,
    workerId: driver.workerId,
    timed: driver.timed,
    leaseMs: Duration.toMillis(options.lease ?? leaseDefault),
    orphanMs: orphanMs(options.orphanAfter),
    questionsMs: Duration.toMillis(options.pollInterval ?? "5 seconds"),
    claims: new Map(),
    revisions: new Map(),
    suspect: undefined,
    waitingSuspects: new Set(),
    passedOver: Turns.make({ most: 10_000, mostOfParty: 100 }),
    beyond: new Set(),
    isPollCut: false,
    one: Semaphore.makeUnsafe(1),
    claimed: 0,
    isDraining: false
  }
  const polls = pollsOf(worker)
  const { due, store } = driver
  const often = options.pollInterval ?? (store.offers === undefined ? "1 second" : "5 seconds")
  const changes = options.pollInterval === undefined ? store.changes : undefined
  const check = (runId: string) => checked(worker, runId)
  const all = [
    Effect.andThen(Stream.runDrain(Stream.mapEffect(offersOf(store), check, { concurrency: 16 })), Effect.never),
    Effect.forever(Effect.flatMap(DueRuns.nextDue(due), check)),
    RestingPolls.repeat({ ...polls.runs, often }, changes),
    Effect.forever(Effect.andThen(driver.places.freed, refill(worker, polls.next))),
    RestingPolls.repeat(polls.questions, changes),
    Effect.forever(
      Effect.andThen(
        driver.undrained,
        Effect.suspend(() => {
          worker.revisions.clear()
          return polls.all
        })
      )
    )
  ]
  const registered = <A>(work: Effect.Effect<A>) =>
    Effect.scoped(
      Effect.andThen(
        driver.register,
        Effect.onInterrupt(work, () => drain(worker))
      )
    )
  return {
    run: registered(Effect.raceAllFirst(all)),
    runOnce: registered(
      Effect.gen(function* () {
        for (let before = -1; worker.claimed > before;) {
          before = worker.claimed
          yield* polls.all
          yield* Fiber.awaitAll(worker.claims.values())
        }
        return worker.claimed
      })
    ),
    take: check
  }
})

// ---------------------------------------------------------------- polling

/** The polls of a worker for runs that were not announced to it. */
const pollsOf = <R>(worker: State<R>) => {
  const { places, store } = worker.driver
  const isFull = () => {
    worker.isPollCut ||= places.isFull()
    return places.isFull()
  }
  const list = (filter: Parameters<typeof store.list>[0]) => worker.timed(store.list(filter))
  const forPlaces: Pages.Polling = {
    list,
    // A run that takes the last place may not be the last one of its page.
    consider: (head) => Effect.tap(consider(worker, head), () => Effect.sync(isFull)),
    isFull,
    one: worker.one
  }
  // Separate pages, so that thousands of failed runs do not hide one that can continue.
  const running = Pages.make(underWay, forPlaces)
  const failed = Pages.make(["failed", "no_answer"], forPlaces)
  const questions = QuestionDeadlines.polls({ list, consider: (head) => consider(worker, head) }, worker.questionsMs)
  const alone = Semaphore.makeUnsafe(1).withPermits(1)
  // In turn, so that neither kind takes every place.
  const poll = inTurn(both(running.next, failed.next), both(failed.next, running.next))
  const next = inTurn(both(failed.next, running.next), running.next)
  return {
    /** Claims runs from the next page. */
    runs: {
      restart: () => {
        running.restart()
        failed.restart()
      },
      poll: alone(
        Effect.suspend(() => {
          worker.revisions.clear()
          worker.isPollCut = false
          return poll
        })
      ),
      isBusy: isBusy(worker)
    },
    /** Claims runs from the next page, except those that made no progress since the last poll. */
    next: alone(
      Effect.suspend(() => {
        worker.isPollCut = false
        return next
      })
    ),
    /** Declines late questions. */
    questions,
    /** Claims all runs that can be claimed now. */
    all: alone(Effect.all([questions.poll, running.all, failed.all], { discard: true }))
  }
}

/** Returns whether a run is under way here or elsewhere: if its process dies, nothing announces that. */
const isBusy = <R>({ claims, driver: { timed }, store }: State<R>): Effect.Effect<boolean> =>
  Effect.suspend(() =>
    claims.size > 0
      ? Effect.succeed(true)
      : timed(store.list({ status: underWay, roots: true, limit: 1 })).pipe(
          Effect.map((heads) => heads.length > 0),
          Effect.orElseSucceed(() => true)
        )
  )

const underWay = ["queued", "running", "interrupted"] as const

/** Runs the next one of these effects each time, in turn. */
const inTurn = (one: Effect.Effect<boolean>, other: Effect.Effect<boolean>): Effect.Effect<boolean> => {
  let turn = 0
  return Effect.suspend(() => (turn++ % 2 === 0 ? one : other))
}

/** Runs two effects, and returns whether both return true. */
const both = (one: Effect.Effect<boolean>, other: Effect.Effect<boolean>): Effect.Effect<boolean> =>
  Effect.zipWith(one, other, (first, second) => first && second)

/** Emits runs as they are offered. Dropped offers are found by polling. */
const offersOf = (store: RunStore["Service"]): Stream.Stream<string> => {
  const here = emitted((listener) => onOffer(store, listener))
  return store.offers === undefined ? here : Stream.merge(here, store.offers)
}

// ---------------------------------------------------------------- one run

/** Considers one run now, and again half a minute later if its store fails. */
const checked = <R>(worker: State<R>, runId: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    const head = Option.getOrUndefined(yield* worker.timed(worker.store.head(runId)))
    if (head === undefined || head.parentRunId !== undefined) return
    if (head.status.type === "waiting") return yield* consider(worker, head)
    yield* worker.one.withPermits(1)(consider(worker, head))
  }).pipe(
    Effect.tapCause(() => DueRuns.defer(worker.driver.due, { runId, revision: 0 })),
    Effect.catchCause(logIgnored(`a worker could not check run ${flat(runId)}`))
  )

/** Claims a run if it can be attempted now, or notes when it is due, or that it waits for a place. */
const consider = Effect.fnUntraced(function* <R>(worker: State<R>, head: RunHead) {
  const { claims, driver, orphanMs, revisions } = worker
  const { lease, revision, runId } = head
  if (!driver.takes(head.agent) || claims.has(runId) || revisions.get(runId) === revision) return
  if (worker.isDraining || lease?.isLive === true) return
  const parties = driver.partiesOf(head)
  const isAdmitted = driver.places.admits(parties)
  if (!isAdmitted && head.status.type === "queued") return passOver(worker, parties, runId)
  const next = yield* driver.next(head, lease === undefined ? isOrphan(worker.store, head, orphanMs(head)) : undefined)
  if (next._tag === "Wait" && (yield* isSoon(worker, head))) DueRuns.setDue(driver.due, head, next.until)
  if (next._tag !== "Attempt") return
  if (!isAdmitted) return passOver(worker, parties, runId)
  const deadline = driver.agents.get(head.agent)?.budget.deadline
  if (deadline !== undefined && (yield* worker.timed(isOverdue(worker.store, head, Duration.toMillis(deadline))))) {
    return DueRuns.setDue(driver.due, head, Infinity)
  }
  const isSuspect = next.isSuspect === true
  if (isSuspect && worker.suspect !== undefined) return void worker.waitingSuspects.add(runId)
  yield* claim(worker, head, isSuspect)
})

/** Returns whether a deadline may pass before the next poll. Later ones are left to the store. */
const isSoon = <R>({ questionsMs }: State<R>, head: RunHead): Effect.Effect<boolean> =>
  Effect.map(Clock.currentTimeMillis, (now) => (answerBy(head) ?? 0) <= now + 2 * questionsMs)

/** Lets a run wait for a place. */
const passOver = <R>({ beyond, passedOver }: State<R>, parties: Turns.Parties, runId: string): void => {
  if (!passedOver.add(parties, runId)) beyond.add(JSON.stringify(parties))
}

/**
 * Claims runs that wait for a place, the parties in turn. Then those of the next page, if a poll was cut short, or if
 * one of the parties has further runs.
 */
const refill = <R>(worker: State<R>, nextPage: Effect.Effect<unknown>): Effect.Effect<unknown> =>
  Effect.suspend(() => {
    const { beyond, driver, passedOver } = worker
    const turn = passedOver.next((parties) => driver.places.admits(parties))
    if (turn !== undefined) {
      worker.isPollCut ||= beyond.delete(JSON.stringify(turn.parties))
      return Effect.andThen(checked(worker, turn.item), refill(worker, nextPage))
    }
    return worker.isPollCut && !driver.places.isFull() ? nextPage : Effect.void
  })

/** Returns how long a run without a lease counts as active. One with its first record only was stored and not offered. */
const orphanMs =
  (given: Duration.Input | undefined) =>
  ({ revision }: RunHead): number =>
    Duration.toMillis(given ?? (revision === 1 ? "20 seconds" : "10 minutes"))

/** Returns whether neither a run nor one of its tasks has had a record for a while. */
const isOrphan = Effect.fnUntraced(function* (
  store: RunStore["Service"],
  head: RunHead,
  millis: number
): Effect.fn.Return<boolean, StoreError> {
  const since = (yield* Clock.currentTimeMillis) - millis
  if (head.updatedAt > since) return false
  const tasks = yield* tasksOf(store, head)
  return tasks.every((task) => task.updatedAt <= since)
})

/** Attempts a run under a lease. The caller waits only until the store has responded to the claim. */
const claim = Effect.fnUntraced(function* <R>(worker: State<R>, head: RunHead, isAlone: boolean) {
  const { claims, driver, revisions } = worker
  const { runId } = head
  const cleared = () => {
    if (worker.suspect === runId) nextSuspect(worker)
  }
  if (isAlone) worker.suspect = runId
  const answered = Deferred.makeUnsafe<void>()
  const answer = () => Deferred.doneUnsafe(answered, Exit.void)
  const acquired = Effect.flatMap(acquire(worker, head), (lease) =>
    Effect.sync(() => {
      if (lease !== undefined) {
        worker.claimed++
        revisions.set(runId, head.revision)
      }
      answer()
      return lease === undefined || !isAlone ? lease : Suspects.alone(worker.store, head, lease, Effect.sync(cleared))
    })
  )
  const begun = Effect.map(Effect.forkDetach(driver.attempt(head, acquired)), (fiber) => {
    claims.set(runId, fiber)
    fiber.addObserver((ended) => {
      claims.delete(runId)
      if (isAlone) cleared()
      answer()
      const exit = Exit.isSuccess(ended) ? ended.value : undefined
      // Decides now, not at the next poll, when the run is retried, or its questions are declined.
      if (exit !== undefined && Exit.isFailure(exit) && !worker.isDraining) emitOffer(worker.store, runId)
    })
  })
  yield* Effect.uninterruptible(begun)
  yield* Deferred.await(answered)
})

/** Lets the next suspect of a crash be attempted. A poll finds those that are not offered here. */
const nextSuspect = <R>(worker: State<R>): void => {
  worker.suspect = undefined
  const [next] = worker.waitingSuspects
  if (next === undefined) return
  worker.waitingSuspects.delete(next)
  emitOffer(worker.store, next)
}

/** Lets every run finish its step, then releases the leases. A store or listener that hangs is abandoned. */
const drain = <R>(worker: State<R>): Effect.Effect<void> =>
  Effect.suspend(() => {
    worker.isDraining = true
    const { cleanUpTimeout, drain } = worker.driver
    return Effect.ignore(
      Effect.timeoutOption(Fiber.interruptAll(worker.claims.values()), Duration.sum(drain, cleanUpTimeout))
    )
  })

/**
 * The worker: considers runs, claims those it can execute, and drives each until its lease is released.
 */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { Kernel } from "../../Kernel.ts"
import { AgentCrashError, CancellationError, type ConfigInvalid } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import { type RunHead, RunStore, StoreError } from "../../RunStore.ts"
import { leaseDefault, type Options, problem, type Runnable, type TakeUpError } from "./workerOptions.ts"
import { isOverdue } from "../run/deadline.ts"
import * as Deadlines from "./deadlines.ts"
import * as Pages from "./runPages.ts"
import { type DueRuns, dueRuns, nextDue, setDue } from "./runPages.ts"
import { giveUp, isPassing, patience, tasksOf } from "./retries.ts"
import { giveBack, type Held, type Holder, isTaken, letGo, now, proves, renew } from "./lease.ts"
import { emitted, onOffer, emitOffer } from "../../store-kit/Offers.ts"
import { causeText, inTime, messageOf, logIgnored, tagOf } from "../../kit/foreignCode.ts"
import { flat, logText } from "../../kit/text.ts"
import { randomId } from "../../kit/randomId.ts"
import { monotonic } from "../../kit/time.ts"

/** The operations of a worker. */
export interface Worker {
  /** Claims runs from the next page, alternating between the oldest and the newest runs. */
  readonly look: Effect.Effect<void>
  /** Waits until a worker that skipped runs because it was full has a free slot. */
  readonly freed: Effect.Effect<void>
  /** Claims runs from the next page, except those that made no progress since the last `look`. */
  readonly lookOn: Effect.Effect<void>
  /** Waits until a deferred run is due, and claims it. */
  readonly due: Effect.Effect<void>
  /** Declines questions after their deadline. Needs no slot. */
  readonly deadlines: Deadlines.Deadlines
  /** Claims runs as they are offered, by this process and, if the store emits offers, by others. */
  readonly offered: Effect.Effect<never>
  /**
   * The default interval of polling. Longer if the store emits offers, because polling then finds only runs that were
   * never offered.
   */
  readonly pollInterval: Duration.Input
  /** Claims all runs that can be claimed now. */
  readonly lookAtAll: Effect.Effect<void>
  /** Claims one run if it can be claimed now. */
  readonly take: (runId: string) => Effect.Effect<void>
  /** Waits for all runs in progress, and returns how many there were. */
  readonly settled: Effect.Effect<number>
  /** Lets every run finish its step, then releases the leases. */
  readonly drain: Effect.Effect<void>
}

/** The settings of a worker, and its runs in progress. */
interface WorkerState<R> extends Holder {
  readonly kernel: Kernel["Service"]
  readonly services: Context.Context<RunStore | R>
  readonly options: Options<R>
  readonly agents: ReadonlyMap<string, Runnable<R>>
  readonly retry: Schedule.Schedule<unknown>
  readonly orphanMs: number
  readonly cleanUpTimeout: Duration.Duration
  readonly active: Map<string, Fiber.Fiber<unknown, unknown>>
  /** The revisions of runs when they were claimed. A run without progress since is skipped until the next `look`. */
  readonly tried: Map<string, number>
  /** Runs that cannot be claimed yet, with the times at which they are due. */
  readonly leftAlone: DueRuns
  readonly deadlines: Deadlines.Deadlines
  /** Opened when a worker that skipped runs has a free slot. */
  readonly freed: Latch.Latch
  /** Held while a run is considered. */
  readonly one: Semaphore.Semaphore
  readonly concurrency: number
  /** Whether runs may have been skipped because all slots were in use. */
  isMore: boolean
  isDraining: boolean
  taken: number
}

/** Creates a worker without runs. */
export const make = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<Worker, ConfigInvalid, Kernel | RunStore | R> {
  const refused = problem(options)
  if (refused !== undefined) return yield* refused
  const worker = yield* makeState(options)
  const looking: Pages.Looking = {
    list: (filter) => worker.soon(worker.store.list(filter)),
    // A run that takes the last slot may not be the last one of its page.
    consider: (head, now) =>
      Effect.tap(worker.soon(consider(worker, head, now)), () => Effect.sync(() => noteFull(worker))),
    isFull: () => noteFull(worker),
    one: worker.one
  }
  // Separate pages, so that thousands of failed runs do not hide one that can continue.
  const running = Pages.make(["queued", "running", "interrupted"], looking)
  const failed = Pages.make(["failed"], looking)
  // Alternates, so that neither kind takes every slot.
  let looks = 0
  const paging = Semaphore.makeUnsafe(1).withPermits(1)
  const look = Effect.suspend(() => {
    worker.tried.clear()
    worker.isMore = false
    return looks++ % 2 === 0 ? Effect.andThen(running.next, failed.next) : Effect.andThen(failed.next, running.next)
  })
  let places = 0
  const lookOn = Effect.suspend(() => {
    worker.isMore = false
    return places++ % 2 === 0 ? Effect.andThen(failed.next, running.next) : running.next
  })
  const settled = Effect.suspend(() => Effect.as(Fiber.awaitAll(worker.active.values()), worker.taken))
  const drain = Effect.suspend(() => {
    worker.isDraining = true
    const cut = Effect.suspend(() => Fiber.interruptAll(worker.active.values()))
    return Effect.andThen(
      Effect.timeoutOption(settled, options.drain ?? "4 seconds"),
      // A store that hangs or a listener that never ends is abandoned.
      Effect.timeoutOption(cut, worker.cleanUpTimeout)
    )
  })
  const isBusy = () => worker.isDraining || noteFull(worker)
  const take = (runId: string) =>
    Effect.suspend(() => (worker.active.has(runId) || isBusy() ? Effect.void : takeOne(worker, runId, isBusy)))
  // A slot that becomes free during a query is noticed after the query.
  const freed = Effect.andThen(
    worker.freed.await,
    Effect.sync(() => void worker.freed.closeUnsafe())
  )
  return {
    look: paging(look),
    freed,
    lookOn: paging(lookOn),
    due: Effect.flatMap(nextDue(worker.leftAlone), take),
    deadlines: worker.deadlines,
    offered: Stream.runForEach(offersOf(worker.store), take).pipe(Effect.andThen(Effect.never)),
    pollInterval: worker.store.offers === undefined ? "1 second" : "5 seconds",
    lookAtAll: Effect.all([worker.deadlines.lookAtAll, running.all, failed.all], { discard: true }),
    take,
    settled,
    drain
  }
})

/** Returns whether a worker has no free slot, and notes that a run may be skipped for that reason. */
const noteFull = <R>(worker: WorkerState<R>): boolean => {
  const hasNone = worker.active.size >= worker.concurrency
  worker.isMore ||= hasNone
  return hasNone
}

/** Claims a run if it can be claimed now. If its store fails, a later query finds it. */
const takeOne = <R>(worker: WorkerState<R>, runId: string, isBusy: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    const head = yield* worker.soon(worker.store.head(runId))
    const now = yield* Clock.currentTimeMillis
    const isRoot = Option.isSome(head) && head.value.parentRunId === undefined
    if (!isRoot || head.value.lease?.isLive === true || !isClaimable.has(head.value.status.type)) return
    const considered = Effect.suspend(() => (isBusy() ? Effect.void : worker.soon(consider(worker, head.value, now))))
    yield* worker.one.withPermits(1)(considered)
  }).pipe(Effect.catchCause(logIgnored(`a worker could not check run ${flat(runId)}`)))

/** The statuses of runs that can be claimed. */
const isClaimable: ReadonlySet<RunHead["status"]["type"]> = new Set(["queued", "running", "interrupted", "failed"])

/** Emits runs as they are offered. Dropped offers are found by polling. */
const offersOf = (store: RunStore["Service"]): Stream.Stream<string> => {
  const here = emitted((listener) => onOffer(store, listener))
  return store.offers === undefined ? here : Stream.merge(here, store.offers)
}

const makeState = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<WorkerState<R>, never, Kernel | RunStore | R> {
  const { cleanUpTimeout, appendTimeout } = yield* Limits
  // A query may take longer than an append, but needs a limit.
  const patienceMs = 6 * Duration.toMillis(appendTimeout)
  const holder: Holder = {
    store: yield* RunStore,
    workerId: options.workerId ?? `worker-${randomId(yield* Random.Random)}`,
    leaseMs: Duration.toMillis(options.lease ?? leaseDefault),
    soon: (effect) => inTime(effect, patienceMs, () => noAnswer(patienceMs))
  }
  const agents = new Map(options.agents.map((agent) => [agent.name, agent]))
  return {
    ...holder,
    kernel: yield* Kernel,
    services: yield* Effect.context<RunStore | R>(),
    options,
    agents,
    retry: options.retry ?? Schedule.upTo(Schedule.exponential("1 second"), { times: 5 }),
    orphanMs: Duration.toMillis(options.orphanAfter ?? "10 minutes"),
    cleanUpTimeout,
    active: new Map(),
    tried: new Map(),
    leftAlone: dueRuns(),
    deadlines: Deadlines.make({ ...holder, agents }),
    freed: Latch.makeUnsafe(),
    one: Semaphore.makeUnsafe(1),
    concurrency: options.concurrency ?? 1,
    isMore: false,
    isDraining: false,
    taken: 0
  }
})

const noAnswer = (limit: number): Effect.Effect<never, StoreError> =>
  Effect.fail(
    new StoreError({ operation: "look for runs", reason: "timeout", detail: `it took longer than ${limit} ms` })
  )

// ---------------------------------------------------------------- one run

/** Claims a run if it can continue now. */
const consider = Effect.fnUntraced(function* <R>(worker: WorkerState<R>, head: RunHead, now: number) {
  const { active, agents, leftAlone, options, orphanMs, retry, store, tried } = worker
  const agent = agents.get(head.agent)
  if (agent === undefined || active.has(head.runId) || tried.get(head.runId) === head.revision) return
  const last = leftAlone.times.get(head.runId)
  if (last !== undefined && last.revision === head.revision && last.until > now) return
  if (head.status.type === "failed" && !(options.retries ?? isPassing)(head)) return
  if (head.lease === undefined && (yield* isAtWork(store, head, now - orphanMs))) return
  const patient = yield* patience(store, retry, head)
  if (patient._tag === "Moved") return
  if (patient._tag === "Exhausted") return yield* abandon(worker, head, agent, patient.attempts, now)
  const until = head.updatedAt + patient.millis
  if (patient.millis > 0 && until > now) return setDue(leftAlone, head, until)
  const { deadline } = agent.budget
  if (deadline !== undefined && (yield* isOverdue(store, head, Duration.toMillis(deadline)))) {
    return setDue(leftAlone, head, Infinity)
  }
  yield* claim(worker, head, agent)
})

/** Fails a run after too many attempts, and does not consider it again. */
const abandon = Effect.fnUntraced(function* <R>(
  worker: WorkerState<R>,
  head: RunHead,
  agent: Runnable<R>,
  attempts: number,
  now: number
) {
  const { runId, status } = head
  setDue(worker.leftAlone, head, Infinity)
  if (status.type === "failed") return
  const exit = yield* Effect.exit(giveUp(worker, head, attempts))
  if (Exit.isFailure(exit)) {
    setDue(worker.leftAlone, head, now + deferredMs)
    return isTaken(exit.cause) ? undefined : yield* logIgnored(`a worker could not fail run ${flat(runId)}`)(exit.cause)
  }
  const end = Exit.fail(new AgentCrashError({ runId, agentId: agent.name }))
  yield* worker.options.onRun?.(yield* currentHead(worker, head), end) ?? Effect.void
})

/** Returns whether a run or one of its tasks has a record after a time. */
const isAtWork = (store: RunStore["Service"], head: RunHead, since: number): Effect.Effect<boolean, StoreError> =>
  head.updatedAt > since
    ? Effect.succeed(true)
    : Effect.map(tasksOf(store, head), (tasks) => tasks.some((task) => task.updatedAt > since))

/**
 * Acquires the lease of a run and starts to work on it, unless another worker was faster. The caller waits only until
 * the store has responded.
 */
const claim = Effect.fnUntraced(function* <R>(worker: WorkerState<R>, head: RunHead, agent: Runnable<R>) {
  const { runId } = head
  // Measured from before the request, so that the lease never expires earlier in the store.
  const lease: Held = { until: (yield* now) + worker.leaseMs, lost: false }
  const answered = Deferred.makeUnsafe<void>()
  const answer = () => Deferred.doneUnsafe(answered, Exit.void)
  const acquired = worker.store.acquire(runId, { workerId: worker.workerId, lease: worker.leaseMs, seen: head })
  const claimed = Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.exit(worker.soon(acquired)), (exit) => {
      if (Exit.isFailure(exit)) {
        answer()
        if (isTaken(exit.cause)) return Effect.succeed(false)
        const logFailure = logIgnored(`a worker could not claim run ${flat(runId)}`)(exit.cause)
        // The lease may have been acquired although the store reported an error.
        return Effect.as(Effect.andThen(logFailure, Effect.ignore(giveBack(worker, runId))), false)
      }
      worker.taken++
      worker.tried.set(runId, head.revision)
      answer()
      return work(worker, head, lease, restore(takeUp(worker, head, agent, lease)))
    })
  )
  const begun = Effect.map(Effect.forkDetach(Effect.provideContext(claimed, worker.services)), (fiber) => {
    worker.active.set(runId, fiber)
    fiber.addObserver((exit) => {
      // Frees the slot before waking those that wait for it.
      const wasFull = worker.active.size >= worker.concurrency
      worker.active.delete(runId)
      if (wasFull && worker.isMore) worker.freed.openUnsafe()
      answer()
      // An offer makes workers decide now, not at the next poll, when the failed run is retried.
      if (Exit.isSuccess(exit) && exit.value && !worker.isDraining) emitOffer(worker.store, runId)
    })
  })
  yield* Effect.uninterruptible(begun)
  yield* Deferred.await(answered)
})

/** Resumes a run under its lease. Losing the lease interrupts it immediately. */
const takeUp = <R>(
  worker: WorkerState<R>,
  head: RunHead,
  agent: Runnable<R>,
  lease: Held
): Effect.Effect<unknown, TakeUpError, RunStore | R> => {
  const { runId } = head
  const lost = () => new AgentCrashError({ runId, agentId: agent.name })
  const resumed = Effect.gen(function* () {
    const clock = yield* Clock.clockWith(Effect.succeed)
    const how = worker.options.resume?.(head)
    const options = Effect.isEffect(how) ? yield* Effect.tapError(how, () => defer(worker, head)) : how
    worker.leftAlone.times.delete(runId)
    return yield* worker.kernel.resume(agent, runId, {
      ...options,
      workerId: worker.workerId,
      stop: () => {
        if (lease.lost || monotonic(clock) >= lease.until) return lost()
        return worker.isDraining ? new CancellationError({ runId }) : undefined
      },
      prove: (root) => Effect.flatMap(proves(worker, root), (isHeld) => (isHeld ? Effect.void : Effect.fail(lost())))
    })
  })
  return Effect.raceFirst(
    resumed,
    Effect.andThen(
      renew(worker, runId, lease),
      Effect.suspend(() => Effect.fail(lost()))
    )
  )
}

/** Defers a run whose resume options failed. */
const defer = <R>(worker: WorkerState<R>, head: RunHead): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeMillis, (now) => setDue(worker.leftAlone, head, now + deferredMs))

/** How long a run is deferred after `Options.resume` failed for it. */
const deferredMs = 30_000

/** Runs the work on a claimed run, releases its lease and reports the outcome. Returns whether the run failed. */
const work = <R>(
  worker: WorkerState<R>,
  head: RunHead,
  lease: Held,
  resumed: Effect.Effect<unknown, TakeUpError, RunStore | R>
): Effect.Effect<boolean, never, RunStore | R> => {
  const { runId } = head
  const { onRun } = worker.options
  return Effect.flatMap(Effect.exit(resumed), (exit) => {
    const reported =
      onRun === undefined
        ? logOutcome(runId, exit)
        : Effect.flatMap(currentHead(worker, head), (now) => onRun(now, exit))
    const isFailed = Exit.isFailure(exit) && !lease.lost
    const error = Option.getOrUndefined(Exit.findErrorOption(exit))
    if (error?._tag === "RunPaused") worker.deadlines.paused(error)
    return Effect.as(Effect.andThen(Effect.ignore(letGo(worker, runId, lease)), reported), isFailed)
  })
}

/** Returns the current head of a run, or the known one if the store does not respond. */
const currentHead = ({ soon, store }: Holder, head: RunHead): Effect.Effect<RunHead> =>
  Effect.map(
    Effect.orElseSucceed(soon(store.head(head.runId)), () => Option.none()),
    Option.getOrElse(() => head)
  )

/** Logs why a run stopped. */
export const logOutcome = (runId: string, exit: Exit.Exit<unknown, TakeUpError>): Effect.Effect<void> =>
  Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
    ? Effect.void
    : Effect.logInfo(`run ${flat(runId)} stopped`, logText(why(exit.cause)))

/** Returns a failure as a sentence, and a defect with its stack. */
const why = (cause: Cause.Cause<TakeUpError>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => causeText(cause),
    onSome: (error) => `${tagOf(error)}: ${messageOf(error)}`
  })

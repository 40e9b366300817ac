/**
 * A worker at work: it considers runs, claims those it can run, and works on each until it has to give it back.
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
import { emitted, onOffer, tellOffer } from "../store/offers.ts"
import { causeText, inTime, messageOf, passedOver, tagOf } from "../base/foreignCode.ts"
import { flat, logText } from "../base/text.ts"
import { randomId } from "../words/ids.ts"
import { monotonic } from "../base/time.ts"

/** What a worker can be told to do. */
export interface Worker {
  /** Claims what can be claimed now among the next runs: a page, alternating between the oldest and the newest. */
  readonly look: Effect.Effect<void>
  /** Waits until a worker that was full, and passed runs over for that, has a free place. */
  readonly freed: Effect.Effect<void>
  /** Claims what can be claimed now among the next runs, except those that made no progress since `look`. */
  readonly lookOn: Effect.Effect<void>
  /** Claims a run that was left alone, when its time has come. */
  readonly due: Effect.Effect<void>
  /** Declines questions that nobody answers in time. It takes no place. */
  readonly deadlines: Deadlines.Deadlines
  /** Claims runs as they are offered, by this process and, where the store tells, by others. */
  readonly offered: Effect.Effect<never>
  /** How long to wait between two looks by default: they only find what nobody offered where the store tells of offers. */
  readonly pollInterval: Duration.Input
  /** Claims everything that can be claimed now. */
  readonly lookAtAll: Effect.Effect<void>
  /** Claims one run if it can be claimed now. */
  readonly take: (runId: string) => Effect.Effect<void>
  /** Waits for all runs in progress, and returns how many there were. */
  readonly settled: Effect.Effect<number>
  /** Lets every run finish its step, and gives the leases back. */
  readonly drain: Effect.Effect<void>
}

/** The settings of a worker, and its runs in progress. */
interface Desk<R> extends Holder {
  readonly kernel: Kernel["Service"]
  readonly services: Context.Context<RunStore | R>
  readonly options: Options<R>
  readonly agents: ReadonlyMap<string, Runnable<R>>
  readonly retry: Schedule.Schedule<unknown>
  readonly orphanMs: number
  readonly cleanUpTimeout: Duration.Duration
  readonly active: Map<string, Fiber.Fiber<unknown, unknown>>
  /** The revisions of runs when they were claimed. A run that made no progress is left alone until another query. */
  readonly tried: Map<string, number>
  /** Runs that cannot be claimed, and until when they are left alone. */
  readonly leftAlone: DueRuns
  readonly deadlines: Deadlines.Deadlines
  /** Opened when a worker that passed runs over has a free place. */
  readonly freed: Latch.Latch
  /** Held while a run is considered. */
  readonly one: Semaphore.Semaphore
  readonly concurrency: number
  /** Whether a run may wait that was passed over for want of a place. */
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
  const desk = yield* deskOf(options)
  const looking: Pages.Looking = {
    list: (filter) => desk.soon(desk.store.list(filter)),
    // The page may go on behind a run that takes the last place.
    consider: (head, now) => Effect.tap(desk.soon(consider(desk, head, now)), () => Effect.sync(() => noteFull(desk))),
    isFull: () => noteFull(desk),
    one: desk.one
  }
  // Finds a run that can continue among thousands that failed.
  const running = Pages.make(["queued", "running", "interrupted"], looking)
  const failed = Pages.make(["failed"], looking)
  // In turn, so that neither kind takes every place.
  let looks = 0
  const paging = Semaphore.makeUnsafe(1).withPermits(1)
  const look = Effect.suspend(() => {
    desk.tried.clear()
    desk.isMore = false
    return looks++ % 2 === 0 ? Effect.andThen(running.next, failed.next) : Effect.andThen(failed.next, running.next)
  })
  let places = 0
  const lookOn = Effect.suspend(() => {
    desk.isMore = false
    return places++ % 2 === 0 ? Effect.andThen(failed.next, running.next) : running.next
  })
  const settled = Effect.suspend(() => Effect.as(Fiber.awaitAll(desk.active.values()), desk.taken))
  const drain = Effect.suspend(() => {
    desk.isDraining = true
    const cut = Effect.suspend(() => Fiber.interruptAll(desk.active.values()))
    return Effect.andThen(
      Effect.timeoutOption(settled, options.drain ?? "4 seconds"),
      // A store that hangs, or a listener that never ends, is left behind.
      Effect.timeoutOption(cut, desk.cleanUpTimeout)
    )
  })
  const isBusy = () => desk.isDraining || noteFull(desk)
  const take = (runId: string) =>
    Effect.suspend(() => (desk.active.has(runId) || isBusy() ? Effect.void : takeOne(desk, runId, isBusy)))
  // What becomes free during a query is noticed after it.
  const freed = Effect.andThen(
    desk.freed.await,
    Effect.sync(() => void desk.freed.closeUnsafe())
  )
  return {
    look: paging(look),
    freed,
    lookOn: paging(lookOn),
    due: Effect.flatMap(nextDue(desk.leftAlone), take),
    deadlines: desk.deadlines,
    offered: Stream.runForEach(offersOf(desk.store), take).pipe(Effect.andThen(Effect.never)),
    pollInterval: desk.store.offers === undefined ? "1 second" : "5 seconds",
    lookAtAll: Effect.all([desk.deadlines.lookAtAll, running.all, failed.all], { discard: true }),
    take,
    settled,
    drain
  }
})

/** Returns whether a worker has no place. Notes that a run may be passed over then, and looked for once it has one. */
const noteFull = <R>(desk: Desk<R>): boolean => {
  const hasNone = desk.active.size >= desk.concurrency
  desk.isMore ||= hasNone
  return hasNone
}

/** Claims a run if it can be claimed now. If its store fails, a later query finds it. */
const takeOne = <R>(desk: Desk<R>, runId: string, isBusy: () => boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    const head = yield* desk.soon(desk.store.head(runId))
    const now = yield* Clock.currentTimeMillis
    const isRoot = Option.isSome(head) && head.value.parentRunId === undefined
    if (!isRoot || head.value.lease?.isLive === true || !isClaimable.has(head.value.status.type)) return
    const considered = Effect.suspend(() => (isBusy() ? Effect.void : desk.soon(consider(desk, head.value, now))))
    yield* desk.one.withPermits(1)(considered)
  }).pipe(Effect.catchCause(passedOver(`a worker could not look at run ${flat(runId)}`)))

/** The statuses of runs that are looked through. */
const isClaimable: ReadonlySet<RunHead["status"]["type"]> = new Set(["queued", "running", "interrupted", "failed"])

/** Runs as they are offered. What is dropped of very many waits for a look. */
const offersOf = (store: RunStore["Service"]): Stream.Stream<string> => {
  const here = emitted((listener) => onOffer(store, listener))
  return store.offers === undefined ? here : Stream.merge(here, store.offers)
}

const deskOf = Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<Desk<R>, never, Kernel | RunStore | R> {
  const { cleanUpTimeout, appendTimeout } = yield* Limits
  // A query may take longer than an append, but not forever.
  const patienceMs = 6 * Duration.toMillis(appendTimeout)
  const holder: Holder = {
    store: yield* RunStore,
    workerId: options.workerId ?? `worker-${randomId(yield* Random.Random)}`,
    leaseMs: Duration.toMillis(options.lease ?? leaseDefault),
    soon: (asked) => inTime(asked, patienceMs, () => noAnswer(patienceMs))
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

/** Claims a run that can be taken up now. */
const consider = Effect.fnUntraced(function* <R>(desk: Desk<R>, head: RunHead, now: number) {
  const { active, agents, leftAlone, options, orphanMs, retry, store, tried } = desk
  const agent = agents.get(head.agent)
  if (agent === undefined || active.has(head.runId) || tried.get(head.runId) === head.revision) return
  const last = leftAlone.times.get(head.runId)
  if (last !== undefined && last.revision === head.revision && last.until > now) return
  if (head.status.type === "failed" && !(options.retries ?? isPassing)(head)) return
  if (head.lease === undefined && (yield* isAtWork(store, head, now - orphanMs))) return
  const patient = yield* patience(store, retry, head)
  if (patient._tag === "Moved") return
  if (patient._tag === "Exhausted") return yield* abandon(desk, head, agent, patient.attempts, now)
  const until = head.updatedAt + patient.millis
  if (patient.millis > 0 && until > now) return setDue(leftAlone, head, until)
  const { deadline } = agent.budget
  if (deadline !== undefined && (yield* isOverdue(store, head, Duration.toMillis(deadline)))) {
    return setDue(leftAlone, head, Infinity)
  }
  yield* claim(desk, head, agent)
})

/** Fails a run after too many attempts, and does not look at it again. */
const abandon = Effect.fnUntraced(function* <R>(
  desk: Desk<R>,
  head: RunHead,
  agent: Runnable<R>,
  attempts: number,
  now: number
) {
  const { runId, status } = head
  setDue(desk.leftAlone, head, Infinity)
  if (status.type === "failed") return
  const exit = yield* Effect.exit(giveUp(desk, head, attempts))
  if (Exit.isFailure(exit)) {
    setDue(desk.leftAlone, head, now + refusedMs)
    return isTaken(exit.cause) ? undefined : yield* passedOver(`a worker could not fail run ${flat(runId)}`)(exit.cause)
  }
  const end = Exit.fail(new AgentCrashError({ runId, agentId: agent.name }))
  yield* desk.options.onRun?.(yield* stands(desk, head), end) ?? Effect.void
})

/** Whether something happened to a run or one of its tasks since a time. */
const isAtWork = (store: RunStore["Service"], head: RunHead, since: number): Effect.Effect<boolean, StoreError> =>
  head.updatedAt > since
    ? Effect.succeed(true)
    : Effect.map(tasksOf(store, head), (tasks) => tasks.some((task) => task.updatedAt > since))

/** Holds a run and works on it, unless another worker was faster. The caller waits only for the answer of the store. */
const claim = Effect.fnUntraced(function* <R>(desk: Desk<R>, head: RunHead, agent: Runnable<R>) {
  const { runId } = head
  // Counted from before the request, so the lease expires no earlier in the store.
  const lease: Held = { until: (yield* now) + desk.leaseMs, lost: false }
  const answered = Deferred.makeUnsafe<void>()
  const answer = () => Deferred.doneUnsafe(answered, Exit.void)
  const asked = desk.store.acquire(runId, { workerId: desk.workerId, lease: desk.leaseMs, seen: head })
  const claimed = Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(Effect.exit(desk.soon(asked)), (exit) => {
      if (Exit.isFailure(exit)) {
        answer()
        if (isTaken(exit.cause)) return Effect.succeed(false)
        const told = passedOver(`a worker could not claim run ${flat(runId)}`)(exit.cause)
        // It may be held although the store never said so.
        return Effect.as(Effect.andThen(told, Effect.ignore(giveBack(desk, runId))), false)
      }
      desk.taken++
      desk.tried.set(runId, head.revision)
      answer()
      return work(desk, head, lease, restore(takeUp(desk, head, agent, lease)))
    })
  )
  const begun = Effect.map(Effect.forkDetach(Effect.provideContext(claimed, desk.services)), (fiber) => {
    desk.active.set(runId, fiber)
    fiber.addObserver((exit) => {
      // Whoever waits for the place may look at once, so the run leaves it first.
      const wasFull = desk.active.size >= desk.concurrency
      desk.active.delete(runId)
      if (wasFull && desk.isMore) desk.freed.openUnsafe()
      answer()
      // When a run that failed may be tried again is decided now, not at the next look.
      if (Exit.isSuccess(exit) && exit.value && !desk.isDraining) tellOffer(desk.store, runId)
    })
  })
  yield* Effect.uninterruptible(begun)
  yield* Deferred.await(answered)
})

/** Continues a run that is held. Losing the lease ends the work immediately. */
const takeUp = <R>(
  desk: Desk<R>,
  head: RunHead,
  agent: Runnable<R>,
  lease: Held
): Effect.Effect<unknown, TakeUpError, RunStore | R> => {
  const { runId } = head
  const lost = () => new AgentCrashError({ runId, agentId: agent.name })
  const resumed = Effect.gen(function* () {
    const clock = yield* Clock.clockWith(Effect.succeed)
    const how = desk.options.resume?.(head)
    const told = Effect.isEffect(how) ? yield* Effect.tapError(how, () => refuse(desk, head)) : how
    desk.leftAlone.times.delete(runId)
    return yield* desk.kernel.resume(agent, runId, {
      ...told,
      workerId: desk.workerId,
      stop: () => {
        if (lease.lost || monotonic(clock) >= lease.until) return lost()
        return desk.isDraining ? new CancellationError({ runId }) : undefined
      },
      prove: (root) => Effect.flatMap(proves(desk, root), (isHeld) => (isHeld ? Effect.void : Effect.fail(lost())))
    })
  })
  return Effect.raceFirst(
    resumed,
    Effect.andThen(
      renew(desk, runId, lease),
      Effect.suspend(() => Effect.fail(lost()))
    )
  )
}

/** Leaves a run alone for a while. */
const refuse = <R>(desk: Desk<R>, head: RunHead): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeMillis, (now) => setDue(desk.leftAlone, head, now + refusedMs))

/** How long a run is left alone if `Options.resume` failed for it. */
const refusedMs = 30_000

/** Works on a run that is held, gives it back, and reports the outcome. Returns whether it failed. */
const work = <R>(
  desk: Desk<R>,
  head: RunHead,
  lease: Held,
  resumed: Effect.Effect<unknown, TakeUpError, RunStore | R>
): Effect.Effect<boolean, never, RunStore | R> => {
  const { runId } = head
  const { onRun } = desk.options
  return Effect.flatMap(Effect.exit(resumed), (exit) => {
    const told = onRun === undefined ? tell(runId, exit) : Effect.flatMap(stands(desk, head), (now) => onRun(now, exit))
    const isFailed = Exit.isFailure(exit) && !lease.lost
    const error = Option.getOrUndefined(Exit.findErrorOption(exit))
    if (error?._tag === "RunPaused") desk.deadlines.paused(error)
    return Effect.as(Effect.andThen(Effect.ignore(letGo(desk, runId, lease)), told), isFailed)
  })
}

/** The present head of a run, or the known one if the store does not answer. */
const stands = ({ soon, store }: Holder, head: RunHead): Effect.Effect<RunHead> =>
  Effect.map(
    Effect.orElseSucceed(soon(store.head(head.runId)), () => Option.none()),
    Option.getOrElse(() => head)
  )

/** Logs why a run stopped. */
export const tell = (runId: string, exit: Exit.Exit<unknown, TakeUpError>): Effect.Effect<void> =>
  Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
    ? Effect.void
    : Effect.logInfo(`run ${flat(runId)} stopped`, logText(why(exit.cause)))

/** A failure is a sentence; a defect is logged with its stack. */
const why = (cause: Cause.Cause<TakeUpError>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => causeText(cause),
    onSome: (error) => `${tagOf(error)}: ${messageOf(error)}`
  })

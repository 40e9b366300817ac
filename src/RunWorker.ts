/**
 * Runs what others stored: a worker claims runs nobody holds and takes them up where they stand.
 *
 * A run is held by a lease that is renewed while it runs; whoever loses its
 * lease stops where it stands, and the store refuses whatever it still sends
 * . Runs whose worker died are taken up again when their lease has ended,
 * by a schedule. Thousands that cannot be taken up neither cost much nor hide one
 * that can: a look reads a page of them, the oldest in turn with the newest. A
 * worker that is interrupted starts nothing new, lets each run come to the end of
 * its step, and gives its leases back.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type { Agent } from "./Agent.ts"
import { isOverdue } from "./internal/deadline.ts"
import { giveBack, type Held, type Holder, isTaken, letGo, renew } from "./internal/holding.ts"
import { inTime } from "./internal/inTime.ts"
import { isPassing, patience, tasksOf } from "./internal/patience.ts"
import { randomId } from "./internal/randomId.ts"
import { redact } from "./internal/redact.ts"
import * as Pages from "./internal/runPages.ts"
import { Kernel, type ResumeOptions } from "./Kernel.ts"
import { AgentCrashError, CancellationError, type KernelError } from "./KernelError.ts"
import { Limits } from "./Limits.ts"
import { type RunHead, RunStore, StoreError } from "./RunStore.ts"
import type { AnySkill } from "./Skill.ts"

// ---------------------------------------------------------------- models

/**
 * An agent as a worker runs it. `R` is what its instructions need.
 *
 * @category models
 * @since 0.1.0
 */
export type Runnable<R = never> = Agent<unknown, AnySkill<unknown>, R>

/**
 * How a worker works.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<R = never> {
  /** The agents it can run: a run names its agent. Runs of others are left alone. */
  readonly agents: ReadonlyArray<Runnable<NoInfer<R>>>
  /** Who it is: two workers never share a name. Default: one of its own. */
  readonly workerId?: string | undefined
  /** Runs it works on at once. Default: 1. */
  readonly concurrency?: number | undefined
  /** How long a run is held without a renewal. Default: 30 seconds. */
  readonly lease?: Duration.Input | undefined
  /** How often it looks for work. Default: every second. */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * When a run that crashed is taken up again: after the first crash at once, after the next ones by this schedule, and
   * not at all when the schedule is over. Progress, of a task, too, begins the schedule anew.
   * A run whose deadline is over is taken up once more, to tell so, and then not until its agent gives it more time.
   * Default: 5 times, from 1 second on, each wait twice the last.
   */
  readonly retry?: Schedule.Schedule<unknown> | undefined
  /**
   * Which failed runs are taken up again like crashed ones. Default: `isPassing`.
   */
  readonly retries?: ((head: RunHead) => boolean) | undefined
  /**
   * A run somebody runs without a lease is left alone until nothing happened to it, nor to a task of it, for so long.
   * Default: 10 minutes.
   */
  readonly orphanAfter?: Duration.Input | undefined
  /**
   * How long a run may take to the end of its step when the worker is told to stop. Default: 4 seconds. What does not
   * end then is interrupted, and left behind after `Limits.cleanUpMs`.
   */
  readonly drain?: Duration.Input | undefined
  /**
   * How a run is taken up: verdicts on calls in flight, for instance, or the skills that are allowed. Asked once the
   * run is held; it may need services that no agent needs. A failure counts like one of the store: the run is given
   * back, to be taken up later.
   *
   * @example
   * const resume = ({ runId }: RunStore.RunHead) =>
   *   Effect.map(RunStore.inFlight(runId), (calls) => ({
   *     replay: Object.fromEntries(calls.map((call) => [call.toolCallId, ledger.find(call.idempotencyKey) ?? "retry"]))
   *   }))
   */
  readonly resume?: ((head: RunHead) => TakeUp | Effect.Effect<TakeUp, KernelError, RunStore | R>) | undefined
  /**
   * Told how each run it worked on ended for now, with its head as it is then. Without it, the log tells why a run
   * stopped.
   */
  readonly onRun?: ((head: RunHead, exit: Exit.Exit<unknown, KernelError>) => Effect.Effect<void>) | undefined
}

/**
 * How a worker takes a run up.
 *
 * @category models
 * @since 0.1.0
 */
export type TakeUp = Pick<
  ResumeOptions,
  "replay" | "rewind" | "context" | "provider" | "allowedSkills" | "onTaskComplete"
>

/**
 * What agents need, together.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<A> = A extends Runnable<infer R> ? R : never

/** Options of agents that may each need something else, and of a `resume` that may. */
type Given<A extends Runnable<unknown>, R> = Options<Services<A> | R> & { readonly agents: ReadonlyArray<A> }

export {
  /**
   * Whether a worker had this run, and its provider failed for a reason that may pass (see `KernelError.ProviderReason`):
   * a part of what `retries` may say.
   *
   * @category guards
   * @since 0.1.0
   */
  isPassing
}

// ---------------------------------------------------------------- running

/**
 * Works until it is interrupted.
 *
 * @example
 * const worker = RunWorker.run({ agents: [writer, reviewer] })
 *
 * @category running
 * @since 0.1.0
 */
export const run = /*#__PURE__*/ Effect.fnUntraced(function* <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Effect.fn.Return<never, never, Kernel | RunStore | Services<A> | R> {
  const worker = yield* make<Services<A> | R>(options)
  const poll = Duration.toMillis(options.pollInterval ?? "1 second")
  return yield* Effect.onInterrupt(Effect.forever(Effect.andThen(worker.look, Effect.sleep(poll))), () => worker.drain)
})

/**
 * Works until nothing is left that can be taken up now, and tells how many runs it took up.
 *
 * @category running
 * @since 0.1.0
 */
export const runOnce = /*#__PURE__*/ Effect.fnUntraced(function* <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Effect.fn.Return<number, never, Kernel | RunStore | Services<A> | R> {
  const worker = yield* make<Services<A> | R>(options)
  const work = Effect.gen(function* () {
    let taken = -1
    for (let now = 0; now > taken; now = yield* worker.settled) {
      taken = now
      yield* worker.lookAtAll
    }
    return taken
  })
  return yield* Effect.onInterrupt(work, () => worker.drain)
})

/**
 * A worker for the time of a layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Layer.Layer<never, never, Kernel | RunStore | Services<A> | R> =>
  Layer.effectDiscard(Effect.forkScoped(run(options)))

// ---------------------------------------------------------------- the worker

interface Worker {
  /** Claims what can be claimed now of the runs that come next: a page, the oldest first, in turn with the newest. */
  readonly look: Effect.Effect<void>
  /** Claims what can be claimed now, of all. */
  readonly lookAtAll: Effect.Effect<void>
  /** Waits for all runs under way, and tells how many there were. */
  readonly settled: Effect.Effect<number>
  /** Brings every run to the end of its step, and gives the leases back. */
  readonly drain: Effect.Effect<void>
}

const make = /*#__PURE__*/ Effect.fnUntraced(function* <R>(
  options: Options<R>
): Effect.fn.Return<Worker, never, Kernel | RunStore | R> {
  const kernel = yield* Kernel
  const store = yield* RunStore
  const services = yield* Effect.context<RunStore | R>()
  const { cleanUpMs, commitMs } = yield* Limits
  // A look may take longer than a commit, but not for ever.
  const soon = <A, E>(asked: Effect.Effect<A, E>) => inTime(asked, 6 * commitMs, () => noAnswer(6 * commitMs))
  const workerId = options.workerId ?? `worker-${randomId(yield* Random.Random)}`
  const agents = new Map(options.agents.map((agent) => [agent.name, agent]))
  // An end that is no number cannot be stored.
  const leaseMs = Math.min(Duration.toMillis(options.lease ?? "30 seconds"), 1e15)
  const holder: Holder = { store, workerId, leaseMs, soon }
  const orphanMs = Duration.toMillis(options.orphanAfter ?? "10 minutes")
  const { onRun } = options
  const retry = options.retry ?? Schedule.upTo(Schedule.exponential("1 second"), { times: 5 })
  const active = new Map<string, Fiber.Fiber<unknown, unknown>>()
  // Where runs stood when they were taken up: one that came no further is left alone until another look.
  const tried = new Map<string, number>()
  let draining = false
  let taken = 0

  const isFull = () => active.size >= (options.concurrency ?? 1)

  /** Claims a run that can be taken up now. */
  const consider = Effect.fnUntraced(function* (head: RunHead, now: number) {
    const agent = agents.get(head.agent)
    if (agent === undefined || active.has(head.runId) || tried.get(head.runId) === head.revision) return
    if (head.lease === undefined && (yield* isAtWork(head, now - orphanMs))) return
    if (head.status.type === "failed" && !(options.retries ?? isPassing)(head)) return
    const wait = yield* patience(store, retry, head)
    if (wait === undefined || (wait > 0 && head.updatedAt + wait > now)) return
    const { deadlineMs } = agent.budget
    if (deadlineMs !== undefined && (yield* isOverdue(store, head, deadlineMs))) return
    yield* claim(head, agent)
  })

  /** Whether something happened to a run since a time, be it in a task of it. */
  const isAtWork = (head: RunHead, since: number): Effect.Effect<boolean, StoreError> =>
    head.updatedAt > since
      ? Effect.succeed(true)
      : Effect.map(tasksOf(store, head), (tasks) => tasks.some((task) => task.updatedAt > since))

  /** Holds the run and works on it, unless another was first. Whoever looks waits for what the store says, and no longer. */
  const claim = Effect.fnUntraced(function* (head: RunHead, agent: Runnable<R>) {
    const { runId } = head
    const now = yield* Clock.currentTimeMillis
    const lease: Held = { expiresAt: now + leaseMs, lost: false }
    const answered = Deferred.makeUnsafe<void>()
    const answer = () => Deferred.doneUnsafe(answered, Exit.void)
    const held = Effect.exit(soon(store.acquire(runId, { workerId, expiresAt: lease.expiresAt }, now)))
    const claimed = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(held, (exit) => {
        if (Exit.isFailure(exit)) {
          answer()
          // It may be held though the store never said so.
          return isTaken(exit.cause) ? Effect.void : Effect.ignore(giveBack(holder, runId))
        }
        taken++
        tried.set(runId, head.revision)
        answer()
        return work(head, agent, lease, restore)
      })
    )
    const begun = Effect.map(Effect.forkDetach(Effect.provideContext(claimed, services)), (fiber) => {
      active.set(runId, fiber)
      fiber.addObserver(() => {
        active.delete(runId)
        answer()
      })
    })
    yield* Effect.uninterruptible(begun)
    yield* Deferred.await(answered)
  })

  /** Works on a run that is held, and gives it back, whatever came of it. */
  const work = (
    head: RunHead,
    agent: Runnable<R>,
    lease: Held,
    restore: typeof Effect.interruptible
  ): Effect.Effect<void, never, RunStore | R> => {
    const { runId } = head
    const lost = () => new AgentCrashError({ runId, agentId: agent.name })
    const resumed = Effect.gen(function* () {
      const clock = yield* Clock.clockWith(Effect.succeed)
      const how = options.resume?.(head)
      return yield* kernel.resume(agent, runId, {
        ...(Effect.isEffect(how) ? yield* how : how),
        workerId,
        stop: () =>
          lease.lost || clock.currentTimeMillisUnsafe() >= lease.expiresAt
            ? lost()
            : draining
              ? new CancellationError({ reason: "cancelled" })
              : undefined
      })
    })
    // Losing the lease ends the work wherever it stands.
    const owned = Effect.raceFirst(
      resumed,
      Effect.andThen(
        renew(holder, runId, lease),
        Effect.suspend(() => Effect.fail(lost()))
      )
    )
    return Effect.flatMap(Effect.exit(restore(owned)), (exit) =>
      Effect.andThen(
        Effect.ignore(letGo(holder, runId, lease, exit)),
        onRun === undefined ? tell(runId, exit) : Effect.flatMap(stands(head), (now) => onRun(now, exit))
      )
    )
  }

  /** The head of a run as it is now; as it was, when the store does not tell. */
  const stands = (head: RunHead): Effect.Effect<RunHead> =>
    Effect.map(
      Effect.orElseSucceed(soon(store.head(head.runId)), () => Option.none()),
      Option.getOrElse(() => head)
    )

  const settled = Effect.suspend(() => Effect.as(Fiber.awaitAll(active.values()), taken))

  const drain = Effect.suspend(() => {
    draining = true
    const cut = Effect.suspend(() => Fiber.interruptAll(active.values()))
    return Effect.andThen(
      Effect.timeoutOption(settled, options.drain ?? "4 seconds"),
      // A store that hangs, or who is told of a run and never ends, is left behind.
      Effect.timeoutOption(cut, cleanUpMs)
    )
  })

  const looking: Pages.Looking = {
    list: (filter) => soon(store.list(filter)),
    consider: (head, now) => soon(consider(head, now)),
    isFull
  }
  // A run that goes on is found among thousands that failed.
  const running = Pages.make("running", looking)
  const failed = Pages.make("failed", looking)
  // In turn, so that neither takes every place.
  let looks = 0
  const look = Effect.suspend(() => {
    tried.clear()
    return looks++ % 2 === 0 ? Effect.andThen(running.next, failed.next) : Effect.andThen(failed.next, running.next)
  })

  const lookAtAll = Effect.andThen(running.all, failed.all)

  return { look, lookAtAll, settled, drain }
})

const noAnswer = (limit: number): Effect.Effect<never, StoreError> =>
  Effect.fail(
    new StoreError({ operation: "look for runs", reason: "timeout", detail: `it took longer than ${limit} ms` })
  )

const tell = (runId: string, exit: Exit.Exit<unknown, KernelError>): Effect.Effect<void> =>
  Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
    ? Effect.void
    : Effect.logInfo(`run ${runId} stopped`, redact(why(exit.cause)))

/** A failure is a sentence; where a defect comes from is told with its stack. */
const why = (cause: Cause.Cause<KernelError>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => Cause.pretty(cause),
    onSome: ({ _tag, message }) => `${_tag}: ${message}`
  })

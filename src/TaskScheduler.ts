/**
 * Runs the tasks of a plan, each as soon as its dependencies are done.
 *
 * Every running task has a fiber, at most `concurrency` at once; waiting tasks cost nothing. A task that fails, dies or
 * is interrupted does not stop the others: its exit is its result, which the tasks that depend on it receive. Results
 * come in the order of the plan's waves, whatever finishes first. Interrupting the run interrupts every task and waits
 * for all of them.
 *
 * `runTask` does the work of a task and notifies its host.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"
import type * as Semaphore from "effect/Semaphore"
import * as Graph from "./internal/words/taskGraph.ts"
import { DeadlockError } from "./KernelError.ts"
import * as Plan from "./Plan.ts"

// ---------------------------------------------------------------- errors

export {
  /**
   * Some tasks can never start. A validated plan has no such tasks.
   *
   * @category errors
   * @since 0.1.0
   */
  DeadlockError
} from "./KernelError.ts"

// ---------------------------------------------------------------- models

/**
 * The result of a task, with its id.
 *
 * A list of results keeps its order and accepts any id, including `10` and `__proto__`; `new Map(results)` gives access
 * by id.
 *
 * @category models
 * @since 0.1.0
 */
export type TaskResult<A, E = never> = readonly [id: string, exit: Exit.Exit<A, E>]

/**
 * Runs one task with the results of its dependencies, in the order of `dependsOn`.
 *
 * @category models
 * @since 0.1.0
 */
export type RunTask<A, E = never, R = never> = (
  task: Plan.Task,
  dependencies: ReadonlyArray<TaskResult<A, E>>
) => Effect.Effect<A, E, R>

/**
 * Options of a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<A, E = never> {
  /** Tasks that run at once. Default: 8. */
  readonly concurrency?: number | "unbounded" | undefined
  /**
   * A limit shared with other runs, on top of `concurrency`: a task takes one permit while it runs.
   *
   * Do not run a plan with the same semaphore inside a task: once tasks that wait for other tasks hold all permits,
   * nothing continues.
   */
  readonly semaphore?: Semaphore.Semaphore | undefined
  /** Results of an earlier, interrupted run of the same plan. These tasks do not run again. */
  readonly finished?: ReadonlyMap<string, Exit.Exit<A, E>> | undefined
  /**
   * Use the statuses of the plan: done tasks get no result, and running ones never end. Default: false, every task
   * starts pending.
   */
  readonly keepStatus?: boolean | undefined
}

// ---------------------------------------------------------------- running

/**
 * Runs a plan. Returns one result per task, in the order of `Plan.completionOrder`.
 *
 * Sequential tasks run one after the other in that order, beside the parallel tasks that are ready. Fails with a
 * `DeadlockError` if tasks can never start, after all others have ended.
 *
 * @category running
 * @since 0.1.0
 */
export const run = <A, E, R>(
  plan: Plan.Plan,
  runTask: RunTask<A, E, R>,
  options: Options<A, E> = {}
): Effect.Effect<ReadonlyArray<TaskResult<A, E>>, DeadlockError, R> =>
  Effect.contextWith((context: Context.Context<R>) =>
    Effect.withFiber((fiber) => {
      const fork = Effect.runForkWith(Context.add(context, Scheduler.Scheduler, oneDispatcher(fiber)))
      const tasks = options.keepStatus === true ? plan : Plan.pending(plan)
      return Effect.callback((resume) => {
        const execution = new Execution(tasks, runTask, options, fork, resume)
        execution.pump()
        return execution.stop
      })
    })
  )

// ---------------------------------------------------------------- one run

/**
 * The state of one run. Tasks are positions in the plan, always in range: hence the `!`.
 *
 * A ready queue feeds at most `limit` fibers. When a fiber ends, the dependents of its task are updated and the queue
 * is pumped again.
 */
class Execution<A, E, R> {
  readonly plan: Plan.Plan
  readonly runTask: RunTask<A, E, R>
  readonly options: Options<A, E>
  readonly fork: (effect: Effect.Effect<A, E, R>) => Fiber.Fiber<A, E>
  readonly resume: (effect: Effect.Effect<ReadonlyArray<TaskResult<A, E>>, DeadlockError>) => void
  readonly limit: number
  readonly graph: Graph.TaskGraph
  readonly order: ReadonlyArray<number>
  readonly results: Array<TaskResult<A, E> | undefined>
  /** Fibers of the running tasks. */
  readonly fibers: Array<Fiber.Fiber<A, E> | undefined>
  running = 0
  /** Tasks that may start, from `head` on. */
  readonly ready: Array<number>
  head = 0
  /** Sequential tasks in their order, from `turn` on. */
  readonly sequence: ReadonlyArray<number>
  turn = 0
  sequenceBusy = false
  pumping = false
  stopped = false
  onIdle: (() => void) | undefined = undefined

  constructor(
    plan: Plan.Plan,
    runTask: RunTask<A, E, R>,
    options: Options<A, E>,
    fork: (effect: Effect.Effect<A, E, R>) => Fiber.Fiber<A, E>,
    resume: (effect: Effect.Effect<ReadonlyArray<TaskResult<A, E>>, DeadlockError>) => void
  ) {
    const { concurrency = defaultConcurrency } = options
    this.plan = plan
    this.runTask = runTask
    this.options = options
    this.fork = fork
    this.resume = resume
    this.limit = concurrency === "unbounded" ? Infinity : concurrency >= 1 ? concurrency : 1
    this.graph = Graph.make(plan.tasks, (task) => Plan.isParallel(plan.strategy, task))
    this.order = Graph.completionOrder(this.graph)
    this.fibers = plan.tasks.map(() => undefined)
    this.results = plan.tasks.map(() => undefined)
    this.sequence = this.graph.waves.flatMap((wave) => wave.sequential)
    // Parallel tasks of the first wave wait only for a free slot.
    this.ready = Array.from(this.graph.waves[0]?.parallel ?? [])
    this.offerSequential()
  }

  /** Starts every task that may start. */
  pump(): void {
    // A task that ends at once calls this again; the loop below continues with it, so the stack does not grow.
    if (this.pumping) return
    this.pumping = true
    while (!this.stopped && this.running < this.limit) {
      const position = this.ready[this.head]
      if (position === undefined) break
      this.head++
      this.launch(position)
    }
    this.pumping = false
    if (this.running > 0) return
    if (this.stopped) this.onIdle?.()
    else this.finish()
  }

  launch(position: number): void {
    const task = this.plan.tasks[position]!
    const { finished, semaphore } = this.options
    this.running++
    const known = finished?.get(task.id)
    if (known !== undefined) return this.settle(position, known)
    const effect = Effect.suspend(() => this.runTask(task, this.dependenciesOf(position)))
    const fiber = this.fork(semaphore === undefined ? effect : semaphore.withPermit(effect))
    this.fibers[position] = fiber
    fiber.addObserver((exit) => {
      this.fibers[position] = undefined
      this.settle(position, exit)
      this.pump()
    })
    // The task interrupted the run itself, before its fiber was known.
    if (this.stopped) fiber.interruptUnsafe()
  }

  settle(position: number, exit: Exit.Exit<A, E>): void {
    const { dependents, unmet } = this.graph
    this.running--
    this.results[position] = [this.plan.tasks[position]!.id, exit]
    for (let at = dependents.starts[position]!; at < dependents.starts[position + 1]!; at++) {
      const dependent = dependents.positions[at]!
      if (--unmet[dependent]! === 0 && this.isParallel(dependent)) this.ready.push(dependent)
    }
    if (!this.isParallel(position)) this.sequenceBusy = false
    this.offerSequential()
  }

  /** Offers the next sequential task once the previous one has ended, in the order of the plan. */
  offerSequential(): void {
    const position = this.sequence[this.turn]
    if (position === undefined || this.sequenceBusy || this.graph.unmet[position]! > 0) return
    this.sequenceBusy = true
    this.turn++
    this.ready.push(position)
  }

  isParallel(position: number): boolean {
    return Plan.isParallel(this.plan.strategy, this.plan.tasks[position]!)
  }

  dependenciesOf(position: number): ReadonlyArray<TaskResult<A, E>> {
    const { starts, positions } = this.graph.dependencies
    const results: Array<TaskResult<A, E>> = []
    for (let at = starts[position]!; at < starts[position + 1]!; at++) {
      const result = this.results[positions[at]!]
      if (result !== undefined) results.push(result)
    }
    return results
  }

  finish(): void {
    const stuck = this.graph.stuck.map((position) => this.plan.tasks[position]!.id)
    this.resume(
      stuck.length > 0
        ? Effect.fail(new DeadlockError({ tasks: stuck }))
        : Effect.succeed(this.order.map((position) => this.results[position]!))
    )
  }

  /** Interrupts the running tasks and waits for them, including one that is just being started. */
  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.stopped = true
    return Effect.andThen(
      Fiber.interruptAll(this.fibers.filter((fiber) => fiber !== undefined)),
      Effect.callback<void>((resume) => {
        if (this.running === 0) return resume(Effect.void)
        this.onIdle = () => resume(Effect.void)
      })
    )
  })
}

const defaultConcurrency = 8

/**
 * Returns the scheduler of a fiber with one queue for all tasks, so that tasks that yield together resume together, in
 * one turn of the event loop.
 */
const oneDispatcher = (parent: Fiber.Fiber<unknown, unknown>): Scheduler.Scheduler => {
  const scheduler = parent.getRef(Scheduler.Scheduler)
  return {
    executionMode: scheduler.executionMode,
    shouldYield: (fiber) => scheduler.shouldYield(fiber),
    makeDispatcher: () => parent.currentDispatcher
  }
}

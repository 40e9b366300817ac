/**
 * Runs the fibers of a program when its session lets them, so that the session knows when all of them wait.
 */

import type * as Fiber from "effect/Fiber"
import { MixedScheduler, type Scheduler, type SchedulerDispatcher } from "effect/Scheduler"

/** A scheduler that keeps tasks until they are run. */
export class StepScheduler implements Scheduler {
  readonly executionMode = "async"
  readonly #usual = new MixedScheduler()
  #tasks: Array<() => void> = []
  #isReleased = false

  shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    return this.#usual.shouldYield(fiber)
  }

  makeDispatcher(): SchedulerDispatcher {
    const usual = this.#usual.makeDispatcher()
    return {
      scheduleTask: (task, priority) => {
        if (this.#isReleased) usual.scheduleTask(task, priority)
        else this.#tasks.push(task)
      },
      flush: () => (this.#isReleased ? usual.flush() : this.#flush())
    }
  }

  /** Runs at most `most` tasks. Returns whether there are more. Synchronous. */
  run(most: number): boolean {
    for (let count = 0; count < most;) {
      const tasks = this.#tasks
      if (tasks.length === 0) return false
      this.#tasks = []
      for (const task of tasks) task()
      count += tasks.length
    }
    return this.#tasks.length > 0
  }

  /** From now on, tasks run as those of any other fiber. */
  release(): void {
    this.#isReleased = true
    this.#flush()
  }

  #flush(): void {
    while (this.run(Infinity));
  }
}

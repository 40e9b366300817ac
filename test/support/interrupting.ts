/** A scheduler that interrupts the fiber it is given to between two of its operations: when it has done so many. */
import { type Fiber, Scheduler } from "effect"

export const interruptingAt = (operation: number): Scheduler.Scheduler => {
  const usual = new Scheduler.MixedScheduler()
  let own: Fiber.Fiber<unknown, unknown> | undefined
  let done = 0
  return {
    executionMode: usual.executionMode,
    makeDispatcher: () => usual.makeDispatcher(),
    shouldYield: (fiber) => {
      own ??= fiber
      // Those it forks have this scheduler, too.
      if (fiber === own && done++ === operation) fiber.interruptUnsafe()
      return usual.shouldYield(fiber)
    }
  }
}

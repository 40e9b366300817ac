/** A scheduler that interrupts a fiber between two of its operations: the one it has done so many of. */
import { Scheduler } from "effect"

export const interruptingAt = (operation: number): Scheduler.Scheduler => {
  const usual = new Scheduler.MixedScheduler()
  let done = 0
  return {
    executionMode: usual.executionMode,
    makeDispatcher: () => usual.makeDispatcher(),
    shouldYield: (fiber) => {
      if (done++ === operation) fiber.interruptUnsafe()
      return usual.shouldYield(fiber)
    }
  }
}

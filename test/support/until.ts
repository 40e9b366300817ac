import { Effect, Schedule } from "effect"

/** Waits until something holds, looking often. */
export const until = (holds: () => boolean) =>
  Effect.repeat(Effect.sync(holds), { while: (done) => !done, schedule: Schedule.spaced("5 millis") })

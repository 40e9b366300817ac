/**
 * Work that many may want at the same time, done once for all of them.
 *
 * Who comes while it is done waits for what comes of it, a failure too; who
 * comes later has it done again. Where the one who does it is given up, one of
 * those who wait does it.
 */

import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** One piece of work. */
export class Shared<A, E> {
  private doing: Deferred.Deferred<Exit.Exit<A, E>> | undefined

  /** What comes of it: of what somebody does already, or else of the effect. */
  get(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.uninterruptibleMask((restore) => {
      if (this.doing !== undefined) {
        const done = Deferred.await(this.doing)
        return restore(Effect.flatMap(done, (exit) => (Exit.hasInterrupts(exit) ? this.get(effect) : exit)))
      }
      const doing = (this.doing = Deferred.makeUnsafe())
      return Effect.onExit(restore(effect), (exit) => {
        this.doing = undefined
        return Deferred.succeed(doing, exit)
      })
    })
  }
}

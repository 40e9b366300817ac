/**
 * Failures of others' code that change nothing: whoever watches over the log hears of them.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { redact } from "./redact.ts"

/** Tells the log why something failed, without what looks like a key (S-7). */
export const passedOver =
  (what: string) =>
  (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
    Effect.logWarning(what, redact(Cause.pretty(cause)))

/** Tells a mere observer. What it does wrong changes nothing, even when it throws before there is an effect. */
export const observed = (name: string, tell: () => Effect.Effect<unknown, unknown>): Effect.Effect<unknown> =>
  Effect.catchCause(Effect.suspend(tell), passedOver(`${name} failed`))

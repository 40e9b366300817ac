/**
 * Whom the command line asks before a call runs.
 */

import * as Effect from "effect/Effect"
import * as Policy from "../Policy.ts"

/** A person is asked before anything that cannot be taken back. */
export const careful = Policy.layer((call) =>
  Effect.succeed(call.effects === "write" ? Policy.confirm("it may change something") : Policy.allowed)
)

/**
 * Keeping up with a server: its list is read again when it changed, and a
 * server that is away is tried again, less and less often.
 */

import * as Effect from "effect/Effect"
import type { McpError } from "../../KernelError.ts"
import type { Station } from "./mcpServer.ts"

/** Follows a server until it is interrupted. */
export const follow = Effect.fnUntraced(function* (station: Station, refresh: Effect.Effect<void, McpError>) {
  let pause = shortest
  for (;;) {
    const { problem } = station
    const changed = station.connection.awaitChanges
    yield* problem === undefined || !passes.has(problem.reason) ? changed : Effect.timeoutOption(changed, pause)
    // A burst of changes is one change.
    yield* Effect.sleep("100 millis")
    yield* Effect.ignore(refresh)
    pause = station.problem === undefined ? shortest : Math.min(pause * 2, longest)
  }
})

const shortest = 1_000
const longest = 60_000

// The others need a person.
const passes: ReadonlySet<McpError["reason"]> = new Set(["connect", "disconnected", "timeout", "outcome_unknown"])

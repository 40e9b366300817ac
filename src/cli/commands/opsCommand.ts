/**
 * `kernai ops`: which stored runs need somebody.
 */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { opsFlags } from "./opsFlags.ts"

export const ops = Command.make("ops", opsFlags, (input) =>
  Effect.flatMap(
    Effect.promise(() => import("../runs/overview.ts")),
    (module) => module.overview(input)
  )
).pipe(
  Command.withDescription(
    "Count the runs of a store that need somebody, by agent and version: poisoned, stuck (their worker died, or nothing happened for ten minutes), unplaced (no worker took them for half a minute), waiting, without an answer, failed."
  ),
  Command.withShortDescription("Show which stored runs need somebody")
)

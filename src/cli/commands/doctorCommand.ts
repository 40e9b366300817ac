/**
 * `kernai doctor`: what is there, and what is missing.
 *
 * Keys are looked for, never shown.
 */

import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"

/** The command. */
export const doctor = Command.make(
  "doctor",
  {
    json: Flag.Boolean("json").pipe(Flag.withDescription("Print the findings as JSON"), Flag.withDefault(false))
  },
  ({ json }) =>
    Effect.flatMap(
      Effect.promise(() => import("../examine.ts")),
      (module) => module.examine(json)
    )
).pipe(
  Command.withDescription("Look at Node.js, provider keys and optional packages. Keys are never printed."),
  Command.withShortDescription("Tell what is there and what is missing")
)

/**
 * `kernai doctor`: examines this computer.
 */

import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Shared from "./flags.ts"

export const doctor = Command.make(
  "doctor",
  { json: Shared.toggle("json", "Print the findings as JSON") },
  ({ json }) =>
    Effect.flatMap(
      Effect.promise(() => import("../examine.ts")),
      (module) => module.examine(json)
    )
).pipe(
  Command.withDescription("Examine Node.js, provider keys and optional packages. Keys are never printed."),
  Command.withShortDescription("Show what is installed and what is missing")
)

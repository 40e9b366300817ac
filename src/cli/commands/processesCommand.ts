/**
 * `kernai processes`: the processes that run the runs of a store.
 */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import * as Flags from "./processesFlags.ts"

const operating = Effect.promise(() => import("../runs/operateProcesses.ts"))

const list = Command.make("list", Flags.listFlags, (input) =>
  Effect.flatMap(operating, (module) => module.list(input))
).pipe(
  Command.withDescription(
    "List the workers and runners of a store with their agents and the runs they have. One that does not answer is silent."
  ),
  Command.withShortDescription("List processes that run stored runs")
)

const drain = Command.make("drain", Flags.drainFlags, (input) =>
  Effect.flatMap(operating, (module) => module.drain(input))
).pipe(
  Command.withDescription(
    "Let a process start no further run, finish the steps it has, and hand its runs on; or every process with an agent or a version. Waits until they have. They stay idle until 'kernai processes undrain'."
  ),
  Command.withShortDescription("Let processes hand their runs on")
)

const undrain = Command.make("undrain", Flags.targetFlags, (input) =>
  Effect.flatMap(operating, (module) => module.undrain(input))
).pipe(
  Command.withDescription("End a drain: give the same name, agent and version as it has."),
  Command.withShortDescription("Let drained processes take runs again")
)

export const processes = Command.make("processes").pipe(
  Command.withDescription("List the processes that run the runs of a store, and drain them."),
  Command.withShortDescription("List and drain processes"),
  Command.withSubcommands([list, drain, undrain])
)

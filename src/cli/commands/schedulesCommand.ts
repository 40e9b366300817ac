/**
 * `kernai schedules`: the schedules of a store.
 */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import * as Flags from "./schedulesFlags.ts"

const operating = Effect.promise(() => import("../runs/operateSchedules.ts"))

const list = Command.make("list", Flags.listFlags, (input) =>
  Effect.flatMap(operating, (module) => module.list(input))
).pipe(
  Command.withDescription("List the schedules that processes started on a store, with their next times and last runs."),
  Command.withShortDescription("List schedules")
)

const pause = Command.make("pause", Flags.pauseFlags, (input) =>
  Effect.flatMap(operating, (module) => module.pause(input))
).pipe(
  Command.withDescription("Let a schedule start no run, in any process, until 'kernai schedules resume'."),
  Command.withShortDescription("Let a schedule start no run")
)

const resume = Command.make("resume", Flags.oneFlags, (input) =>
  Effect.flatMap(operating, (module) => module.resume(input))
).pipe(
  Command.withDescription("Let a paused schedule start runs again, from its next time on."),
  Command.withShortDescription("Let a paused schedule start runs again")
)

const run = Command.make("run", Flags.oneFlags, (input) =>
  Effect.flatMap(operating, (module) => module.run(input))
).pipe(
  Command.withDescription(
    "Start a run of a schedule now, which begins as its last one did, and print its id. A worker runs it."
  ),
  Command.withShortDescription("Start a run of a schedule now")
)

const remove = Command.make("remove", Flags.oneFlags, (input) =>
  Effect.flatMap(operating, (module) => module.remove(input))
).pipe(
  Command.withDescription("Remove a schedule that no process has any more from the list. Its runs stay."),
  Command.withShortDescription("Remove an old schedule from the list")
)

export const schedules = Command.make("schedules").pipe(
  Command.withDescription("List, pause and resume the schedules of a store, and start their runs now."),
  Command.withShortDescription("List and pause schedules"),
  Command.withSubcommands([list, pause, resume, run, remove])
)

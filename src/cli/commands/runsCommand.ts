/**
 * `kernai runs`: stored runs.
 */

import { Command } from "effect/cli"
import * as Effect from "effect/Effect"
import { help } from "../exit.ts"
import * as Shared from "./flags.ts"
import * as Flags from "./runsFlags.ts"

const listing = Effect.promise(() => import("../runs/listRuns.ts"))
const showing = Effect.promise(() => import("../runs/showRuns.ts"))
const acting = Effect.promise(() => import("../runs/act.ts"))
const checking = Effect.promise(() => import("../runs/checkRuns.ts"))
const moving = Effect.promise(() => import("../runs/moveRuns.ts"))
const copying = Effect.promise(() => import("../runs/backupRuns.ts"))

const list = Command.make("list", Flags.listFlags, (input) =>
  Effect.flatMap(listing, (module) => module.list(input))
).pipe(
  Command.withDescription(
    "List runs, newest first, a page at a time. The tasks of a run are counted, not listed. --json prints a line for each run."
  ),
  Command.withShortDescription("List runs")
)

const show = Command.make("show", Flags.showFlags, (input) =>
  Effect.flatMap(showing, (module) => module.show(input))
).pipe(
  Command.withDescription(
    "Show a run: its turns, each call with its input, its answer and its result, and the calls it waits for."
  ),
  Command.withShortDescription("Show a run and what it waits for")
)

const exported = Command.make("export", Flags.exportFlags, (input) =>
  Effect.flatMap(moving, (module) => module.exported(input))
).pipe(
  Command.withDescription(
    "Write the records of a run and of its tasks as JSON lines, which 'kernai runs import' reads, or as a page. Large media stay in the store."
  ),
  Command.withShortDescription("Write a run to a file")
)

const imported = Command.make("import", Flags.importFlags, (input) =>
  Effect.flatMap(moving, (module) => module.imported(input))
).pipe(
  Command.withDescription(
    "Store the runs of an export under their ids, and print those. Workers leave them alone. The flags that a run was started with are not imported."
  ),
  Command.withShortDescription("Read runs from a file")
)

const backup = Command.make("backup", Flags.backupFlags, (input) =>
  Effect.flatMap(copying, (module) => module.backup(input))
).pipe(
  Command.withDescription(
    "Copy all runs with their tasks and media into a new store, of any kind, while workers continue. A damaged run is named and left out."
  ),
  Command.withShortDescription("Copy all runs into a new store")
)

const restore = Command.make("restore", Flags.restoreFlags, (input) =>
  Effect.flatMap(copying, (module) => module.restore(input))
).pipe(
  Command.withDescription(
    "Copy all runs of a backup into the store. A run that is there with the same records stays. Workers find runs that were queued."
  ),
  Command.withShortDescription("Copy the runs of a backup into the store")
)

const approve = Command.make("approve", Flags.approveFlags, (input) =>
  Effect.flatMap(acting, (module) => module.answer(true, input))
).pipe(
  Command.withDescription(
    "Allow calls that a run waits for. Nothing runs yet: a worker continues the run, or 'kernai runs resume'."
  ),
  Command.withShortDescription("Allow calls that a run waits for")
)

const deny = Command.make("deny", Flags.denyFlags, (input) =>
  Effect.flatMap(acting, (module) => module.answer(false, input))
).pipe(
  Command.withDescription(
    "Deny calls that a run waits for. The model reads the denial when a worker or 'kernai runs resume' continues the run."
  ),
  Command.withShortDescription("Deny calls that a run waits for")
)

const cancel = Command.make("cancel", Flags.cancelFlags, (input) =>
  Effect.flatMap(acting, (module) => module.cancel(input))
).pipe(
  Command.withDescription(
    "Cancel a run and the runs below it, whichever process runs them. 'kernai runs resume' continues it."
  ),
  Command.withShortDescription("Cancel a run and the runs below it")
)

const retry = Command.make("retry", Flags.retryFlags, (input) =>
  Effect.flatMap(acting, (module) => module.retry(input))
).pipe(
  Command.withDescription(
    "Offer a failed run to workers again, also a poisoned one, whose worker died of it, and one that a hook paused. Its earlier attempts no longer count."
  ),
  Command.withShortDescription("Offer a failed run to workers again")
)

const follow = Command.make("follow", Flags.followFlags, (input) =>
  Effect.flatMap(showing, (module) => module.follow(input))
).pipe(
  Command.withDescription(
    "Show the events of a run as they are stored, whichever process runs it, until the run is at rest. Leaving does not stop the run."
  ),
  Command.withShortDescription("Follow a run as it happens")
)

const resume = Command.make(
  "resume",
  Flags.resumeFlags,
  Effect.fnUntraced(function* (input) {
    const form = yield* Shared.formOf(input)
    const { resume } = yield* acting
    yield* resume({ ...input, form })
  })
).pipe(
  Command.withDescription(
    `Continue a run to its end. ${Shared.kept}. A run that has started keeps its dialect. ${help}`
  ),
  Command.withShortDescription("Continue a run to its end")
)

const check = Command.make("check", Flags.checkFlags, (input) =>
  Effect.flatMap(checking, (module) => module.check(input))
).pipe(
  Command.withDescription(
    "Check every unfinished run of an agent against this version of it, and list what a deployment would break: approvals that could not run, calls in flight that could not be repeated. Nothing runs. Ends with 1 if there is any."
  ),
  Command.withShortDescription("List what a new version of an agent would break")
)

const fork = Command.make("fork", Flags.forkFlags, (input) =>
  Effect.flatMap(acting, (module) => module.fork(input))
).pipe(
  Command.withDescription(
    "Create a run from a revision of another, and print its id. 'kernai runs resume' continues it; workers leave it alone."
  ),
  Command.withShortDescription("Create a run from a revision of another")
)

const undo = Command.make("undo", Flags.undoFlags, (input) =>
  Effect.flatMap(
    Effect.promise(() => import("../workspace/undoRun.ts")),
    (module) => module.undo(input)
  )
).pipe(
  Command.withDescription(
    "Give the files that a run changed in its workspace the content they had before it, or before one of its turns."
  ),
  Command.withShortDescription("Take back what a run changed in its workspace")
)

const replay = Command.make("replay", Flags.replayFlags, (input) =>
  Effect.flatMap(acting, (module) => module.replay(input))
).pipe(
  Command.withDescription(
    `Replay a stored run without asking a model or running a skill, and report the first difference. ${Shared.kept}.`
  ),
  Command.withShortDescription("Replay a run and report the first difference")
)

const prune = Command.make("prune", Flags.pruneFlags, (input) =>
  Effect.flatMap(listing, (module) => module.prune(input))
).pipe(
  Command.withDescription(
    "Delete old runs with their tasks and media. It does not ask. A run stays while a fork of it has not ended."
  ),
  Command.withShortDescription("Delete old runs")
)

export const runs = Command.make("runs").pipe(
  Command.withDescription("List and show stored runs, answer their questions, cancel and continue them."),
  Command.withShortDescription("Show, answer and continue stored runs"),
  Command.withSubcommands([
    list,
    show,
    follow,
    resume,
    approve,
    deny,
    cancel,
    retry,
    check,
    fork,
    undo,
    replay,
    exported,
    imported,
    backup,
    restore,
    prune
  ])
)

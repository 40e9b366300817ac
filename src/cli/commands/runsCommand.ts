/**
 * `kernai runs`: stored runs.
 */

import { Argument, Command, Flag } from "effect/cli"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { help } from "../exit.ts"
import { statuses } from "../../RunStore.ts"
import * as Shared from "./flags.ts"

const listing = Effect.promise(() => import("../runs/listRuns.ts"))
const showing = Effect.promise(() => import("../runs/showRuns.ts"))
const acting = Effect.promise(() => import("../runs/act.ts"))
const moving = Effect.promise(() => import("../runs/moveRuns.ts"))

const { json, store } = Shared
const id = Argument.String("id").pipe(
  Argument.withDescription("The id of the run, or its beginning or end if no other run has it")
)
const revision = Flag.Int("revision").pipe(
  Flag.withMetavar("<number>"),
  Flag.withDescription("The revision you looked at; fails if the run has another one now"),
  Shared.optional
)
const agentName = Shared.optionalText("agent-name", "name", "Only runs of this agent")
const status = Flag.Literals("status", statuses).pipe(Flag.withMetavar("<status>"))

const listFlags = {
  store,
  status: status.pipe(Flag.withDescription("Only runs with this status"), Shared.optional),
  agentName,
  search: Shared.optionalText("search", "words", "Only runs with all these words in their question or answer"),
  limit: Shared.positive("limit", "number", "How many (20)").pipe(Flag.withDefault(20)),
  after: Shared.optionalText("after", "id", "The next page: runs older than this one"),
  json
}

/** The values of the flags of `list`. */
export type ListFlags = Shared.Values<typeof listFlags>

const list = Command.make("list", listFlags, (input) => Effect.flatMap(listing, (module) => module.list(input))).pipe(
  Command.withDescription(
    "List runs, newest first, a page at a time. The tasks of a run are counted, not listed. --json prints a line for each run."
  ),
  Command.withShortDescription("List runs")
)

const showFlags = { id, store, json }

/** The values of the flags of `show`. */
export type ShowFlags = Shared.Values<typeof showFlags>

const show = Command.make("show", showFlags, (input) => Effect.flatMap(showing, (module) => module.show(input))).pipe(
  Command.withDescription(
    "Show a run: its turns, each call with its input, its approval and its result, and the calls it waits for."
  ),
  Command.withShortDescription("Show a run and what it waits for")
)

const exportFlags = {
  id,
  file: Shared.optionalArgument("file", "A new file (default: the output)"),
  html: Shared.toggle("html", "Write one page that plays the run without a network"),
  store
}

/** The values of the flags of `export`. */
export type ExportFlags = Shared.Values<typeof exportFlags>

const exported = Command.make("export", exportFlags, (input) =>
  Effect.flatMap(moving, (module) => module.exported(input))
).pipe(
  Command.withDescription(
    "Write the records of a run and of its tasks as JSON lines, which 'kernai runs import' reads, or as a page. Large media stay in the store."
  ),
  Command.withShortDescription("Write a run to a file")
)

const importFlags = {
  file: Argument.String("file").pipe(Argument.withDescription("A file that 'kernai runs export' wrote")),
  store,
  json
}

/** The values of the flags of `import`. */
export type ImportFlags = Shared.Values<typeof importFlags>

const imported = Command.make("import", importFlags, (input) =>
  Effect.flatMap(moving, (module) => module.imported(input))
).pipe(
  Command.withDescription(
    "Store the runs of an export under their ids, and print those. Workers leave them alone. The flags that a run was started with are not imported."
  ),
  Command.withShortDescription("Read runs from a file")
)

const answerFlags = {
  id,
  calls: Argument.String("call").pipe(
    Argument.withDescription("The calls, as 'kernai runs show' prints them; may be shortened (default: all that wait)"),
    Argument.atLeast(0)
  ),
  store,
  revision,
  by: Shared.text("by", "name", "Who decided; stored with the answer").pipe(Flag.withDefault("the command line")),
  reason: Shared.optionalText("reason", "text", "Why; the model reads the reason of a denial"),
  json
}

const input = Shared.optionalText("input", "json", "Run one call with this input instead of its own")
const values = Shared.optionalText("values", "json", "The values of the form that one call asks for")

/** The values of the flags of `approve` and `deny`. */
export type AnswerFlags = Shared.Values<typeof answerFlags> & {
  readonly input?: string | undefined
  readonly values?: string | undefined
}

const approve = Command.make("approve", { ...answerFlags, input, values }, (input) =>
  Effect.flatMap(acting, (module) => module.answer(true, input))
).pipe(
  Command.withDescription(
    "Allow calls that a run waits for. Nothing runs yet: a worker continues the run, or 'kernai runs resume'."
  ),
  Command.withShortDescription("Allow calls that a run waits for")
)

const deny = Command.make("deny", answerFlags, (input) =>
  Effect.flatMap(acting, (module) => module.answer(false, input))
).pipe(
  Command.withDescription(
    "Deny calls that a run waits for. The model reads the denial when a worker or 'kernai runs resume' continues the run."
  ),
  Command.withShortDescription("Deny calls that a run waits for")
)

const cancelFlags = {
  id,
  store,
  by: Shared.text("by", "name", "Who cancels; stored with the run").pipe(Flag.withDefault("the command line")),
  reason: Shared.optionalText("reason", "text", "Why; stored with the run"),
  json
}

/** The values of the flags of `cancel`. */
export type CancelFlags = Shared.Values<typeof cancelFlags>

const cancel = Command.make("cancel", cancelFlags, (input) =>
  Effect.flatMap(acting, (module) => module.cancel(input))
).pipe(
  Command.withDescription(
    "Cancel a run and the runs below it, whichever process runs them. 'kernai runs resume' continues it."
  ),
  Command.withShortDescription("Cancel a run and the runs below it")
)

const followFlags = {
  id,
  after: Flag.Int("after").pipe(
    Flag.withMetavar("<number>"),
    Flag.withDescription("Only events after this revision (0)"),
    Flag.withDefault(0)
  ),
  store,
  json: Shared.toggle("json", "Print each event as a JSON line")
}

/** The values of the flags of `follow`. */
export type FollowFlags = Shared.Values<typeof followFlags>

const follow = Command.make("follow", followFlags, (input) =>
  Effect.flatMap(showing, (module) => module.follow(input))
).pipe(
  Command.withDescription(
    "Show the events of a run as they are stored, whichever process runs it, until the run is at rest. Leaving does not stop the run."
  ),
  Command.withShortDescription("Follow a run as it happens")
)

const resumeFlags = {
  id,
  store,
  ...Shared.agent,
  inFlight: Flag.Literals("in-flight", ["retry", "fail"]).pipe(
    Flag.withMetavar("<what>"),
    Flag.withDescription(
      "What to do with calls that may have run: make them again, or fail (default: make them again if they are read-only or idempotent, else fail)"
    ),
    Shared.optional
  ),
  rewind: Shared.toggle("rewind", "Prepare the turn again instead of sending the stored prompt"),
  revision,
  ...Shared.form
}

/** The values of the flags of `resume`. */
export type ResumeFlags = Shared.Values<typeof resumeFlags>

const resume = Command.make(
  "resume",
  resumeFlags,
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

const forkFlags = {
  id,
  revision: revision.pipe(Flag.withDescription("The last revision that both share (default: the latest)")),
  store,
  json
}

/** The values of the flags of `fork`. */
export type ForkFlags = Shared.Values<typeof forkFlags>

const fork = Command.make("fork", forkFlags, (input) => Effect.flatMap(acting, (module) => module.fork(input))).pipe(
  Command.withDescription(
    "Create a run from a revision of another, and print its id. 'kernai runs resume' continues it; workers leave it alone."
  ),
  Command.withShortDescription("Create a run from a revision of another")
)

const replayFlags = { id, store, ...Shared.agent, json }

/** The values of the flags of `replay`. */
export type ReplayFlags = Shared.Values<typeof replayFlags>

const replay = Command.make("replay", replayFlags, (input) =>
  Effect.flatMap(acting, (module) => module.replay(input))
).pipe(
  Command.withDescription(
    `Replay a stored run without asking a model or running a skill, and report the first difference. ${Shared.kept}.`
  ),
  Command.withShortDescription("Replay a run and report the first difference")
)

const pruneFlags = {
  olderThan: Flag.String("older-than").pipe(
    Flag.withSchema(Schema.DurationFromString),
    Flag.withMetavar("<duration>"),
    Flag.withDescription("Time since the last change of a run: '30 days', '12 hours'")
  ),
  status: status.pipe(Flag.withDescription("Delete runs with this status; repeatable (completed)"), Flag.atLeast(0)),
  agentName,
  store,
  json
}

/** The values of the flags of `prune`. */
export type PruneFlags = Shared.Values<typeof pruneFlags>

const prune = Command.make("prune", pruneFlags, (input) =>
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
  Command.withSubcommands([list, show, follow, resume, approve, deny, cancel, fork, replay, exported, imported, prune])
)

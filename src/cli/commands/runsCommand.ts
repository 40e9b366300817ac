/**
 * `kernai runs`: stored runs.
 */

import { Argument, Command, Flag } from "effect/cli"
import * as Effect from "effect/Effect"
import { help } from "../exit.ts"
import { statusWords } from "../../internal/store/runStoreTypes.ts"
import * as Shared from "./flags.ts"

const showing = Effect.promise(() => import("../runs/showRuns.ts"))
const acting = Effect.promise(() => import("../runs/act.ts"))

const { store } = Shared
const id = Argument.String("id").pipe(Argument.withDescription("The id of the run"))
const json = Shared.toggle("json", "Print JSON")
const revision = Flag.Int("revision").pipe(
  Flag.withMetavar("<number>"),
  Flag.withDescription("The revision you looked at; fails if the run has another one now"),
  Shared.optional
)

const listFlags = {
  store,
  status: Flag.Literals("status", statusWords).pipe(
    Flag.withMetavar("<status>"),
    Flag.withDescription("Only runs with this status"),
    Shared.optional
  ),
  search: Shared.optionalText("search", "words", "Only runs with all these words in their question or answer"),
  limit: Shared.positive("limit", "number", "How many (50)").pipe(Flag.withDefault(50)),
  json
}

/** The values of the flags of `list`. */
export type ListFlags = Shared.Values<typeof listFlags>

const list = Command.make("list", listFlags, (input) => Effect.flatMap(showing, (module) => module.list(input))).pipe(
  Command.withDescription("List runs, newest first. --json prints a JSON line for each.")
)

const show = Command.make("show", { id, store, json }, (input) =>
  Effect.flatMap(showing, (module) => module.show(input))
).pipe(Command.withDescription("Show a run, and the calls it waits for."))

const file = Shared.optionalArgument("file", "A new file (default: the output)")

const page = Shared.toggle("html", "Write one page that plays the run without a network")

const exported = Command.make("export", { id, file, html: page, store }, (input) =>
  Effect.flatMap(showing, (module) => module.exported(input))
).pipe(Command.withDescription("Write the records of a run and of its tasks, a JSON line each, or as a page."))

const answerFlags = {
  id,
  calls: Argument.String("call").pipe(
    Argument.withDescription("The ids of calls, as 'kernai runs show' prints them (default: all that wait)"),
    Argument.atLeast(0)
  ),
  store,
  revision,
  by: Shared.text("by", "name", "Who decided; stored with the answer").pipe(Flag.withDefault("the command line")),
  reason: Shared.optionalText("reason", "text", "Why; the model reads the reason of a denial")
}

const input = Shared.optionalText("input", "json", "Run one call with this input instead of its own")

/** The values of the flags of `approve` and `deny`. */
export type AnswerFlags = Shared.Values<typeof answerFlags> & { readonly input?: string | undefined }

const approve = Command.make("approve", { ...answerFlags, input }, (input) =>
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
    "Refuse calls that a run waits for. The model reads it when the run continues: with a worker, or 'kernai runs resume'."
  ),
  Command.withShortDescription("Refuse calls that a run waits for")
)

const cancelFlags = {
  id,
  store,
  by: Shared.text("by", "name", "Name to store with the cancellation").pipe(Flag.withDefault("the command line")),
  reason: Shared.optionalText("reason", "text", "Why; stored with the run")
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

const follow = Command.make(
  "follow",
  {
    id,
    after: Flag.Int("after").pipe(
      Flag.withMetavar("<number>"),
      Flag.withDescription("Only what happened after this revision (0)"),
      Flag.withDefault(0)
    ),
    store
  },
  (input) => Effect.flatMap(showing, (module) => module.follow(input))
).pipe(
  Command.withDescription(
    "Print the events of a run as they are stored, a JSON line each, until it is at rest. Stopping this stops nothing."
  ),
  Command.withShortDescription("Print the events of a run as they are stored")
)

const resumeFlags = {
  id,
  store,
  ...Shared.source,
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
    const agent = yield* Shared.agentOf(input, Shared.sourceOf(input))
    const { resume } = yield* acting
    yield* resume(agent, { ...input, form })
  })
).pipe(
  Command.withDescription(
    `Continue a run to its end. ${Shared.givenAgain}. A run that has started keeps its dialect. ${help}`
  ),
  Command.withShortDescription("Continue a run to its end")
)

const fork = Command.make(
  "fork",
  {
    id,
    revision: revision.pipe(Flag.withDescription("The last revision that both share (default: the latest)")),
    store
  },
  (input) => Effect.flatMap(acting, (module) => module.fork(input))
).pipe(
  Command.withDescription(
    "Create a run from a revision of another, and print its id. 'kernai runs resume' continues it; workers leave it alone."
  ),
  Command.withShortDescription("Create a run from a revision of another")
)

const replay = Command.make(
  "replay",
  {
    id,
    store,
    ...Shared.agent,
    yes: Shared.agent.yes.pipe(Flag.withDescription("The run had --yes: it did not ask before calls"))
  },
  Effect.fnUntraced(function* ({ id, store, ...input }) {
    const agent = yield* Shared.agentOf(input, { _tag: "Unused", id: "" })
    const { replay } = yield* acting
    yield* replay(agent, { store, id })
  })
).pipe(
  Command.withDescription(
    `Replay a stored run without asking a model or running a skill, and report the first difference. ${Shared.givenAgain}, and --yes.`
  ),
  Command.withShortDescription("Replay a run and report the first difference")
)

export const runs = Command.make("runs").pipe(
  Command.withDescription("List and show stored runs, answer their questions, cancel and continue them."),
  Command.withShortDescription("Show, answer and continue stored runs"),
  Command.withSubcommands([list, show, follow, resume, approve, deny, cancel, fork, replay, exported])
)

/**
 * `kernai runs`: looks after stored runs.
 */

import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { help, usage } from "../exit.ts"
import * as Shared from "./flags.ts"

const reading = Effect.promise(() => import("../runs/showRuns.ts"))
const acting = Effect.promise(() => import("../runs/act.ts"))

const { store } = Shared
const id = Argument.String("id").pipe(Argument.withDescription("The id of the run"))
const json = Flag.Boolean("json").pipe(Flag.withDescription("Print JSON"), Flag.withDefault(false))

const list = Command.make(
  "list",
  {
    store,
    status: Flag.Literals("status", ["running", "paused", "completed", "failed"]).pipe(
      Flag.withDescription("Only runs of this status"),
      Flag.optional
    ),
    search: Flag.String("search").pipe(
      Flag.withMetavar("<words>"),
      Flag.withDescription("Only runs with all these words in their question or answer, inside other words too"),
      Flag.optional
    ),
    limit: Flag.Int("limit").pipe(Flag.withDescription("How many (50)"), Flag.withDefault(50)),
    json
  },
  Effect.fnUntraced(function* (input) {
    if (input.limit < 1) return yield* usage("--limit is a number from 1")
    const { list } = yield* reading
    yield* list({
      ...input,
      status: Option.getOrUndefined(input.status),
      search: Option.getOrUndefined(input.search)
    })
  })
).pipe(Command.withDescription("List runs, the newest first; with --json, one JSON line for each."))

const show = Command.make(
  "show",
  { id, store, json },
  Effect.fnUntraced(function* ({ id, json, store }) {
    const { show } = yield* reading
    yield* show({ store, runId: id, json })
  })
).pipe(Command.withDescription("Show what became of a run, and the calls it waits with."))

const exported = Command.make(
  "export",
  {
    id,
    file: Argument.String("file").pipe(Argument.withDescription("A new file; default: the output"), Argument.optional),
    store
  },
  Effect.fnUntraced(function* ({ file, id, store }) {
    const { exported } = yield* reading
    yield* exported({ store, runId: id, file: Option.getOrUndefined(file) })
  })
).pipe(Command.withDescription("Write every record of a run and of the runs below it, one JSON line each."))

const revision = Flag.Int("revision").pipe(
  Flag.withMetavar("<number>"),
  Flag.withDescription("The revision of the run you looked at: nothing is done when it went on since"),
  Flag.optional
)

const deciding = {
  id,
  calls: Argument.String("call").pipe(
    Argument.withDescription("The calls meant, as 'kernai runs show' names them; default: all that wait"),
    Argument.atLeast(0)
  ),
  store,
  revision,
  by: Flag.String("by").pipe(
    Flag.withMetavar("<name>"),
    Flag.withDescription("Who decided; it is kept with the answer"),
    Flag.withDefault("the command line")
  ),
  reason: Flag.String("reason").pipe(
    Flag.withMetavar("<text>"),
    Flag.withDescription("Why; the model is told when a call is denied"),
    Flag.optional
  )
}

const approve = Command.make(
  "approve",
  {
    ...deciding,
    input: Flag.String("input").pipe(
      Flag.withMetavar("<json>"),
      Flag.withDescription("Run one call with these arguments instead of its own"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ id, input, reason, revision, ...rest }) {
    const { answer } = yield* acting
    yield* answer({
      ...rest,
      runId: id,
      revision: Option.getOrUndefined(revision),
      approved: true,
      reason: Option.getOrUndefined(reason),
      input: Option.getOrUndefined(input)
    })
  })
).pipe(
  Command.withDescription(
    "Allow calls that a run waits with. Nothing runs here: a worker goes on with it, or 'kernai runs resume'."
  ),
  Command.withShortDescription("Allow calls that a run waits with")
)

const deny = Command.make(
  "deny",
  deciding,
  Effect.fnUntraced(function* ({ id, reason, revision, ...rest }) {
    const { answer } = yield* acting
    yield* answer({
      ...rest,
      runId: id,
      revision: Option.getOrUndefined(revision),
      approved: false,
      reason: Option.getOrUndefined(reason)
    })
  })
).pipe(
  Command.withDescription(
    "Refuse calls that a run waits with. The model is told when the run goes on: with a worker, or 'kernai runs resume'."
  ),
  Command.withShortDescription("Refuse calls that a run waits with")
)

const resume = Command.make(
  "resume",
  {
    id,
    store,
    ...Shared.speaker,
    ...Shared.agent,
    inFlight: Flag.Literals("in-flight", ["retry", "fail"]).pipe(
      Flag.withDescription(
        "What becomes of calls of which nobody knows whether they ran; default: those that read or are idempotent are made again, for any other the run fails"
      ),
      Flag.optional
    ),
    rewind: Flag.Boolean("rewind").pipe(
      Flag.withDescription("Prepare the turn again instead of asking with the stored prompt"),
      Flag.withDefault(false)
    ),
    revision,
    ...Shared.form
  },
  Effect.fnUntraced(function* (input) {
    const form = yield* Shared.formOf(input)
    const actor = yield* Shared.actorOf(input, yield* Shared.speakerOf(input))
    const { resume } = yield* acting
    yield* resume({
      store: input.store,
      runId: input.id,
      actor,
      inFlight: Option.getOrUndefined(input.inFlight),
      rewind: input.rewind,
      revision: Option.getOrUndefined(input.revision),
      form,
      colors: Option.getOrUndefined(input.color)
    })
  })
).pipe(
  Command.withDescription(
    `Go on with a run where it stands, to its end. ${Shared.givenAgain}; once it has begun, it keeps its dialect. ${help}`
  ),
  Command.withShortDescription("Go on with a run where it stands, to its end")
)

const fork = Command.make(
  "fork",
  {
    id,
    revision: revision.pipe(Flag.withDescription("The last revision both have in common; default: the run's last one")),
    store
  },
  Effect.fnUntraced(function* ({ id, revision, store }) {
    const { fork } = yield* acting
    yield* fork({ store, runId: id, revision: Option.getOrUndefined(revision) })
  })
).pipe(
  Command.withDescription(
    "Make a new run from a commit of another, and print its id. 'kernai runs resume' goes on with it; a worker leaves it alone."
  ),
  Command.withShortDescription("Make a new run from a commit of another")
)

const replay = Command.make(
  "replay",
  {
    id,
    store,
    ...Shared.agent,
    yes: Shared.agent.yes.pipe(
      Flag.withDescription("As the run was given it: calls that may change something were not asked about")
    )
  },
  Effect.fnUntraced(function* ({ id, store, ...input }) {
    const actor = yield* Shared.actorOf(input, { nobody: "" })
    const { replay } = yield* acting
    yield* replay({ store, runId: id, actor })
  })
).pipe(
  Command.withDescription(
    `Run a stored run again without a model and without entering a skill, and tell where it parts from what was recorded. ${Shared.givenAgain}, and --yes.`
  ),
  Command.withShortDescription("Run a stored run again without a model, and tell where it differs")
)

/** The command. */
export const runs = Command.make("runs").pipe(
  Command.withDescription("Runs that are kept: list and show them, answer their questions, and go on with them."),
  Command.withShortDescription("Look after stored runs"),
  Command.withSubcommands([list, show, resume, approve, deny, fork, replay, exported])
)

/** The flags of `kernai runs`. */

import { Argument, Flag } from "effect/cli"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { labelsIn } from "../../Caller.ts"
import { statusWords } from "../../RunStore.ts"
import { localCaller } from "../localCaller.ts"
import * as Shared from "./flags.ts"

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
const ofCaller = {
  tenant: Shared.optionalText("tenant", "name", "Only runs of this tenant"),
  labels: Flag.String("label").pipe(
    Flag.withMetavar("<name=text>"),
    Flag.withDescription("Only runs with this label; repeatable, and then with all of them"),
    Flag.atLeast(0),
    Flag.filterMap(
      (texts) => Option.fromUndefinedOr(labelsIn(texts)),
      (texts) => `labels of the form name=text, each name once, not ${texts.join(" and ")}`
    )
  )
}
const status = Flag.Literals("status", statusWords).pipe(Flag.withMetavar("<status>"))

export const listFlags = {
  store,
  status: status.pipe(Flag.withDescription("Only runs with this status"), Shared.optional),
  agentName,
  model: Shared.optionalText("model", "name", "Only runs that ended with a reply of this model"),
  tag: Shared.optionalText("tag", "tag", "Only runs with this tag, which people give in the studio"),
  ...ofCaller,
  search: Shared.optionalText("search", "words", "Only runs with all these words in question, answer or results"),
  limit: Shared.positive("limit", "number", "How many (20)").pipe(Flag.withDefault(20)),
  after: Shared.optionalText("after", "id", "The next page: runs older than this one"),
  json
}

/** The values of the flags of `list`. */
export type ListFlags = Shared.Values<typeof listFlags>

export const showFlags = { id, store, json }

/** The values of the flags of `show`. */
export type ShowFlags = Shared.Values<typeof showFlags>

export const exportFlags = {
  id,
  file: Shared.optionalArgument("file", "A new file, or - for the output (default)"),
  html: Shared.toggle("html", "Write one page that plays the run without a network"),
  store
}

/** The values of the flags of `export`. */
export type ExportFlags = Shared.Values<typeof exportFlags>

export const importFlags = {
  file: Argument.String("file").pipe(
    Argument.withDescription("A file that 'kernai runs export' wrote, or - for the input")
  ),
  store,
  create: Shared.create,
  json
}

/** The values of the flags of `import`. */
export type ImportFlags = Shared.Values<typeof importFlags>

export const backupFlags = {
  to: Argument.String("to").pipe(Argument.withDescription("A new store: sqlite:FILE, file:FOLDER or pg:URL")),
  store,
  json
}

/** The values of the flags of `backup`. */
export type BackupFlags = Shared.Values<typeof backupFlags>

export const restoreFlags = {
  from: Argument.String("from").pipe(Argument.withDescription("The store that 'kernai runs backup' wrote")),
  store,
  json
}

/** The values of the flags of `restore`. */
export type RestoreFlags = Shared.Values<typeof restoreFlags>

export const denyFlags = {
  id,
  calls: Argument.String("call").pipe(
    Argument.withDescription("The calls, as 'kernai runs show' prints them; may be shortened (default: all that wait)"),
    Argument.atLeast(0)
  ),
  store,
  revision,
  by: Shared.text("by", "name", "Who decided; stored with the answer").pipe(Flag.withDefault(localCaller.id)),
  role: Flag.String("role").pipe(
    Flag.withMetavar("<role>"),
    Flag.withDescription("A role of the one who decided, for questions that ask for it; repeatable"),
    Flag.atLeast(0)
  ),
  reason: Shared.optionalText("reason", "text", "Why; the model reads the reason of a denial"),
  json
}

/** The flags of `approve`: those of `deny`, and what changes or completes one call. */
export const approveFlags = {
  ...denyFlags,
  input: Shared.optionalText("input", "json", "Run one call with this input instead of its own"),
  values: Shared.optionalText("values", "json", "The values of the form that one call asks for"),
  output: Shared.optionalText("output", "json", "The result of one call that somebody else runs")
}

/** The values of the flags of `approve` and `deny`. */
export type AnswerFlags = Shared.Values<typeof denyFlags> & Partial<Shared.Values<typeof approveFlags>>

export const cancelFlags = {
  id,
  store,
  by: Shared.text("by", "name", "Who cancels; stored with the run").pipe(Flag.withDefault(localCaller.id)),
  reason: Shared.optionalText("reason", "text", "Why; stored with the run"),
  json
}

/** The values of the flags of `cancel`. */
export type CancelFlags = Shared.Values<typeof cancelFlags>

export const retryFlags = { id, store, revision, json }

/** The values of the flags of `retry`. */
export type RetryFlags = Shared.Values<typeof retryFlags>

export const followFlags = {
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

export const resumeFlags = {
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
  as: Shared.optionalText("as", "reason", "Continue the run of another agent with that of --agent, and say why"),
  rewind: Shared.toggle("rewind", "Prepare the turn again instead of sending the stored prompt"),
  revision,
  ...Shared.form
}

/** The values of the flags of `resume`. */
export type ResumeFlags = Shared.Values<typeof resumeFlags>

export const forkFlags = {
  id,
  revision: revision.pipe(Flag.withDescription("The last revision that both share (default: the latest)")),
  store,
  json
}

/** The values of the flags of `fork`. */
export type ForkFlags = Shared.Values<typeof forkFlags>

export const undoFlags = {
  id,
  workspace: Shared.optionalText(
    "workspace",
    "folder",
    "The folder in which the run worked (default: that of its chat)"
  ),
  turn: Shared.optional(Shared.positive("turn", "number", "The first turn to take back (default: 1)")),
  force: Shared.toggle("force", "Overwrite files that were changed since by somebody else"),
  store,
  json
}

/** The values of the flags of `undo`. */
export type UndoFlags = Shared.Values<typeof undoFlags>

export const checkFlags = { store, ...Shared.agent, json }

/** The values of the flags of `check`. */
export type CheckFlags = Shared.Values<typeof checkFlags>

export const replayFlags = { id, store, ...Shared.agent, json }

/** The values of the flags of `replay`. */
export type ReplayFlags = Shared.Values<typeof replayFlags>

export const pruneFlags = {
  olderThan: Flag.String("older-than").pipe(
    Flag.withSchema(Schema.DurationFromString),
    Flag.withMetavar("<duration>"),
    Flag.withDescription("Time since the last change of a run: '30 days', '12 hours'")
  ),
  status: status.pipe(Flag.withDescription("Delete runs with this status; repeatable (completed)"), Flag.atLeast(0)),
  agentName,
  ...ofCaller,
  store,
  json
}

/** The values of the flags of `prune`. */
export type PruneFlags = Shared.Values<typeof pruneFlags>

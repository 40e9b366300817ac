/**
 * Lists stored runs page by page, and deletes old ones.
 */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Messages from "../../Message.ts"
import type { RunState } from "../../RunState.ts"
import * as Runs from "../../RunStore.ts"
import type { ListFlags, PruneFlags } from "../commands/runsFlags.ts"
import { asFailure } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import { type Column, table } from "../table.ts"
import * as Text from "../terminalText.ts"
import { find, shortened } from "./findRun.ts"

/** A head with facts from the journal, which are null for an unreadable run. */
interface Listed extends Runs.RunHead {
  readonly question: string | null
  readonly costUsd: number | null
  /** The number of runs that it started. */
  readonly tasks: number | null
}

/** Lists the root runs, newest first. */
export const list = Effect.fnUntraced(function* (options: ListFlags) {
  const { agentName, labels, limit, model, search, status, tag, tenant } = options
  const screen = yield* Screen
  const page = Effect.gen(function* () {
    const runs = yield* Runs.RunStore
    const last = options.after === undefined ? undefined : yield* runs.head(yield* find(options.after))
    const heads = yield* runs.list({
      roots: true,
      limit: limit + 1,
      search,
      agent: agentName,
      model,
      tag,
      tenant,
      labels,
      status: status === undefined ? undefined : [status],
      after: last === undefined ? undefined : Option.getOrUndefined(last)
    })
    const listed = yield* Effect.forEach(heads.slice(0, limit), listedOf)
    if (options.json) return screen.out(listed.map((run) => `${Text.json(run)}\n`).join(""))
    if (listed.length === 0) return screen.progress("no runs found\n")
    screen.out(yield* tableOf(listed, screen.answers))
    const end = heads.length > limit ? listed.at(-1) : undefined
    if (end !== undefined) screen.progress(`more: ${yield* Store.command(words(options, end.runId), options.store)}\n`)
  })
  yield* Store.onRuns(options.store, page)
})

const listedOf = Effect.fnUntraced(function* (head: Runs.RunHead): Effect.fn.Return<Listed, never, Runs.RunStore> {
  const runs = yield* Runs.RunStore
  const state = yield* Effect.orElseSucceed(runs.load(head.runId), () => Option.none<RunState>())
  return Option.match(state, {
    onNone: () => ({ ...head, question: null, costUsd: null, tasks: null }),
    onSome: (state) => ({ ...head, question: questionOf(state), costUsd: state.costUsd ?? null, tasks: tasksOf(state) })
  })
})

/** Returns the first message of a run. */
export const questionOf = ({ input }: RunState): string => {
  const question = input.at(-1)
  return question === undefined ? "" : Messages.text(question)
}

/** Counts the ended runs that a run started. */
const tasksOf = ({ currentTurn, turns }: RunState): number =>
  [...turns, ...(currentTurn === undefined ? [] : [currentTurn])]
    .flatMap(({ completed }) => completed)
    .filter(({ kind }) => kind === "task" || kind === "agent").length

const tableOf = Effect.fnUntraced(function* (listed: ReadonlyArray<Listed>, look: Text.Look) {
  const now = yield* Clock.currentTimeMillis
  const ids = listed.map(({ runId }) => runId)
  const columns: ReadonlyArray<Column<Listed>> = [
    { title: "run", cell: ({ runId }) => shortened(runId, ids) },
    { title: "status", cell: ({ status }) => wordOf(status), tone: ({ status }) => tones[status.type] },
    { title: "age", cell: ({ updatedAt }) => ageOf(now - updatedAt), rank: 1 },
    { title: "agent", cell: ({ agent }) => Text.excerpt(agent, 20), rank: 2 },
    { title: "turns", cell: ({ turns }) => String(turns), rank: 4 },
    { title: "tasks", cell: ({ tasks }) => (tasks === null || tasks === 0 ? "" : String(tasks)), rank: 5 },
    { title: "cost", cell: ({ costUsd }) => Text.cost(costUsd ?? undefined).join(""), rank: 3 },
    { title: "question", cell: ({ question }) => question ?? "it cannot be read", least: 24 }
  ]
  return table(columns, listed, look)
})

/** Returns the status of a run in words. */
const wordOf = (status: Runs.RunStatus): string => {
  if (Runs.isPoisoned(status)) return "poisoned"
  if (status.type === "queued" && status.reason !== undefined) return "unplaced"
  return status.type === "no_answer" ? "no answer" : status.type
}

const tones: { readonly [type in Runs.RunStatus["type"]]: Text.Tone } = {
  queued: "quiet",
  running: "label",
  waiting: "warning",
  interrupted: "warning",
  cancelled: "quiet",
  completed: "good",
  no_answer: "warning",
  failed: "bad"
}

/** Formats an age: `40 s`, `5 min`, `3 h`, `12 d`. */
export const ageOf = (milliseconds: number): string => {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`
}

/** Returns the command for the next page. */
const words = (
  { agentName, labels, limit, model, search, status, tag, tenant }: ListFlags,
  after: string
): ReadonlyArray<string> => [
  "runs",
  "list",
  "--after",
  after,
  "--limit",
  String(limit),
  ...(agentName === undefined ? [] : ["--agent-name", agentName]),
  ...(model === undefined ? [] : ["--model", model]),
  ...(tag === undefined ? [] : ["--tag", tag]),
  ...(tenant === undefined ? [] : ["--tenant", tenant]),
  ...Object.entries(labels).flatMap(([name, text]) => ["--label", `${name}=${text}`]),
  ...(search === undefined ? [] : ["--search", search]),
  ...(status === undefined ? [] : ["--status", status])
]

/** Deletes runs that have ended, with their tasks and media. */
export const prune = Effect.fnUntraced(function* (flags: PruneFlags) {
  const { agentName, json, labels, olderThan, status, tenant, ...options } = flags
  const screen = yield* Screen
  const store = yield* Store.openExisting(options.store)
  const updatedBefore = (yield* Clock.currentTimeMillis) - Duration.toMillis(olderThan)
  const deleted = yield* Runs.prune({
    updatedBefore,
    agent: agentName,
    tenant,
    labels,
    ...(status.length === 0 ? {} : { status })
  }).pipe(Effect.mapError(asFailure), Effect.provide(Layer.merge(store.runs, store.media)))
  screen.out(json ? `${Text.json({ deleted })}\n` : `deleted ${Text.count(deleted.length, "run")}, tasks included\n`)
})

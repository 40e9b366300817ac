/**
 * Lists, pauses and resumes the schedules of a store, and starts their runs.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { RunStore } from "../../RunStore.ts"
import * as Schedules from "../../Schedules.ts"
import type { ListFlags, OneFlags, PauseFlags } from "../commands/schedulesFlags.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import { type Column, table } from "../table.ts"
import * as Text from "../terminalText.ts"
import { ageOf } from "./listRuns.ts"

/** Prints schedules, each as a line or as JSON. */
export const list = Effect.fnUntraced(function* ({ agentName, json, store, tenant }: ListFlags) {
  const screen = yield* Screen
  const now = yield* Clock.currentTimeMillis
  const all = yield* Store.onRuns(store, Schedules.list({ agent: agentName, tenant }))
  if (json) return screen.out(all.map((schedule) => `${Text.json(schedule)}\n`).join(""))
  if (all.length === 0) return screen.progress("no schedules found\n")
  const columns: ReadonlyArray<Column<Schedules.Schedule>> = [
    { title: "schedule", cell: ({ name }) => name, least: 12 },
    { title: "agent", cell: ({ agent }) => Text.excerpt(agent, 20), rank: 2 },
    {
      title: "times",
      cell: ({ cron, timeZone }) => (timeZone === undefined ? cron : `${cron} ${timeZone}`),
      least: 10
    },
    { title: "next", cell: nextOf, least: 10 },
    { title: "last run", cell: ({ last }) => last?.status.type ?? "", rank: 3 },
    { title: "age", cell: ({ last }) => (last === undefined ? "" : ageOf(now - last.createdAt)), rank: 4 }
  ]
  screen.out(table(columns, all, screen.answers))
})

const nextOf = ({ next, paused }: Schedules.Schedule): string => {
  if (paused !== undefined) return ["paused", paused.by, paused.reason].filter(Boolean).join(": ")
  return next === undefined ? "never" : new Date(next).toISOString().replace(/:00\.000Z$/, "Z")
}

/** Lets a schedule start no run. */
export const pause = ({ by, reason, ...flags }: PauseFlags) =>
  changed(flags, "paused", Schedules.pause(flags.name, { by, reason }))

/** Lets a paused schedule start runs again. */
export const resume = (flags: OneFlags) => changed(flags, "resumed", Schedules.resume(flags.name))

/** Removes a schedule from the list. */
export const remove = (flags: OneFlags) => changed(flags, "removed", Schedules.remove(flags.name))

/** Starts a run of a schedule, and prints its id. */
export const run = Effect.fnUntraced(function* ({ json, name, store }: OneFlags) {
  const screen = yield* Screen
  const runId = yield* Store.onRuns(store, Schedules.run(name))
  screen.out(json ? `${Text.json({ name, runId })}\n` : `${Text.flat(runId)}\n`)
})

const changed = Effect.fnUntraced(function* <E extends { readonly _tag: string; readonly message: string }>(
  { json, name, store }: OneFlags,
  done: string,
  change: Effect.Effect<void, E, RunStore>
) {
  const screen = yield* Screen
  yield* Store.onRuns(store, change)
  screen.out(json ? `${Text.json({ name, done })}\n` : `${done}  ${Text.flat(name)}\n`)
})

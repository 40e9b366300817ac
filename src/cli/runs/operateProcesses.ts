/**
 * Lists the processes that run the runs of a store, and drains them.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Processes from "../../Processes.ts"
import type { DrainFlags, ListFlags, TargetFlags } from "../commands/processesFlags.ts"
import { failed, usage } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import { type Column, table } from "../table.ts"
import * as Text from "../terminalText.ts"
import { ageOf } from "./listRuns.ts"

/** Prints processes, each as a line or as JSON, and the drains that hold for all of them. */
export const list = ({ agentName: agent, json, store, version }: ListFlags) =>
  Store.onRuns(
    store,
    Effect.gen(function* () {
      yield* printed(yield* Processes.list({ agent, version }), json)
      const { progress } = yield* Screen
      for (const drain of yield* Processes.drains)
        if (drain.process === undefined) progress(`drained: ${targetText(drain)}${whyText(drain)}\n`)
    })
  )

/** Drains processes, waits until they have handed their runs on, and prints them. */
export const drain = Effect.fnUntraced(function* ({ by, reason, ...flags }: DrainFlags) {
  const target = yield* targetOf(flags)
  yield* Store.onRuns(
    flags.store,
    Effect.gen(function* () {
      yield* Processes.drain(target, { by, reason })
      const processes = yield* handedOn(target)
      yield* printed(processes, flags.json)
      const late = processes.filter(({ state }) => state === "draining" || state === "silent").length
      if (late > 0) return yield* failed(`${Text.count(late, "process", "processes")} not drained yet`)
    })
  )
})

/** Ends a drain, and prints its processes. */
export const undrain = Effect.fnUntraced(function* (flags: TargetFlags) {
  const target = yield* targetOf(flags)
  yield* Store.onRuns(
    flags.store,
    Effect.andThen(
      Processes.undrain(target),
      Effect.flatMap(Processes.list(target), (all) => printed(all, flags.json))
    )
  )
})

const targetOf = Effect.fnUntraced(function* ({ agentName: agent, all, name: process, version }: TargetFlags) {
  const isOfAll = [agent, process, version].every((given) => given === undefined)
  if (isOfAll !== all) return yield* usage("give the name of a process, --agent-name, --agent-version, or --all alone")
  return { agent, process, version }
})

/** Waits until the processes of a target have handed their runs on, for a while. Returns these processes. */
const handedOn = Effect.fnUntraced(function* (target: Processes.Target) {
  const until = (yield* Clock.currentTimeMillis) + longest
  for (;;) {
    const processes = yield* Processes.list(target)
    const isDone = processes.every(({ state }) => state !== "draining")
    if (isDone || (yield* Clock.currentTimeMillis) > until) return processes
    yield* Effect.sleep("200 millis")
  }
})

/** Milliseconds to wait for steps that are under way. A worker interrupts those that take longer than its `drain`. */
const longest = 20_000

const printed = Effect.fnUntraced(function* (processes: ReadonlyArray<Processes.Process>, json: boolean) {
  const screen = yield* Screen
  const now = yield* Clock.currentTimeMillis
  if (json) return screen.out(processes.map((process) => `${Text.json(process)}\n`).join(""))
  if (processes.length === 0) return screen.progress("no process runs the runs of this store\n")
  const columns: ReadonlyArray<Column<Processes.Process>> = [
    { title: "process", cell: ({ name }) => name, least: 12 },
    { title: "state", cell: ({ state }) => state },
    { title: "runs", cell: ({ agents }) => String(agents.reduce((sum, { runs }) => sum + runs, 0)) },
    { title: "age", cell: ({ since }) => ageOf(now - since), rank: 2 },
    { title: "agents", cell: ({ agents }) => agents.map(agentText).join(", "), least: 16, rank: 1 }
  ]
  screen.out(table(columns, processes, screen.answers))
})

const agentText = ({ drain, name, version }: Processes.Process["agents"][number]): string =>
  `${name}${version === undefined ? "" : ` ${version}`}${drain === undefined ? "" : ` (drained${whyText(drain)})`}`

const targetText = ({ agent, version }: Processes.Target): string =>
  agent === undefined && version === undefined
    ? "all agents"
    : Text.flat([agent ?? "all agents", version].filter((word) => word !== undefined).join(" "))

const whyText = ({ by, reason }: Processes.Drain): string =>
  by === undefined && reason === undefined
    ? ""
    : `: ${[by, reason]
        .filter((word) => word !== undefined)
        .map(Text.flat)
        .join(": ")}`

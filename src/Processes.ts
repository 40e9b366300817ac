/**
 * The processes that run stored runs: lists them with what they have, and drains them.
 *
 * A process is reached through its store. It reads its drains when it starts, and again when the store announces one, so
 * an idle process sends no query.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Stored from "./internal/kernel/storedProcesses.ts"
import { ProcessNotFound, StoreError } from "./KernelError.ts"
import { randomId } from "./kit/randomId.ts"
import type { CancelOptions } from "./RunOptions.ts"
import { type Notes, RunStore } from "./RunStore.ts"

export { ProcessNotFound }
export type { Drain, Target } from "./internal/kernel/storedProcesses.ts"

/**
 * All states of a process.
 *
 * @category getters
 * @since 0.1.0
 */
export const states = ["running", "draining", "drained", "silent"] as const

/**
 * A process that runs stored runs: a worker, or a runner of a cluster. Instants are milliseconds since the epoch.
 *
 * - `running`: it takes runs, of one of its agents at least.
 * - `draining`: it finishes the steps of the runs that it has of a drained agent.
 * - `drained`: it takes no run.
 * - `silent`: it does not answer. It died, or its store or its machine is very busy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Process {
  readonly name: string
  readonly state: (typeof states)[number]
  readonly since: number
  /** Its agents, each with the number of runs that it has of them, and with its drain. */
  readonly agents: ReadonlyArray<{
    readonly name: string
    readonly version?: string
    readonly runs: number
    readonly drain?: Stored.Drain
  }>
  /** The 20 oldest of its runs. */
  readonly holds: ReadonlyArray<{ readonly runId: string; readonly agent: string; readonly since: number }>
}

/**
 * Returns the processes that run stored runs, by name: those with an agent of the target. Each is asked what it has; one
 * that does not answer in three seconds is `silent` (in eight, where the store does not announce changes). An answer counts
 * for ten seconds. Processes that were silent for an hour are removed.
 *
 * @category running
 * @since 0.1.0
 */
export const list = Effect.fn("Processes.list")(function* (
  target: Stored.Target = {}
): Effect.fn.Return<ReadonlyArray<Process>, StoreError, RunStore> {
  const { notes } = yield* RunStore
  const all = notes === undefined ? [] : yield* listed(notes)
  return all.filter(({ agents, name }) => agents.some((agent) => Stored.isIn(target, name, agent)))
})

/**
 * Returns the drains that stand.
 *
 * @category running
 * @since 0.1.0
 */
export const drains: Effect.Effect<ReadonlyArray<Stored.Drain>, StoreError, RunStore> = Effect.flatMap(
  RunStore,
  ({ notes }) => (notes === undefined ? Effect.succeed([]) : Effect.map(Stored.read(notes), ({ drains }) => drains))
).pipe(Effect.withSpan("Processes.drains"))

/**
 * Drains processes: they start no further run of the target, let those that they have finish their step, and hand them
 * on, as after SIGTERM. They stay, idle, until `undrain`. A drain of a process ends with that process, any other one also
 * holds for processes that start later. Fails with `ProcessNotFound` for a process that is not listed.
 *
 * @example
 * yield* Processes.drain({ agent: "clerk", version: "7" }, { reason: "rollback" })
 *
 * @category running
 * @since 0.1.0
 */
export const drain = Effect.fn("Processes.drain")(function* (
  { agent, process, version }: Stored.Target,
  { by, reason }: Pick<CancelOptions, "by" | "reason"> = {}
): Effect.fn.Return<void, ProcessNotFound | StoreError, RunStore> {
  const notes = yield* drainable
  if (process !== undefined) {
    const { entries } = yield* Stored.read(notes)
    if (!entries.some(({ name }) => name === process)) return yield* new ProcessNotFound({ name: process })
  }
  const at = yield* Clock.currentTimeMillis
  const given = Object.entries({ process, agent, version, by, reason }).filter(([, value]) => value !== undefined)
  const target = { agent, process, version }
  yield* Stored.setDrain(notes, target, { at, ...Object.fromEntries(given) })
  yield* callRoll(notes)
})

/**
 * Ends the drain of exactly this target: its processes take runs again.
 *
 * @category running
 * @since 0.1.0
 */
export const undrain = Effect.fn("Processes.undrain")(function* (
  target: Stored.Target
): Effect.fn.Return<void, StoreError, RunStore> {
  const notes = yield* drainable
  yield* Stored.setDrain(notes, target, undefined)
  yield* callRoll(notes)
})

/** The notes of a store through which processes are drained. */
const drainable: Effect.Effect<Notes, StoreError, RunStore> = RunStore.use(({ notes }) =>
  notes === undefined
    ? Effect.fail(
        new StoreError({ operation: "drain", reason: "unavailable", detail: "this store has no notes for processes" })
      )
    : Effect.succeed(notes)
)

/** Asks all processes to describe themselves. Returns the id of this roll call. */
const callRoll = Effect.fnUntraced(function* (notes: Notes) {
  const id = randomId(yield* Random.Random)
  yield* Stored.setCall(notes, { id, at: yield* Clock.currentTimeMillis })
  return id
})

const listed = Effect.fnUntraced(function* (notes: Notes): Effect.fn.Return<ReadonlyArray<Process>, StoreError> {
  const { call } = yield* Stored.read(notes)
  const begun = yield* Clock.currentTimeMillis
  const isRecent = call !== undefined && call.at <= begun && begun - call.at < 10_000
  const id = isRecent ? call.id : yield* callRoll(notes)
  const until = (isRecent ? call.at : begun) + (notes.changes === undefined ? 8_000 : 3_000)
  for (;;) {
    const { call, drains, entries } = yield* Stored.read(notes)
    const now = yield* Clock.currentTimeMillis
    // Another operator may have called the roll in the meantime.
    const hasAnswered = (entry: Stored.Entry) => entry.call === id || entry.call === call?.id
    const silent = entries.filter((entry) => !hasAnswered(entry))
    if (silent.length > 0 && now < until) {
      yield* Effect.sleep("100 millis")
      continue
    }
    const gone = new Set(silent.filter(({ silentSince = now }) => now - silentSince > 3_600_000))
    for (const { name } of gone) yield* Stored.remove(notes, name)
    for (const entry of silent)
      if (entry.silentSince === undefined) yield* Stored.setEntry(notes, { ...entry, silentSince: now })
    return entries
      .filter((entry) => !gone.has(entry))
      .map((entry) => processOf(entry, drains, !hasAnswered(entry)))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  }
})

const processOf = (
  { holds, name, since, ...entry }: Stored.Entry,
  drains: ReadonlyArray<Stored.Drain>,
  isSilent: boolean
): Process => {
  const agents = entry.agents.map((agent) => {
    const drain = Stored.drainOf(drains, name, agent)
    return drain === undefined ? agent : { ...agent, drain }
  })
  const drained = agents.filter((agent) => "drain" in agent)
  const isDraining = drained.some(({ runs }) => runs > 0)
  const rest = drained.length === agents.length ? "drained" : "running"
  return { name, state: isSilent ? "silent" : isDraining ? "draining" : rest, since, agents, holds }
}

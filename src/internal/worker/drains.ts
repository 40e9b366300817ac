/**
 * Registers a process with its store, and follows the drains of operators. A process takes no run of a drained agent, and
 * gives up those that it has.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Agent } from "../../Agent.ts"
import { inTime, logIgnored } from "../../kit/foreignCode.ts"
import type { Notes } from "../../RunStore.ts"
import * as Stored from "../kernel/storedProcesses.ts"
import type { Holder } from "./lease.ts"
import * as RestingPolls from "./restingPolls.ts"

/** The drained agents of a process, and the runs that it has. */
export interface Drains {
  /** Returns whether an agent is drained. Synchronous. */
  readonly has: (agent: string) => boolean
  /** Waits until an agent is drained. */
  readonly of: (agent: string) => Effect.Effect<void>
  /** Waits until a drain was ended since the last wait. */
  readonly lifted: Effect.Effect<void>
  /** Counts a run as held while an effect runs. */
  readonly holding: <A, E, R>(run: Held, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Registers the process until the scope closes. Succeeds once its drains are known. */
  readonly register: Effect.Effect<void, never, Scope.Scope>
}

type Held = Pick<Stored.Entry["holds"][number], "runId" | "agent">

type Drainable = Pick<Agent<unknown>, "name" | "version">

/** Creates the drains of a process with these agents. Without `register`, nothing is drained. */
export const make = (holder: Holder, agents: Iterable<Drainable>): Drains => {
  const all = [...agents]
  const drained = new Map(all.map(({ name }) => [name, Latch.makeUnsafe()]))
  const held = new Map<string, Stored.Entry["holds"][number]>()
  const lifted = Latch.makeUnsafe()
  /** Opened when the last run of a drained agent was given up. */
  const emptied = Latch.makeUnsafe()
  const has: Drains["has"] = (agent) => drained.get(agent)?.isOpen() === true
  const apply = (drains: ReadonlyArray<Stored.Drain>) => {
    for (const agent of all) {
      const latch = drained.get(agent.name)
      if (Stored.drainOf(drains, holder.workerId, agent) !== undefined) latch?.openUnsafe()
      else if (latch?.isOpen() === true) {
        latch.closeUnsafe()
        lifted.openUnsafe()
      }
    }
  }
  const leave = ({ agent, runId }: Held) => {
    held.delete(runId)
    if (has(agent) && runsOf(held, agent) === 0) emptied.openUnsafe()
  }
  return {
    has,
    of: (agent) => drained.get(agent)?.await ?? Effect.never,
    lifted: taken(lifted),
    holding: (run, effect) =>
      Effect.acquireUseRelease(
        Effect.map(Clock.currentTimeMillis, (since) => void held.set(run.runId, { ...run, since })),
        () => effect,
        () => Effect.sync(() => leave(run))
      ),
    register: Effect.suspend(() => {
      const { notes } = holder.store
      return notes === undefined ? Effect.void : register(holder, notes, { agents: all, held, apply, emptied })
    })
  }
}

/** The state of a process that its entry describes. */
interface Described {
  readonly agents: ReadonlyArray<Drainable>
  readonly held: ReadonlyMap<string, Stored.Entry["holds"][number]>
  readonly apply: (drains: ReadonlyArray<Stored.Drain>) => void
  readonly emptied: Latch.Latch
}

const register = Effect.fnUntraced(function* (
  { timed, workerId: name }: Holder,
  notes: Notes,
  { agents, apply, emptied, held }: Described
): Effect.fn.Return<void, never, Scope.Scope> {
  const since = yield* Clock.currentTimeMillis
  let call: string | undefined
  const write = Effect.suspend(() => {
    const entry: Stored.Entry = {
      name,
      since,
      agents: agents.map(({ name, version }) => ({
        name,
        ...(version === undefined ? {} : { version }),
        runs: runsOf(held, name)
      })),
      holds: [...held.values()].slice(0, mostHolds),
      ...(call === undefined ? {} : { call })
    }
    return timed(Stored.setEntry(notes, entry))
  }).pipe(Semaphore.makeUnsafe(1).withPermits(1))
  let isListed = false
  const read = Effect.gen(function* () {
    const stored = yield* timed(Stored.read(notes))
    apply(stored.drains)
    if (isListed && stored.call?.id === call) return
    call = stored.call?.id
    yield* write
    isListed = true
  })
  const looked = Latch.makeUnsafe()
  const poll = Effect.gen(function* () {
    const exit = yield* Effect.exit(read)
    yield* looked.open
    if (Exit.isSuccess(exit)) return true
    yield* notRead(exit.cause)
    yield* Effect.sleep("5 seconds")
    return false
  })
  const often = notes.changes === undefined ? "5 seconds" : "1 second"
  const report = Effect.andThen(taken(emptied), Effect.catchCause(write, notRead))
  // A process that crashed under this name has left its entry and its drains.
  yield* leave(notes, name)
  yield* Effect.addFinalizer(() => leave(notes, name))
  yield* Effect.forkScoped(RestingPolls.repeat({ poll, often }, notes.changes), { startImmediately: true })
  yield* Effect.forkScoped(Effect.forever(report))
  yield* looked.await
})

/** Returns the number of held runs of an agent. */
const runsOf = (held: Described["held"], name: string): number => {
  let runs = 0
  for (const { agent } of held.values()) if (agent === name) runs++
  return runs
}

/** Waits until a latch is open, and closes it. */
const taken = (latch: Latch.Latch): Effect.Effect<void> =>
  Effect.andThen(
    latch.await,
    Effect.sync(() => void latch.closeUnsafe())
  )

const notRead = logIgnored("a process could not find out whether it is drained")

/** Removes what the store has of a process with this name. Its drains end with it. */
const leave = (notes: Notes, name: string): Effect.Effect<void> =>
  inTime(Effect.ignore(Stored.remove(notes, name)), "1 second", () => Effect.void)

/** How many of its runs a process names. */
const mostHolds = 20

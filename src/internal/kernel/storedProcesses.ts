/**
 * The notes of a store about the processes that run its runs: an entry of each, which it writes itself, and the orders of
 * operators, which are drains and the last roll call.
 *
 * An entry answers the roll call that its process read last. So an idle process writes nothing until somebody asks, and
 * no clocks are compared to find out that a process is gone.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { StoreError } from "../../KernelError.ts"
import type { Note, Notes } from "../../RunStore.ts"
import type { TypeOf } from "../../kit/schemas.ts"
import { lazily } from "../../kit/schemas.ts"

const entry = lazily(() =>
  Schema.Struct({
    name: Schema.String,
    since: Schema.Finite,
    /** Its agents, each with the number of runs that it has of them. */
    agents: Schema.Array(
      Schema.Struct({ name: Schema.String, version: Schema.optionalKey(Schema.String), runs: Schema.Int })
    ),
    /** The oldest of its runs. */
    holds: Schema.Array(Schema.Struct({ runId: Schema.String, agent: Schema.String, since: Schema.Finite })),
    /** The last roll call that it read. */
    call: Schema.optionalKey(Schema.String),
    /** When a list noted that it does not answer, until it writes this again. */
    silentSince: Schema.optionalKey(Schema.Finite)
  })
)

/** A process as it described itself. Instants are milliseconds since the epoch. */
export interface Entry extends TypeOf<typeof entry> {}

const drain = lazily(() =>
  Schema.Struct({
    process: Schema.optionalKey(Schema.String),
    agent: Schema.optionalKey(Schema.String),
    version: Schema.optionalKey(Schema.String),
    /** Milliseconds since the epoch. */
    at: Schema.Finite,
    by: Schema.optionalKey(Schema.String),
    reason: Schema.optionalKey(Schema.String)
  })
)

/**
 * An order to drain a target, with its time, its author and its reason.
 *
 * @category models
 * @since 0.1.0
 */
export interface Drain extends TypeOf<typeof drain> {}

const call = lazily(() => Schema.Struct({ id: Schema.String, at: Schema.Finite }))

/** A request to all processes to describe themselves. */
export interface RollCall extends TypeOf<typeof call> {}

/** The orders of operators, and the entries of processes. */
export interface Stored {
  readonly drains: ReadonlyArray<Drain>
  readonly call: RollCall | undefined
  readonly entries: ReadonlyArray<Entry>
}

const prefix = "process/"
const entries = `${prefix}entry/`
const drains = `${prefix}drain/`
const callKey = `${prefix}call`

/** Reads all of it with one query. Notes that cannot be read are left out. */
export const read = (notes: Notes): Effect.Effect<Stored, StoreError> =>
  Effect.map(notes.list(prefix), (all) => {
    const of = <A, E>(prefix: string, decode: () => (text: unknown) => Result.Result<A, E>): ReadonlyArray<A> =>
      all.flatMap(({ key, text }: Note) =>
        key.startsWith(prefix) ? Result.match(decode()(text), { onFailure: () => [], onSuccess: (note) => [note] }) : []
      )
    return { drains: of(drains, readDrain), call: of(callKey, readCall)[0], entries: of(entries, readEntry) }
  })

const readEntry = lazily(() => Schema.decodeUnknownResult(Schema.fromJsonString(entry())))

const readDrain = lazily(() => Schema.decodeUnknownResult(Schema.fromJsonString(drain())))

const readCall = lazily(() => Schema.decodeUnknownResult(Schema.fromJsonString(call())))

/** Stores the entry of a process. */
export const setEntry = (notes: Notes, entry: Entry): Effect.Effect<void, StoreError> =>
  set(notes, entries, [entry.name], entry)

/** Removes the entry of a process that ended, and the drains of this process. */
export const remove = Effect.fnUntraced(function* (notes: Notes, name: string): Effect.fn.Return<void, StoreError> {
  yield* set(notes, entries, [name], undefined)
  const { drains } = yield* read(notes)
  for (const drain of drains) if (drain.process === name) yield* setDrain(notes, drain, undefined)
})

/** Stores a drain, or ends one. */
export const setDrain = (
  notes: Notes,
  { agent, process, version }: Target,
  drain: Drain | undefined
): Effect.Effect<void, StoreError> => set(notes, drains, [process, agent, version], drain)

/** Asks all processes to describe themselves. */
export const setCall = (notes: Notes, call: RollCall): Effect.Effect<void, StoreError> =>
  notes.set(callKey, JSON.stringify(call))

const set = (notes: Notes, prefix: string, names: ReadonlyArray<string | undefined>, value: object | undefined) =>
  notes.set(prefix + JSON.stringify(names), value === undefined ? undefined : JSON.stringify(value))

/**
 * Selects agents in processes: those of one process, an agent, or a version of it, in all processes that run now or start
 * later. Without any of these, all.
 *
 * @category models
 * @since 0.1.0
 */
export interface Target {
  readonly process?: string | undefined
  readonly agent?: string | undefined
  readonly version?: string | undefined
}

interface Versioned {
  readonly name: string
  readonly version?: string | undefined
}

/** Returns whether a target has an agent in a process. */
export const isIn = (target: Target, process: string, agent: Versioned): boolean =>
  process === (target.process ?? process) &&
  agent.name === (target.agent ?? agent.name) &&
  (target.version === undefined || agent.version === target.version)

/** Returns the drain of an agent in a process, if there is one. */
export const drainOf = (drains: ReadonlyArray<Drain>, process: string, agent: Versioned): Drain | undefined =>
  drains.find((drain) => isIn(drain, process, agent))

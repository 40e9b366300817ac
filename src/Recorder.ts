/**
 * Writes the events of runs to a log, in order.
 *
 * A sink receives every event. It can neither slow a run down nor make it fail. Entries are a projection of the events:
 * stream parts are left out, of a conversation only new messages are written, and media are written by reference.
 *
 * @since 0.1.0
 */

import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Entries from "./internal/record/recorderEntry.ts"
import type { Json } from "./kit/json.ts"
import { isJsonObject, plain } from "./kit/json.ts"
import * as LogLine from "./internal/record/logLine.ts"
import type { Message } from "./Message.ts"
import type { RunEvent } from "./RunEvent.ts"

// ---------------------------------------------------------------- models

/**
 * Receives events. `record` is called inside the run and must return at once.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sink {
  readonly record: (event: RunEvent) => void
}

/**
 * An entry of the log. The keys of `data` are those of the block protocol.
 *
 * @category models
 * @since 0.1.0
 */
export interface Entry {
  readonly runId: string
  /** The turn, counted from 0. */
  readonly step: number
  /** Levels of runs above this one; the root run has depth 0. */
  readonly depth: number
  readonly taskId: string | null
  readonly event: string
  readonly data: Json
  /** ISO 8601 with milliseconds and offset. */
  readonly timestamp: string
}

/**
 * Selects which events become entries, and how.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Also write the phases of runs and the start and end of blocks. Default: only their results. */
  readonly phases?: boolean | undefined
  /** Removes secrets: applied to every text in `data`, and to keys that came from models, skills or users. */
  readonly redact?: ((text: string) => string) | undefined
}

/**
 * The tokens of some model calls. Null if no provider reported any.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tokens {
  readonly prompt_tokens: number | null
  readonly completion_tokens: number | null
  readonly total_tokens: number | null
}

/**
 * Queries over a list of entries.
 *
 * @category models
 * @since 0.1.0
 */
export interface Queries {
  /** Returns a copy of the entries. */
  readonly entries: () => ReadonlyArray<Entry>
  /** Returns only the entries of the block protocol, in order. */
  readonly classic: () => ReadonlyArray<Entry>
  readonly forEvent: (event: string) => ReadonlyArray<Entry>
  /** Returns the entries of a step, of all runs or of one task. Null selects the root run. */
  readonly forStep: (step: number, taskId?: string | null) => ReadonlyArray<Entry>
  /** Returns all steps, ascending. */
  readonly steps: () => ReadonlyArray<number>
  readonly tokens: () => Tokens
  readonly tokensPerStep: () => ReadonlyMap<number, Tokens>
  /** Returns tokens by task id. The root run is `root`; a task with that id is `task root`. */
  readonly tokensPerTask: () => ReadonlyMap<string, Tokens>
  readonly toJson: () => string
}

/**
 * A sink that keeps its entries in this process.
 *
 * @category models
 * @since 0.1.0
 */
export interface Memory extends Sink, Queries {
  readonly clear: () => void
}

// ---------------------------------------------------------------- services

/**
 * The recorder of a run. None by default.
 *
 * @category references
 * @since 0.1.0
 */
export const Recorder: Context.Reference<Sink | undefined> = Context.Reference<Sink | undefined>("kernai/Recorder", {
  defaultValue: () => undefined
})

/**
 * The entries recorded in this process, provided by `layerMemory`.
 *
 * @category services
 * @since 0.1.0
 */
export class Recording extends Context.Service<Recording, Memory>()("kernai/Recorder/Recording") {}

// ---------------------------------------------------------------- constructors

/**
 * Returns the entry of an event, or undefined for events that are only emitted live.
 *
 * It does not know earlier events, so `messages_sent` holds the whole conversation. `entries` writes only new messages.
 *
 * @category constructors
 * @since 0.1.0
 */
export const project = (event: RunEvent, options?: Options): Entry | undefined => entryOf(event, 0, options)

/**
 * Creates a sink from a function that takes entries.
 *
 * @category constructors
 * @since 0.1.0
 */
export const entries = (write: (entry: Entry) => void, options?: Options): Sink => {
  const conversations = new Map<string, ReadonlyArray<Message>>()
  const base = (runId: string, messages: ReadonlyArray<Message>): number => {
    const before = conversations.get(runId)
    conversations.delete(runId)
    conversations.set(runId, messages)
    // An interrupted run never reports its end, so the conversation that was idle longest is dropped.
    if (conversations.size > maxConversations) {
      const [oldest] = conversations.keys()
      if (oldest !== undefined) conversations.delete(oldest)
    }
    return before === undefined ? 0 : Entries.shared(before, messages)
  }
  return guard({
    record: (event) => {
      if (event.type === "run_completed" || event.type === "run_failed") conversations.delete(event.runId)
      const entry = entryOf(event, event.type === "messages_sent" ? base(event.runId, event.messages) : 0, options)
      if (entry !== undefined) write(entry)
    }
  })
}

/**
 * Creates a recorder that keeps its entries and answers queries.
 *
 * @category constructors
 * @since 0.1.0
 */
export const memory = (options?: Options): Memory => {
  const list: Array<Entry> = []
  return {
    ...entries((entry) => list.push(entry), options),
    ...queries(list),
    clear: () => {
      list.length = 0
    }
  }
}

/**
 * Queries a list of entries, such as the lines of a file.
 *
 * @category constructors
 * @since 0.1.0
 */
export const queries = (list: ReadonlyArray<Entry>): Queries => ({
  entries: () => list.slice(),
  classic: () => list.filter((entry) => Entries.classic.has(entry.event)),
  forEvent: (event) => list.filter((entry) => entry.event === event),
  forStep: (step, taskId) =>
    list.filter((entry) => entry.step === step && (taskId === undefined || entry.taskId === taskId)),
  steps: () => [...new Set(list.map((entry) => entry.step))].toSorted((a, b) => a - b),
  tokens: () => sum(list.filter(isResponse)),
  tokensPerStep: () => sumBy(list, (entry) => entry.step),
  tokensPerTask: () => sumBy(list, taskKey),
  toJson: () => JSON.stringify(list, undefined, 2)
})

/**
 * Sends each event to several sinks, in order. The first one answers queries.
 *
 * @category constructors
 * @since 0.1.0
 */
export const composite = <S extends Sink>(first: S, ...rest: ReadonlyArray<Sink>): S =>
  recording(first, toAll(first, ...rest))

/**
 * Creates a sink of log lines: `[Kernai] LEVEL key=value …`.
 *
 * Lines hold names, counts, durations and errors, but no prompts, inputs or results. Values are quoted where necessary,
 * so that none can forge a field or a line.
 *
 * @category constructors
 * @since 0.1.0
 */
export const lines = (write: (line: string) => void, options?: { readonly debug?: boolean | undefined }): Sink => {
  const debug = options?.debug ?? false
  return guard({
    record: (event) => {
      const line = LogLine.line(event, debug)
      if (line !== undefined) write(line)
    }
  })
}

/**
 * Formats milliseconds of the Clock as ISO 8601 with milliseconds and offset.
 *
 * @category rendering
 * @since 0.1.0
 */
export const timestamp = (at: number): string => new Date(at).toISOString().replace("Z", "+00:00")

/**
 * Wraps a sink so that it cannot fail: errors it throws are dropped.
 *
 * @category constructors
 * @since 0.1.0
 */
export const guard = (sink: Sink): Sink => ({
  record: (event) => {
    try {
      sink.record(event)
    } catch {
      // The sink misses this event; the run continues.
    }
  }
})

// ---------------------------------------------------------------- layers

/**
 * Records to a sink, in addition to the existing recorders. Nest the layers of several recorders with `Layer.provide`:
 * in a list, only the last one receives events.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (sink: Sink): Layer.Layer<never> => Layer.effect(Recorder, beside(sink))

/**
 * Records in this process, in addition to the existing recorders. Query the entries with `Recording`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory = (options?: Options): Layer.Layer<Recording> =>
  Layer.effectContext(
    Effect.suspend(() => {
      const sink = memory(options)
      return Effect.map(beside(sink), (both) => Context.make(Recording, sink).pipe(Context.add(Recorder, both)))
    })
  )

/**
 * Writes log lines to the Console, in addition to the existing recorders.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerLogger = (options?: { readonly debug?: boolean | undefined }): Layer.Layer<never> =>
  Layer.effect(
    Recorder,
    Effect.flatMap(Console.Console, (console) => beside(lines((line) => console.log(line), options)))
  )

// ---------------------------------------------------------------- helpers

const maxConversations = 1_024

const beside = (sink: Sink): Effect.Effect<Sink> =>
  Effect.map(Recorder, (outer) => (outer === undefined ? guard(sink) : { record: toAll(sink, outer) }))

const toAll = (...all: ReadonlyArray<Sink>): Sink["record"] => {
  const sinks = all.map(guard)
  return (event) => sinks.forEach((sink) => sink.record(event))
}

/**
 * Copies a sink with another `record`. Instances of a class keep their prototype; plain objects are spread.
 */
const recording = <S extends Sink>(sink: S, record: Sink["record"]): S => {
  const isPlain = Object.getPrototypeOf(sink) === Object.prototype
  return new Proxy<S>(isPlain ? { ...sink, record } : Object.create(sink), {
    get: (_, key): unknown => {
      if (key === "record") return record
      const value: unknown = Reflect.get(sink, key)
      return typeof value === "function" ? value.bind(sink) : value
    }
  })
}

const entryOf = (event: RunEvent, base: number, options: Options | undefined): Entry | undefined => {
  const data = Entries.dataOf(event, base) ?? (options?.phases === true ? Entries.phaseOf(event) : undefined)
  if (data === undefined) return undefined
  return {
    runId: event.runId,
    step: event.step,
    depth: event.depth,
    taskId: event.taskId ?? null,
    event: event.type,
    data: options?.redact === undefined ? data : plain(data, options.redact, false),
    timestamp: timestamp(event.at)
  }
}

const taskKey = ({ taskId }: Entry): string => (taskId === "root" ? "task root" : (taskId ?? "root"))

const isResponse = (entry: Entry): boolean => entry.event === "llm_response"

const sumBy = <K>(list: ReadonlyArray<Entry>, key: (entry: Entry) => K): ReadonlyMap<K, Tokens> =>
  new Map(Array.from(Map.groupBy(list.filter(isResponse), key), ([key, entries]) => [key, sum(entries)]))

const sum = (responses: ReadonlyArray<Entry>): Tokens => ({
  prompt_tokens: known(responses, "prompt_tokens"),
  completion_tokens: known(responses, "completion_tokens"),
  total_tokens: known(responses, "total_tokens")
})

/** The sum of the known values, or null if there is none. */
const known = (responses: ReadonlyArray<Entry>, field: keyof Tokens): number | null => {
  let total: number | null = null
  for (const { data } of responses) {
    const value = isJsonObject(data) ? data[field] : undefined
    if (typeof value === "number") total = (total ?? 0) + value
  }
  return total
}

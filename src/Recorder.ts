/**
 * Everything a run told, written down in order (BP-98 to BP-102).
 *
 * A sink is given every event and may do with it what it likes; it can neither
 * slow a run down nor make it fail (BP-97, R-23). Entries are a projection of
 * events: stream pieces are left out, conversations are written as what is new,
 * media by reference (W-29).
 *
 * @since 0.1.0
 */

import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Entries from "./internal/record/recorderEntry.ts"
import type { Json } from "./internal/base/json.ts"
import { isJsonObject, plain } from "./internal/base/json.ts"
import * as LogLine from "./internal/record/logLine.ts"
import type { Message } from "./Message.ts"
import type { RunEvent } from "./RunEvent.ts"

// ---------------------------------------------------------------- models

/**
 * Whoever wants to be told. `record` is called within the run and must return at once.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sink {
  readonly record: (event: RunEvent) => void
}

/**
 * One thing written down. The names in `data` are those of the block protocol (BP-99).
 *
 * @category models
 * @since 0.1.0
 */
export interface Entry {
  readonly runId: string
  readonly step: number
  readonly depth: number
  readonly taskId: string | null
  readonly event: string
  readonly data: Json
  /** ISO 8601 with milliseconds and offset. */
  readonly timestamp: string
}

/**
 * What of the events becomes entries.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Also the phases of runs and the bounds of blocks; without it, only what they amount to. */
  readonly phases?: boolean | undefined
  /** Applied to every text in `data`, and to the keys of what others said, to take out what must not be kept (W-31). */
  readonly redact?: ((text: string) => string) | undefined
}

/**
 * Tokens of some model calls; null where no provider reported any (BP-102).
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
 * Questions to a list of entries (BP-100).
 *
 * @category models
 * @since 0.1.0
 */
export interface Queries {
  /** A copy. */
  readonly entries: () => ReadonlyArray<Entry>
  /** Only the entries of the block protocol itself, in order. */
  readonly classic: () => ReadonlyArray<Entry>
  readonly forEvent: (event: string) => ReadonlyArray<Entry>
  /** Of all runs, or of one task; null is the root run. */
  readonly forStep: (step: number, taskId?: string | null) => ReadonlyArray<Entry>
  /** All steps there are, ascending. */
  readonly steps: () => ReadonlyArray<number>
  readonly tokens: () => Tokens
  readonly tokensPerStep: () => ReadonlyMap<number, Tokens>
  /** By task id. The root run counts as `root`, and a task of that very name as `task root`. */
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
 * The recorder of a run. Nobody is told by default.
 *
 * @category references
 * @since 0.1.0
 */
export const Recorder: Context.Reference<Sink | undefined> = Context.Reference<Sink | undefined>("kernai/Recorder", {
  defaultValue: () => undefined
})

/**
 * What was recorded in this process: the other side of `layerMemory`.
 *
 * @category services
 * @since 0.1.0
 */
export class Recording extends Context.Service<Recording, Memory>()("kernai/Recorder/Recording") {}

// ---------------------------------------------------------------- constructors

/**
 * The entry of one event, or undefined for what is told live only.
 *
 * It knows nothing of events before: `messages_sent` holds the whole
 * conversation. `entries` writes what is new.
 *
 * @category constructors
 * @since 0.1.0
 */
export const project = (event: RunEvent, options?: Options): Entry | undefined => entryOf(event, 0, options)

/**
 * Makes a sink of a function that takes entries.
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
    // A run that was interrupted never says that it ended: the one that was quiet for longest is forgotten.
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
 * Makes a recorder that keeps its entries and answers questions about them.
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
 * Asks entries from anywhere: the lines of a file, for instance.
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
 * Tells several sinks, in order. Questions are answered by the first (BP-101).
 *
 * @category constructors
 * @since 0.1.0
 */
export const composite = <S extends Sink>(first: S, ...rest: ReadonlyArray<Sink>): S =>
  recording(first, toAll(first, ...rest))

/**
 * Makes a sink of log lines: `[Kernai] LEVEL key=value …` (BP-156).
 *
 * Lines hold names, counts, durations and what went wrong, no prompts, parameters
 * or results. Values are quoted where they have to be, so that none can forge a field or a
 * line (W-30, S-19).
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
 * Milliseconds of the Clock as an entry tells them: ISO 8601 with milliseconds and offset (BP-98).
 *
 * @category combinators
 * @since 0.1.0
 */
export const timestamp = (at: number): string => new Date(at).toISOString().replace("Z", "+00:00")

/**
 * The same sink, unable to fail: what it throws is dropped.
 *
 * @category combinators
 * @since 0.1.0
 */
export const guard = (sink: Sink): Sink => ({
  record: (event) => {
    try {
      sink.record(event)
    } catch {
      // Whoever listens badly hears less; the run is not his to break.
    }
  }
})

// ---------------------------------------------------------------- layers

/**
 * Records to a sink, next to what is recorded already: give each recorder a `Layer.provide` of its own, for of two in
 * one list only the last would hear anything.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (sink: Sink): Layer.Layer<never> => Layer.effect(Recorder, beside(sink))

/**
 * Records in this process, next to what is recorded already. `Recording` answers.
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
 * Writes log lines to the Console, next to what is recorded already.
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
 * A sink that answers as this one does, and records otherwise. An object of a class keeps what is its own, and a plain
 * one has keys that can be spread.
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

/** The sum of the known values; null, which is not zero, when there is none. */
const known = (responses: ReadonlyArray<Entry>, field: keyof Tokens): number | null => {
  let total: number | null = null
  for (const { data } of responses) {
    const value = isJsonObject(data) ? data[field] : undefined
    if (typeof value === "number") total = (total ?? 0) + value
  }
  return total
}

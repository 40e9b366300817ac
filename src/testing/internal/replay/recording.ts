/**
 * A recorded tree of runs that is replayed from the start: its next records, and the first difference.
 *
 * A recording is replayed life by life: one life holds the records of one process, from its first to its last. Events
 * of a run follow the order of its journal. Only concurrent calls could end in another order; they are made to end in
 * the recorded order, so that a hook that stops a run finds the other calls in the same state as before.
 */

import { type Call, type CallResult, resultOf } from "../../../Call.ts"
import { ReplayDiverged } from "../../../KernelError.ts"
import { isRest } from "../../../RunEvent.ts"
import type { PhaseEvent } from "../../../RunEvent.ts"
import { isCopied, type Question, type RunRecord } from "../../../RunState.ts"
import { redact } from "../../../kit/redact.ts"
import { childRunId } from "../../../Call.ts"

/** The position of a run in its recording. */
interface Track {
  readonly records: ReadonlyArray<RunRecord>
  readonly played: Array<boolean>
  /** The first record that was not replayed. */
  first: number
}

/** The records of a tree of runs, and the position of each run in the replay. */
export class Tape {
  readonly root: string
  /** The records a fork copied from its origin. They are not replayed. */
  readonly copied: ReadonlyArray<RunRecord>
  /** The processes that wrote the rest of the journal, in order. */
  readonly lives: ReadonlyArray<string>
  /** The first difference. */
  fault: ReplayDiverged | undefined
  life = ""
  readonly #tracks = new Map<string, Track>()
  /** Records of each life that were not replayed. */
  readonly #left = new Map<string, number>()
  /** The end of each call in each life, and of each task by its run if its call did not end because the run stopped. */
  readonly #ends = new Map<string, RunRecord>()
  /** The position of each record in the order of time. */
  readonly #places: ReadonlyMap<RunRecord, number>

  constructor(root: string, records: ReadonlyArray<RunRecord>) {
    this.root = root
    const runs = Map.groupBy(records, (record) => record.runId)
    for (const [runId, own] of runs) {
      const inOrder = own.toSorted((a, b) => a.revision - b.revision)
      const first = copiesOf(inOrder)
      this.#tracks.set(runId, { records: inOrder, played: inOrder.map((_, index) => index < first), first })
      for (const record of inOrder.slice(first)) {
        const { events, workerId } = record
        this.#left.set(workerId, (this.#left.get(workerId) ?? 0) + 1)
        for (const event of events) {
          const key = endOfRun(workerId, runId)
          // A call whose result was lost comes last; otherwise it would have had its result at once.
          if (isRest(event) && event.type !== "run_completed" && !this.#ends.has(key)) this.#ends.set(key, record)
          if (event.type === "turn_started") {
            for (const { callId } of event.ended ?? []) this.#ends.set(endOfRun(workerId, callId), record)
          }
          if (event.type !== "tool_call_completed") continue
          this.#ends.set(endOfCall(workerId, runId, event.step, event.callId), record)
          for (const kind of ["task", "agent"] as const) {
            const child = childRunId(`${runId}:t${event.step + 1}`, { callId: event.callId, kind })
            if (child !== undefined && runs.has(child)) this.#ends.set(endOfRun(workerId, child), record)
          }
        }
      }
    }
    this.#places = placesOf([...this.#tracks.values()].map((track) => track.records))
    const own = this.recordsOf(root)
    this.copied = own.slice(0, copiesOf(own))
    this.lives = [...new Set(own.slice(this.copied.length).map((record) => record.workerId))]
  }

  recordsOf(runId: string): ReadonlyArray<RunRecord> {
    return this.#tracks.get(runId)?.records ?? []
  }

  /** The records of the current life, of all runs, grouped by run. */
  ofLife(): ReadonlyArray<RunRecord> {
    return [...this.#tracks.values()].flatMap(({ first, records }) =>
      records.slice(first).filter((record) => record.workerId === this.life)
    )
  }

  /**
   * Returns answers that tasks received between two lives while their root received none, because it was running or had
   * been cut off. From here on they are replayed.
   */
  asides(): ReadonlyArray<RunRecord> {
    const lives = new Set(this.lives)
    const asides: Array<RunRecord> = []
    for (const track of this.#tracks.values()) {
      for (let record = track.records[track.first]; record !== undefined; record = track.records[track.first]) {
        if (lives.has(record.workerId)) break
        track.played[track.first++] = true
        asides.push(record)
      }
    }
    return asides
  }

  /** Returns true if the whole current life was replayed. */
  isOver(): boolean {
    return (this.#left.get(this.life) ?? 0) === 0
  }

  /** Returns the next record of a run that is not a launch, or undefined if its life ended there. */
  next(runId: string): RunRecord | undefined {
    const record = this.#find(runId, ({ op }) => op !== "launch")
    return record?.workerId === this.life ? record : undefined
  }

  /** Returns the start of the next turn of a run in this life. Earlier records may still wait to be stored. */
  nextTurn(runId: string): Extract<PhaseEvent, { readonly type: "turn_started" }> | undefined {
    const [event] = this.#find(runId, (record) => record.workerId === this.life && isTurn(record))?.events ?? []
    return event?.type === "turn_started" ? event : undefined
  }

  /** Returns the result of a call, if it ended in this life. */
  resultOf(runId: string, step: number, call: Call): CallResult | undefined {
    const [event] = this.#ends.get(endOfCall(this.life, runId, step, call.callId))?.events ?? []
    if (event?.type !== "tool_call_completed") return undefined
    const { result, spent } = event
    return resultOf(call, spent === undefined ? result : { ...result, spent })
  }

  /** Returns the question that a call asked in this life, instead of a result. */
  questionOf(runId: string, { callId }: Call): Question | undefined {
    const { delta } = this.#find(runId, ({ delta, op }) => op === "pause" && delta.returned !== undefined) ?? {}
    return delta?.returned?.includes(callId) ? delta.asked?.find((question) => question.callId === callId) : undefined
  }

  /** Returns the position of a call's end in the order of time, or undefined if nothing before it is left. */
  placeOfCall(runId: string, step: number, callId: string): number | undefined {
    return this.#placeOf(this.#ends.get(endOfCall(this.life, runId, step, callId)))
  }

  /** The position of a task's end, which is that of its call if there is one. The root run waits for none. */
  placeOfRun(runId: string): number | undefined {
    if (runId === this.root) return undefined
    const end = this.#ends.get(endOfRun(this.life, runId))
    // The recording has no end for this call, so everything that may be launched first comes first.
    return end?.runId === runId ? this.#places.get(end) : this.#placeOf(end)
  }

  #placeOf(end: RunRecord | undefined): number | undefined {
    if (end === undefined) return this.#places.size
    const track = this.#tracks.get(end.runId)
    return track?.records[track.first] === end ? undefined : this.#places.get(end)
  }

  /** Returns the time of a run's next record. */
  timeOf(runId: string): number | undefined {
    return this.next(runId)?.createdAt
  }

  /** Marks a record as replayed if it was recorded before any step of its life. */
  skip(record: RunRecord): void {
    this.#play(record.runId, (other) => other === record)
  }

  /**
   * Compares a new record with the recording. Returns true if it was recorded, false if no record was left, and notes a
   * difference.
   */
  plays(record: RunRecord): boolean {
    const { events, op, runId } = record
    if (op === "launch") return this.#play(runId, (other) => isLaunchOf(other, record))
    const [event] = events
    const next = this.next(runId)
    if (next === undefined) return false
    const meant = event?.type === "tool_call_completed" ? (this.#find(runId, isCompletionOf(event)) ?? next) : next
    for (let index = 0; index < Math.max(events.length, meant.events.length); index++) {
      const [was, is] = [meant.events[index], events[index]]
      if (was !== undefined && is !== undefined && same(essence(was), essence(is))) continue
      this.diverge(runId, was, is ?? "nothing more")
      return false
    }
    return this.#play(runId, (other) => other === meant)
  }

  /** Notes the first difference between the recording and the replay. */
  diverge(runId: string, recorded: PhaseEvent | undefined, now: PhaseEvent | string): void {
    if (this.fault !== undefined) return
    const events = this.recordsOf(runId).flatMap((record) => record.events)
    const was = recorded ?? this.next(runId)?.events[0]
    const [expected, actual] = compared(was, now)
    this.fault = new ReplayDiverged({
      runId,
      index: was === undefined ? events.length : events.indexOf(was),
      expected,
      actual
    })
  }

  /** The first record of a run that was not replayed and fits. */
  #find(runId: string, is: (record: RunRecord) => boolean): RunRecord | undefined {
    const track = this.#tracks.get(runId)
    if (track === undefined) return undefined
    for (let index = track.first; index < track.records.length; index++) {
      const record = track.records[index]
      if (record !== undefined && track.played[index] === false && is(record)) return record
    }
    return undefined
  }

  #play(runId: string, is: (record: RunRecord) => boolean): boolean {
    const track = this.#tracks.get(runId)
    const record = this.#find(runId, (record) => record.workerId === this.life && is(record))
    if (track === undefined || record === undefined) return false
    track.played[track.records.indexOf(record, track.first)] = true
    while (track.played[track.first] === true) track.first++
    this.#left.set(this.life, (this.#left.get(this.life) ?? 0) - 1)
    return true
  }
}

/** The number of records of a run that are copies. */
const copiesOf = (records: ReadonlyArray<RunRecord>): number => {
  const event = records[0]?.events[0]
  const forkedFrom = event?.type === "run_started" ? event.forkedFrom : undefined
  return records.filter(({ revision }) => isCopied({ forkedFrom }, revision)).length
}

/** A vendor may reuse the id of a call in a later turn. */
const endOfCall = (life: string, runId: string, step: number, callId: string): string =>
  JSON.stringify([life, runId, step, callId])

const endOfRun = (life: string, runId: string): string => JSON.stringify([life, runId])

/**
 * All records in the order of time. Within a run that is the order of its journal, whatever its clock did. At the same
 * instant, tasks come before the runs that wait for them. Tasks that ended at the same instant share a position, since
 * their order is unknown.
 */
const placesOf = (runs: ReadonlyArray<ReadonlyArray<RunRecord>>): ReadonlyMap<RunRecord, number> => {
  const placed = runs.flatMap((records) => {
    let at = -Infinity
    const depth = records[0]?.events[0]?.depth ?? 0
    return records.map((record) => ({ record, depth, at: (at = Math.max(at, record.createdAt)) }))
  })
  placed.sort((a, b) => a.at - b.at || b.depth - a.depth)
  let instant = 0
  return new Map(
    placed.map(({ at, depth, record }, place) => {
      const before = placed[place - 1]
      if (before?.at !== at || before.depth !== depth) instant = place
      return [record, record.events.some(isRest) ? instant : place]
    })
  )
}

/** Concurrent calls may end in another order. */
const isCompletionOf =
  (event: Extract<PhaseEvent, { type: "tool_call_completed" }>) =>
  ({ events: [other] }: RunRecord): boolean =>
    other?.type === "tool_call_completed" && other.callId === event.callId

const isTurn = ({ events: [event] }: RunRecord): boolean => event?.type === "turn_started"

const isLaunchOf = (recorded: RunRecord, record: RunRecord): boolean =>
  recorded.op === "launch" && same(recorded.delta.launched, record.delta.launched)

// ---------------------------------------------------------------- comparing

/**
 * Returns the part of an event that must be equal: all except times, revisions, prices, versions, the cost of building a
 * prompt, and facts that an older recording lacks.
 */
const essence = (event: PhaseEvent): object => {
  const { at: _at, revision: _revision, ...rest } = event
  switch (rest.type) {
    case "run_started": {
      const { version: _version, ...started } = rest
      return started
    }
    case "turn_prepared": {
      const { changed: _changed, offered: _offered, spent: _spent, ...prepared } = rest
      return prepared
    }
    case "tool_calls_started": {
      const { decisions: _decisions, ...calls } = rest
      return calls
    }
    case "run_completed": {
      const { reason, ...completed } = rest
      return rest.source === "max_turns" ? completed : { ...completed, reason }
    }
    case "model_completed": {
      const { costUsd: _cost, latencyMs: _latency, vendorReason: _word, ...said } = rest
      return said
    }
    case "tool_call_completed": {
      const { result, spent, ...call } = rest
      const { durationMs: _duration, error, ...gave } = result
      return { ...call, result: { ...gave, error: error && clean(error) }, usage: spent?.usage, turns: spent?.turns }
    }
    case "run_failed":
      return { ...rest, error: { ...clean(rest.error), fields: undefined } }
    default:
      return rest
  }
}

/** Redacts again, because a recording may be older than the current rules for secrets. */
const clean = <A extends { readonly message: string }>(error: A): A => ({ ...error, message: redact(error.message) })

const compared = (was: PhaseEvent | undefined, now: PhaseEvent | string): readonly [string, string] => {
  if (was === undefined) return ["the end of the recording", typeof now === "string" ? now : nameOf(now)]
  if (typeof now === "string" || now.type !== was.type) {
    return [nameOf(was), typeof now === "string" ? now : nameOf(now)]
  }
  const [path, before, after] = difference(essence(was), essence(now), "") ?? ["", was, now]
  return [`${nameOf(was)}, ${path}: ${short(before)}`, `${nameOf(now)}, ${path}: ${short(after)}`]
}

const nameOf = (event: PhaseEvent): string => `${event.type} of step ${event.step}`

/** Returns the first difference between two values, as a JSON pointer. */
const difference = (a: unknown, b: unknown, path: string): readonly [string, unknown, unknown] | undefined => {
  if (same(a, b)) return undefined
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return [path, a, b]
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const found = difference(Reflect.get(a, key), Reflect.get(b, key), `${path}/${key}`)
    if (found !== undefined) return found
  }
  return [path, a, b]
}

const short = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "nothing"
  return text.length > 160 ? `${text.slice(0, 157)}…` : text
}

/** Deep equality of JSON. An absent field equals an undefined one. */
const same = (a: unknown, b: unknown): boolean => {
  if (Object.is(a, b)) return true
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const keys = new Set([...Object.keys(a), ...Object.keys(b)])
  for (const key of keys) if (!same(Reflect.get(a, key), Reflect.get(b, key))) return false
  return true
}

/**
 * Checks the rules of a crash matrix, from facts and journals alone.
 */

import type { CallOutcome, CallResult } from "../../Call.ts"
import type { PhaseEvent } from "../../RunEvent.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import { fold } from "../../RunState.ts"
import { field } from "../../kit/foreignCode.ts"
import { type Fact, keyOf } from "./watchedProcess.ts"

/** The rules of a matrix. */
export type Rule =
  | "nothing_lost"
  | "writes_once"
  | "same_input"
  | "results_kept"
  | "fenced"
  | "append_repeatable"
  | "same_journal"
  | "nothing_left"

/** A broken rule, with a description. */
export interface Finding {
  readonly rule: Rule
  readonly detail: string
}

/** One run of a tree, as stored in the end. */
export interface Kept {
  readonly runId: string
  readonly journal: ReadonlyArray<RunRecord>
  readonly state: RunState | undefined
}

/** Checks facts one by one, in order. */
export class Judge {
  readonly findings: Array<Finding> = []
  /** The worker that stored the last record of each run. */
  readonly #owners = new Map<string, string>()
  readonly #revisions = new Map<string, number>()
  readonly #launched = new Set<string>()
  /** The processes that may ask a model, by run. */
  readonly #asking = new Set<string>()
  /** The phase of each run. */
  readonly #phases = new Map<string, PhaseEvent["type"]>()
  readonly #answered = new Set<string>()
  readonly #starts = new Map<string, { count: number; readonly input: string }>()
  readonly #allowed = new Map<string, number>()
  /** The turn of each run: a call is identified by its run, its turn and its id. */
  readonly #steps = new Map<string, number>()

  see(fact: Fact): void {
    switch (fact.type) {
      case "stored":
        return this.#stored(fact.machine, fact.record)
      case "repeated":
        if (fact.tag === undefined) return
        return this.#find(
          "append_repeatable",
          `${nameOf(fact.record)}, stored already, gave ${fact.tag} when it was sent again`
        )
      case "asked":
        if (!this.#owners.has(fact.runId)) {
          this.#find("nothing_lost", `a model was asked for ${fact.runId} before it was stored`)
        } else if (!this.#asking.has(`${fact.machine} ${fact.runId}`)) {
          this.#find("fenced", `${fact.machine} asked a model for ${fact.runId} without a stored model_started`)
        }
        return
      case "started":
        return this.#started(fact)
      case "allowed":
        this.#allowed.set(keyOf(fact), (this.#allowed.get(keyOf(fact)) ?? 0) + 1)
        return
      case "refused":
      case "ended":
      case "cut":
    }
  }

  #stored(machine: string, record: RunRecord): void {
    const last = this.#revisions.get(record.runId) ?? 0
    // Acknowledged late: the record was stored before another process took over the run.
    if (record.revision <= last) return
    this.#revisions.set(record.runId, record.revision)
    const owner = this.#owners.get(record.runId)
    const takesOver = record.op === "resume" || record.events.some((event) => event.type === "run_failed")
    if (owner !== undefined && owner !== machine && !takesOver) {
      this.#find("fenced", `${machine} stored ${nameOf(record)}, though ${owner} had the run`)
    }
    this.#owners.set(record.runId, machine)
    for (const event of record.events) this.#steps.set(record.runId, event.step)
    const step = this.#steps.get(record.runId) ?? 0
    const key = (callId: string) => keyOf({ runId: record.runId, step, callId })
    for (const id of record.delta.launched ?? []) {
      if (this.#answered.has(key(id))) this.#find("results_kept", `${id} has a stored response and was launched again`)
      this.#launched.add(`${machine} ${key(id)}`)
    }
    for (const id of answersOf(record)) this.#answered.add(key(id))
    this.#mayAsk(`${machine} ${record.runId}`, record)
  }

  /**
   * A model may be asked from `model_started` to the next record of the run, more than once by middleware, and while a
   * turn is prepared, to summarize earlier messages.
   */
  #mayAsk(asks: string, { delta, events, runId }: RunRecord): void {
    for (const { type } of events) if (type !== "paused" && type !== "run_failed") this.#phases.set(runId, type)
    if (delta.rewind === true) this.#phases.set(runId, "turn_started")
    const isAsking = events.some(({ type }) => type === "model_started" || type === "model_restarted")
    if (isAsking || this.#phases.get(runId) === "turn_started") this.#asking.add(asks)
    else this.#asking.delete(asks)
  }

  #started(fact: Extract<Fact, { type: "started" }>): void {
    const { callId, effects, input, machine } = fact
    const key = keyOf(fact)
    const before = this.#starts.get(key)
    // An acknowledged launch counts as a start without an earlier result: a call on its way cannot be distinguished
    // from one that has arrived, even if another process has repeated it by then because it is idempotent.
    const own = this.#launched.delete(`${machine} ${key}`)
    // A read call may be entered while its launch is being stored. If the launch is lost, the model is asked again; if
    // another process has the run, the launch is refused and the result dropped.
    const isEarlyRead = effects === "read" && !own
    const hasRun = this.#owners.get(fact.runId) === machine
    if (this.#answered.has(key) && !own && (hasRun || !isEarlyRead)) {
      this.#find("results_kept", `${callId} has a stored response and was entered again`)
    }
    if (isEarlyRead) return
    if (!own) this.#find("writes_once", `${callId} was entered by ${machine} without a stored launch`)
    if (before === undefined) {
      this.#starts.set(key, { count: 1, input })
      return
    }
    before.count++
    if (before.input !== input)
      this.#find("same_input", `${callId} was entered with ${before.input}, then with ${input}`)
    if (effects === "write" && before.count > 1 + (this.#allowed.get(key) ?? 0)) {
      this.#find("writes_once", `${callId} writes and was entered ${before.count} times without a verdict to retry`)
    }
  }

  #find(rule: Rule, detail: string): void {
    this.findings.push({ rule, detail })
  }
}

/** Checks a list of facts. */
export const judgeFacts = (facts: ReadonlyArray<Fact>): ReadonlyArray<Finding> => {
  const judge = new Judge()
  for (const fact of facts) judge.see(fact)
  return judge.findings
}

const nameOf = (record: RunRecord): string => `${record.runId} revision ${record.revision}`

const answersOf = (record: RunRecord): ReadonlyArray<string> => [
  ...(record.delta.resolved ?? []).map((result) => result.callId),
  ...record.events.flatMap((event) =>
    event.type === "tool_call_completed" || (event.type === "tool_call_started" && event.change?.type === "skip")
      ? [event.callId]
      : []
  )
]

/** Checks the final store: no acknowledged record is lost, and the journal is complete. */
export const judgeKept = (facts: ReadonlyArray<Fact>, kept: ReadonlyArray<Kept>): ReadonlyArray<Finding> => {
  const findings: Array<Finding> = []
  const journals = new Map(kept.map((run) => [run.runId, run.journal]))
  for (const fact of facts) {
    if (fact.type !== "stored") continue
    const { record } = fact
    const found = journals.get(record.runId)?.[record.revision - 1]
    if (found !== record && !isSame(found, record)) {
      findings.push({
        rule: "nothing_lost",
        detail: `${record.runId} revision ${record.revision} was acknowledged and is lost`
      })
    }
  }
  for (const { journal, runId, state } of kept) {
    const gap = journal.findIndex((record, index) => record.revision !== index + 1)
    if (gap >= 0)
      findings.push({ rule: "fenced", detail: `the journal of ${runId} has a gap before its record ${gap + 1}` })
    else if (!isSame(whole(fold(journal)), whole(state))) {
      findings.push({ rule: "nothing_lost", detail: `the state of ${runId} is not the fold of its journal` })
    }
  }
  return findings
}

/** Returns a state with its long lists, which are not own fields. */
const whole = (state: RunState | undefined): unknown =>
  state === undefined ? "nothing" : { ...state, turns: state.turns, prompt: state.prompt }

/** Compares the result of a disturbed tree of runs with that of the undisturbed one. */
export const judgeSame = (expected: ReadonlyArray<Kept>, actual: ReadonlyArray<Kept>): ReadonlyArray<Finding> => {
  const found = new Map(actual.map((run) => [run.runId, run]))
  const foreseen = new Set(expected.flatMap(failuresOf))
  const failure = actual.flatMap(failuresOf).find((tag) => !foreseen.has(tag))
  if (failure !== undefined) return [{ rule: "same_journal", detail: `it failed with ${failure} on its way` }]
  for (const run of expected) {
    const other = found.get(run.runId)
    const linesOf = other === undefined || isSame(scheduleOf(run), scheduleOf(other)) ? essence : outcome
    // Most are identical, which is fast to check.
    if (other !== undefined && linesOf(run, JSON.stringify).join() === linesOf(other, JSON.stringify).join()) continue
    const [before, after] = [linesOf(run), other === undefined ? [] : linesOf(other)]
    const index = before.findIndex((line, index) => line !== after[index])
    const at = index < 0 && after.length > before.length ? before.length : index
    if (at >= 0) {
      const detail = `${run.runId} differs at its event ${at + 1}: ${before[at] ?? "nothing"} became ${after[at] ?? "nothing"}`
      return [{ rule: "same_journal", detail }]
    }
  }
  const known = new Set(expected.map((run) => run.runId))
  const extra = actual.find((run) => !known.has(run.runId))
  return extra === undefined
    ? []
    : [{ rule: "same_journal", detail: `${extra.runId} is a run the undisturbed one did not have` }]
}

/** The failures of a run. A call in flight without a decision is not a failure of its own. */
const failuresOf = ({ journal }: Kept): ReadonlyArray<string> =>
  journal.flatMap(({ events }) =>
    events.flatMap((event) =>
      event.type === "run_failed" && event.error.tag !== "InFlightToolCalls" ? [event.error.tag] : []
    )
  )

/** Formats a value on one line. */
type Write = (value: unknown) => string

/**
 * Returns everything in a run that must not depend on crashes: all except times, attempts, resumes, intermediate
 * failures, and questions that were asked again because there was no answer.
 */
const essence = ({ journal, state }: Kept, write: Write = text): ReadonlyArray<string> => {
  const lines: Array<{ readonly group: string; readonly line: string }> = []
  let asked: string | undefined
  for (const record of journal) {
    if (record.delta.answers !== undefined && record.delta.answers.length > 0) asked = undefined
    for (const result of record.delta.resolved ?? []) lines.push(completed(result.callId, result, write))
    for (const event of record.events) {
      if (event.type === "run_failed" || event.type === "model_restarted") continue
      if (event.type === "paused" && event.reason === "approval_required") {
        // A task that is resumed before its answer waits again, with the same question.
        const question = lineOf(event, write)
        if (question === asked) continue
        asked = question
      }
      lines.push(
        event.type === "tool_call_completed"
          ? completed(event.callId, event.result, write)
          : { group: "", line: lineOf(event, write) }
      )
    }
  }
  lines.push({ group: "", line: `context ${write(state?.context)}` })
  return ordered(lines)
}

/** Returns when the results of background calls arrived and when the run waited, which may change with a crash. */
const scheduleOf = ({ journal }: Kept): ReadonlyArray<unknown> =>
  endedIn(journal).length === 0
    ? []
    : journal.flatMap(({ events }) =>
        events.flatMap((event) =>
          event.type === "turn_started"
            ? (event.ended ?? []).map(({ callId }) => [event.turnId, callId])
            : event.type === "paused"
              ? [field(event.metadata, "callIds")]
              : []
        )
      )

/**
 * Returns what must not depend on the order in which background calls end: the result of each of them, which arrives
 * once, and the answer of the run.
 */
const outcome = ({ journal, state }: Kept, write: Write = text): ReadonlyArray<string> => [
  ...endedIn(journal)
    .map((result) => completed(result.callId, result, write).line)
    .sort(),
  write([state?.status.type, state?.turns.at(-1)?.message?.content])
]

const endedIn = (journal: ReadonlyArray<RunRecord>): ReadonlyArray<CallResult> =>
  journal.flatMap(({ events }) => events.flatMap((event) => (event.type === "turn_started" ? (event.ended ?? []) : [])))

const completed = (callId: string, { error, message, output, skipped }: CallOutcome, write: Write) => {
  const gave = { callId, error, message, output, skipped }
  return { group: "completed", line: `tool_call_completed ${write(gave)}` }
}

const lineOf = (event: PhaseEvent, write: Write): string => {
  const { at: _, revision: __, ...rest } = event
  switch (rest.type) {
    case "model_completed": {
      const { latencyMs: _, ...said } = rest
      return write(said)
    }
    case "tool_call_started":
      return rest.change?.type === "skip"
        ? write({ ...rest, change: completed(rest.callId, rest.change.result, write).line })
        : write(rest)
    default:
      return write(rest)
  }
}

/** Calls that may run concurrently complete in any order, so they are compared as a set. */
const ordered = (lines: ReadonlyArray<{ readonly group: string; readonly line: string }>): ReadonlyArray<string> => {
  const out: Array<string> = []
  let group: Array<string> = []
  for (const { group: name, line } of lines) {
    if (name === "") {
      out.push(...group.sort(), line)
      group = []
    } else group.push(line)
  }
  return out.concat(group.sort())
}

/** Returns true if two values are the same JSON. Most also have the same order of keys. */
const isSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other) || text(one) === text(other)

/**
 * Returns JSON with sorted keys, because a store may return them in another order, and without the times until which a
 * question or a program waits: a process that starts later waits until later.
 */
const text: Write = (value) =>
  JSON.stringify(value, (key, part: unknown) =>
    typeof part !== "object" || part === null || Array.isArray(part)
      ? part
      : Object.fromEntries(Object.entries(withoutTimes(key, part)).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  ) ?? "nothing"

/** Replaces the time of a wait by a word, in its question and in the input of its call. Other inputs keep theirs. */
const withoutTimes = (key: string, part: object): object => {
  if (!("name" in part)) return key === "asking" ? withoutTime(part, "answerBy") : part
  const call = "callId" in part ? withoutTime(part, "answerBy") : part
  const time = part.name === "program_sleep" ? "until" : part.name === "program_ask" ? "answerBy" : undefined
  if (time === undefined || !("input" in part) || typeof part.input !== "object" || part.input === null) return call
  return { ...call, input: withoutTime(part.input, time) }
}

const withoutTime = (part: object, name: string): object =>
  typeof Reflect.get(part, name) === "number" ? { ...part, [name]: "a time" } : part

/**
 * What the rules of reliability say about the life of a run, judged from facts and journals alone.
 */

import type { CallOutcome } from "../../Call.ts"
import type { PhaseEvent } from "../../RunEvent.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import { fold } from "../../RunState.ts"
import { type Fact, keyOf } from "./watchedProcess.ts"

/** The rules a matrix judges by. */
export type Rule = "R-1" | "R-2" | "R-3" | "R-4" | "R-5" | "R-6" | "R-7" | "R-15"

/** A rule that did not hold, and how. */
export interface Finding {
  readonly rule: Rule
  readonly detail: string
}

/** One run of a tree as its store has it in the end. */
export interface Kept {
  readonly runId: string
  readonly journal: ReadonlyArray<RunRecord>
  readonly state: RunState | undefined
}

/** Judges what happened, fact by fact, in the order in which it happened. */
export class Judge {
  readonly findings: Array<Finding> = []
  /** Who stored the last record of each run. */
  readonly #owners = new Map<string, string>()
  readonly #revisions = new Map<string, number>()
  readonly #launched = new Set<string>()
  /** Who may ask a model for which run. */
  readonly #asking = new Set<string>()
  /** Where each run stands. */
  readonly #phases = new Map<string, PhaseEvent["type"]>()
  readonly #answered = new Set<string>()
  readonly #starts = new Map<string, { count: number; readonly input: string }>()
  readonly #allowed = new Map<string, number>()
  /** The turn each run is in: a call is known by its run, its turn and its id. */
  readonly #steps = new Map<string, number>()

  see(fact: Fact): void {
    switch (fact.type) {
      case "stored":
        return this.#stored(fact.machine, fact.record)
      case "repeated":
        if (fact.tag === undefined) return
        return this.#find("R-6", `${nameOf(fact.record)}, stored already, gave ${fact.tag} when it was sent again`)
      case "asked":
        if (!this.#owners.has(fact.runId)) {
          this.#find("R-1", `a model was asked for ${fact.runId} before it was stored`)
        } else if (!this.#asking.has(`${fact.machine} ${fact.runId}`)) {
          this.#find("R-5", `${fact.machine} asked a model for ${fact.runId} without a stored model_started`)
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
    // Acknowledged late: it was stored before another took the run over.
    if (record.revision <= last) return
    this.#revisions.set(record.runId, record.revision)
    const owner = this.#owners.get(record.runId)
    const takesOver = record.op === "resume" || record.events.some((event) => event.type === "run_failed")
    if (owner !== undefined && owner !== machine && !takesOver) {
      this.#find("R-5", `${machine} stored ${nameOf(record)}, though ${owner} had the run`)
    }
    this.#owners.set(record.runId, machine)
    for (const event of record.events) this.#steps.set(record.runId, event.step)
    const step = this.#steps.get(record.runId) ?? 0
    const key = (callId: string) => keyOf({ runId: record.runId, step, callId })
    for (const id of record.delta.launched ?? []) {
      if (this.#answered.has(key(id))) this.#find("R-4", `${id} has a stored response and was launched again`)
      this.#launched.add(`${machine} ${key(id)}`)
    }
    for (const id of answersOf(record)) this.#answered.add(key(id))
    this.#mayAsk(`${machine} ${record.runId}`, record)
  }

  /**
   * From its `model_started` to the next record of the run a model is asked, by a middleware more than once; and as a turn
   * is prepared, where what was said before is to be summed up.
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
    // A launch that was acknowledged counts as a start, before which there was no response: nothing can tell a call on
    // its way from one that arrived, not even when another has run it again by then, because it is idempotent.
    const own = this.#launched.delete(`${machine} ${key}`)
    if (!own) this.#find("R-2", `${callId} was entered by ${machine} without a stored launch`)
    if (this.#answered.has(key) && !own) this.#find("R-4", `${callId} has a stored response and was entered again`)
    if (before === undefined) {
      this.#starts.set(key, { count: 1, input })
      return
    }
    before.count++
    if (before.input !== input) this.#find("R-3", `${callId} was entered with ${before.input}, then with ${input}`)
    if (effects === "write" && before.count > 1 + (this.#allowed.get(key) ?? 0)) {
      this.#find("R-2", `${callId} writes and was entered ${before.count} times without a verdict to retry`)
    }
  }

  #find(rule: Rule, detail: string): void {
    this.findings.push({ rule, detail })
  }
}

/** Judges facts at once. */
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

/** Judges what is left of a run: nothing acknowledged is lost, and the journal is whole. */
export const judgeKept = (facts: ReadonlyArray<Fact>, kept: ReadonlyArray<Kept>): ReadonlyArray<Finding> => {
  const findings: Array<Finding> = []
  const journals = new Map(kept.map((run) => [run.runId, run.journal]))
  for (const fact of facts) {
    if (fact.type !== "stored") continue
    const { record } = fact
    const found = journals.get(record.runId)?.[record.revision - 1]
    if (found !== record && !isSame(found, record)) {
      findings.push({ rule: "R-1", detail: `${record.runId} revision ${record.revision} was acknowledged and is lost` })
    }
  }
  for (const { journal, runId, state } of kept) {
    const gap = journal.findIndex((record, index) => record.revision !== index + 1)
    if (gap >= 0)
      findings.push({ rule: "R-5", detail: `the journal of ${runId} has a gap before its record ${gap + 1}` })
    else if (!isSame(whole(fold(journal)), whole(state))) {
      findings.push({ rule: "R-1", detail: `the state of ${runId} is not the fold of its journal` })
    }
  }
  return findings
}

/** All of a state: its long lists are no fields of its own. */
const whole = (state: RunState | undefined): unknown =>
  state === undefined ? "nothing" : { ...state, turns: state.turns, prompt: state.prompt }

/** Compares what a disturbed tree of runs left with what the undisturbed one left. */
export const judgeSame = (expected: ReadonlyArray<Kept>, actual: ReadonlyArray<Kept>): ReadonlyArray<Finding> => {
  const found = new Map(actual.map((run) => [run.runId, run]))
  const foreseen = new Set(expected.flatMap(failuresOf))
  const failure = actual.flatMap(failuresOf).find((tag) => !foreseen.has(tag))
  if (failure !== undefined) return [{ rule: "R-7", detail: `it failed with ${failure} on its way` }]
  for (const run of expected) {
    const other = found.get(run.runId)
    // Most are the same to the letter, which is quick to see.
    if (other !== undefined && essence(run, JSON.stringify).join() === essence(other, JSON.stringify).join()) continue
    const [before, after] = [essence(run), other === undefined ? [] : essence(other)]
    const index = before.findIndex((line, index) => line !== after[index])
    const at = index < 0 && after.length > before.length ? before.length : index
    if (at >= 0) {
      const detail = `${run.runId} differs at its event ${at + 1}: ${before[at] ?? "nothing"} became ${after[at] ?? "nothing"}`
      return [{ rule: "R-7", detail }]
    }
  }
  const known = new Set(expected.map((run) => run.runId))
  const extra = actual.find((run) => !known.has(run.runId))
  return extra === undefined
    ? []
    : [{ rule: "R-7", detail: `${extra.runId} is a run the undisturbed one did not have` }]
}

/** Why a run failed on its way; a call in flight that nobody has said anything about is no failure of its own. */
const failuresOf = ({ journal }: Kept): ReadonlyArray<string> =>
  journal.flatMap(({ events }) =>
    events.flatMap((event) =>
      event.type === "run_failed" && event.error.tag !== "InFlightToolCalls" ? [event.error.tag] : []
    )
  )

/** A value in a line. */
type Write = (value: unknown) => string

/**
 * What of a run must not depend on crashes: everything but times, attempts, resumes, failures on the way, and questions
 * that were asked again because nobody had answered.
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
        // A task that is taken up before anybody answered it waits again, with the same question (DR-22).
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

/** Calls that may run at once complete in any order: side by side they are compared as a set. */
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

/** Whether two are the same JSON. Most are in the same order, too. */
const isSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one) === JSON.stringify(other) || text(one) === text(other)

/** JSON with its keys in order: what a store gives back may have them in another. */
const text: Write = (value) =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part !== "object" || part === null || Array.isArray(part)
      ? part
      : Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  ) ?? "nothing"

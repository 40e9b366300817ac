/**
 * The report of a scenario, with the tree of its runs, turns and calls; stored as one file, beside a list of all.
 *
 * The tree is read from the recording run by run, so turns of a task never mix with those of the root run that have the
 * same number.
 *
 * Names of files never collide: a second run in the same second gets a number. The list is written atomically by one
 * process at a time. A damaged list starts anew, and one of more than `Limits.fetchedBytes` accepts no more reports.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { type PlatformError, badArgument } from "effect/PlatformError"
import * as Random from "effect/Random"
import type { KernelError } from "../../KernelError.ts"
import * as Limits from "../../Limits.ts"
import type * as Recorder from "../../Recorder.ts"
import type { RunResult } from "../../RunState.ts"
import type { Usage } from "../../Usage.ts"
import * as Read from "../../kit/files.ts"
import { createFile, stamp } from "../../kit/freshFile.ts"
import { type Json, type JsonObject, isJsonObject } from "../../kit/json.ts"
import { redact } from "../../kit/redact.ts"
import { taskRunId } from "../../Call.ts"

/** The end of a scenario. */
export type Status = "ok" | "fail" | "skipped"

/** The reason why there is no result, or the problems of the result. */
export interface Failure {
  /** `max_steps_reached`, `provider_error`, `unexpected_result`, `skipped`, `interrupted`, `defect`, or the tag of another error. */
  readonly type: string
  readonly message: string
}

/** A run, a turn, a task or a call, with its children. */
export interface Node {
  readonly kind: "run" | "turn" | "task" | "skill" | "protocol" | "builtin" | "note"
  readonly name: string
  readonly ok: boolean
  /** Milliseconds, if known. */
  readonly durationMs: number | undefined
  /** Its result, or the reason for its failure. */
  readonly text: string
  readonly children: ReadonlyArray<Node>
}

/** A run of a scenario. */
export interface Report {
  /** The id of the run, or null if none started. */
  readonly runId: string | null
  readonly scenario: string
  readonly description: string
  readonly provider: string
  readonly model: string
  readonly input: string
  readonly maxSteps: number
  readonly skills: ReadonlyArray<string> | null
  readonly status: Status
  readonly result: string | null
  readonly failure: Failure | null
  /** Turns of the root run. */
  readonly steps: number
  /** Tasks that ran below it. */
  readonly tasks: number
  readonly usage: Usage | null
  /** US dollars of the calls whose price is known. Null if none is. */
  readonly costUsd: number | null
  readonly startedAt: number
  readonly finishedAt: number
  readonly recording: ReadonlyArray<Recorder.Entry>
  readonly tree: Node
}

/** The reason why a scenario cannot run here, which is not a failure. */
export class Skipped {
  readonly _tag = "Skipped"
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** The input of a report. */
interface Facts extends Pick<
  Report,
  "scenario" | "description" | "provider" | "model" | "input" | "maxSteps" | "skills" | "startedAt" | "finishedAt"
> {
  readonly exit: Exit.Exit<RunResult<unknown>, KernelError | Skipped>
  readonly entries: ReadonlyArray<Recorder.Entry>
}

/** Builds the report of a run. */
export const report = ({ entries, exit, ...facts }: Facts): Report => {
  const result = Exit.isSuccess(exit) ? exit.value : undefined
  const error = Exit.isFailure(exit) ? errorOf(exit.cause) : undefined
  const failure = error === undefined || error instanceof Skipped ? undefined : failureOf(error)
  // The failure is recorded after everything else.
  const recording = failure === undefined ? entries : [...entries, errorEntry(failure, facts.finishedAt)]
  const root = entries.filter((entry) => entry.depth === 0)
  return {
    ...facts,
    runId: root[0]?.runId ?? null,
    status: result !== undefined ? "ok" : error instanceof Skipped ? "skipped" : "fail",
    result: result?.text ?? null,
    failure: error instanceof Skipped ? { type: "skipped", message: redact(error.message) } : (failure ?? null),
    steps: new Set(root.map((entry) => entry.step)).size,
    tasks: entries.filter((entry) => entry.event === "task_start").length,
    usage: result === undefined || result.unreportedTurns === result.turns ? null : result.usage,
    costUsd: result?.costUsd ?? null,
    recording,
    tree: treeOf(facts, entries, result?.text, failure)
  }
}

/** Adds the problems that a scenario found in a run with an answer. */
export const judged = (report: Report, problems: ReadonlyArray<string>): Report =>
  problems.length === 0
    ? report
    : { ...report, status: "fail", failure: { type: "unexpected_result", message: redact(problems.join("; ")) } }

/** Encodes a report with the names of its wire format. The tree can be rebuilt from the recording. */
export const toJson = (report: Report): JsonObject => ({
  scenario: report.scenario,
  description: report.description,
  provider: report.provider,
  model: report.model,
  input: redact(report.input),
  run_id: report.runId,
  max_steps: report.maxSteps,
  skills: report.skills,
  result: report.result === null ? null : redact(report.result),
  ok: report.status === "ok",
  status: report.status,
  failure: report.failure === null ? null : { type: report.failure.type, message: report.failure.message },
  steps: report.steps,
  tasks: report.tasks,
  usage:
    report.usage === null ? null : { input_tokens: report.usage.inputTokens, output_tokens: report.usage.outputTokens },
  cost_usd: report.costUsd,
  started_at: timestamp(report.startedAt),
  finished_at: timestamp(report.finishedAt),
  duration_ms: report.finishedAt - report.startedAt,
  recording: report.recording.map((entry) => ({ ...entry }))
})

const timestamp = (at: number): string => new Date(at).toISOString()

// ---------------------------------------------------------------- failures

const errorOf = (cause: Cause.Cause<KernelError | Skipped>): KernelError | Skipped | Failure => {
  const error = cause.reasons.find(Cause.isFailReason)?.error
  if (error !== undefined) return error
  if (Cause.hasInterruptsOnly(cause)) return { type: "interrupted", message: "the scenario was interrupted" }
  return { type: "defect", message: redact(Cause.pretty(cause)) }
}

const failureOf = (error: KernelError | Failure): Failure => {
  if ("type" in error) return error
  const message = redact(error.message)
  switch (error._tag) {
    case "MaxStepsReached":
      return { type: "max_steps_reached", message }
    case "ProviderError":
      return { type: "provider_error", message }
    default:
      return { type: error._tag, message }
  }
}

const errorEntry = (failure: Failure, at: number): Recorder.Entry => ({
  runId: "",
  step: -1,
  depth: 0,
  taskId: null,
  event: "error",
  data: { type: failure.type, message: failure.message },
  timestamp: timestamp(at)
})

// ---------------------------------------------------------------- the tree

const treeOf = (
  facts: Pick<Report, "scenario" | "startedAt" | "finishedAt">,
  entries: ReadonlyArray<Recorder.Entry>,
  result: string | undefined,
  failure: Failure | undefined
): Node => {
  const runs = Map.groupBy(entries, (entry) => entry.runId)
  const root = entries.find((entry) => entry.depth === 0)?.runId
  return {
    kind: "run",
    name: facts.scenario,
    ok: failure === undefined && result !== undefined,
    durationMs: facts.finishedAt - facts.startedAt,
    text: failure?.message ?? result ?? "",
    children: root === undefined ? [] : turnsOf(root, runs)
  }
}

type Runs = ReadonlyMap<string, ReadonlyArray<Recorder.Entry>>

const turnsOf = (runId: string, runs: Runs): ReadonlyArray<Node> =>
  Array.from(
    Map.groupBy(runs.get(runId) ?? [], (entry) => entry.step),
    ([step, entries]): Node => {
      const reply = entries.find((entry) => entry.event === "llm_response")
      const children = entries.flatMap((entry) => nodeOf(entry, runs))
      const said = reply === undefined ? "no reply" : kindsOf(entries)
      return {
        kind: "turn",
        name: `turn ${step + 1}`,
        ok: reply !== undefined,
        durationMs: reply === undefined ? undefined : numberOf(reply.data, "latency_ms"),
        text: said,
        children
      }
    }
  )

/** Returns the types of the blocks in a reply, or a note that it had none. */
const kindsOf = (entries: ReadonlyArray<Recorder.Entry>): string => {
  const parsed = entries.find((entry) => entry.event === "blocks_parsed")
  const blocks = Array.isArray(parsed?.data) ? parsed.data : []
  const kinds = blocks.map((block) => textOf(block, "type"))
  return kinds.length === 0 ? "prose" : [...new Set(kinds)].join(", ")
}

const nodeOf = (entry: Recorder.Entry, runs: Runs): ReadonlyArray<Node> => {
  const { data } = entry
  const leaf = (kind: Node["kind"], name: string, ok: boolean, text: string): ReadonlyArray<Node> => [
    { kind, name, ok, durationMs: numberOf(data, "duration_ms"), text, children: [] }
  ]
  switch (entry.event) {
    case "skill_result":
      return leaf("skill", textOf(data, "skill"), true, textOf(data, "result"))
    case "skill_error":
      return leaf("skill", textOf(data, "skill"), false, textOf(data, "error"))
    case "protocol_result":
      return leaf("protocol", textOf(data, "protocol"), true, textOf(data, "result"))
    case "protocol_error":
      return leaf("protocol", textOf(data, "protocol"), false, textOf(data, "error"))
    case "builtin_result":
      return leaf("builtin", textOf(data, "command"), true, "")
    case "builtin_error":
      return leaf("builtin", textOf(data, "command"), false, textOf(data, "error"))
    case "plan_rejected":
      return leaf("note", "plan refused", false, textOf(data, "reason"))
    case "informational_only":
      return leaf("note", "nothing to do", false, "asked to continue")
    case "no_blocks_stall":
      return leaf("note", "no block", false, "asked again")
    case "blocks_parsed": {
      const [ignored] = Array.isArray(data) ? data.filter((block) => textOf(block, "ignored") !== "") : []
      return ignored === undefined ? [] : leaf("note", "ignored", false, textOf(ignored, "ignored"))
    }
    case "task_complete":
    case "task_error":
      return [taskOf(entry, runs)]
    default:
      return []
  }
}

const taskOf = ({ data, event, runId, step }: Recorder.Entry, runs: Runs): Node => {
  const id = textOf(data, "task_id")
  return {
    kind: "task",
    name: textOf(data, "agent") || id,
    ok: event === "task_complete",
    durationMs: numberOf(data, "duration_ms"),
    text: textOf(data, event === "task_complete" ? "result" : "error"),
    children: turnsOf(textOf(data, "child_run_id") || taskRunId(`${runId}:t${step + 1}`, id), runs)
  }
}

const textOf = (data: Json | undefined, key: string): string => {
  const value = isJsonObject(data) ? data[key] : undefined
  return typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value)
}

const numberOf = (data: Json, key: string): number | undefined => {
  const value = isJsonObject(data) ? data[key] : undefined
  return typeof value === "number" ? value : undefined
}

// ---------------------------------------------------------------- storage

type Files = FileSystem.FileSystem | Path.Path

/** Stores a report in a folder, and returns the path of its file. */
export const save = Effect.fnUntraced(function* (
  report: Report,
  directory: string
): Effect.fn.Return<string, PlatformError, Files> {
  const path = yield* Path.Path
  const json = toJson(report)
  const file = yield* createFile(directory, nameOf(report), `${JSON.stringify(json, undefined, 2)}\n`)
  const { recording: _, skills: __, ...summary } = json
  yield* append(directory, { ...summary, log: path.basename(file) })
  return file
})

const nameOf = ({ model, scenario, startedAt }: Report): string =>
  `${plain(scenario)}_${plain(model)}_${stamp(startedAt)}`

/** Returns a name that is valid on every file system. */
const plain = (name: string): string => name.replace(/[^A-Za-z0-9-]/g, "_").slice(0, 80)

const append = Effect.fnUntraced(function* (directory: string, summary: JsonObject) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(directory, "manifest.json")
  const change = Effect.gen(function* () {
    const list = [...(yield* entries(fs, file)), summary]
    // Written to a temporary file and moved, so that readers see the old list or the new one.
    const fresh = `${file}.${yield* Random.nextIntBetween(0, 0x7fff_ffff)}`
    yield* fs.writeFileString(fresh, `[\n${list.map((entry) => JSON.stringify(entry)).join(",\n")}\n]\n`)
    yield* fs.rename(fresh, file)
  })
  yield* Effect.acquireUseRelease(
    lock(`${file}.lock`),
    () => change,
    () => Effect.ignore(fs.remove(`${file}.lock`, { recursive: true }))
  )
})

// A list that is too large to read must not be overwritten, so saving fails until it is moved.
const entries = (fs: FileSystem.FileSystem, file: string): Effect.Effect<ReadonlyArray<Json>, PlatformError> =>
  Effect.flatMap(Limits.Limits, ({ fetchedBytes }) =>
    Effect.matchEffect(Read.text(fs, file, fetchedBytes), {
      onSuccess: (text) => Effect.succeed(entriesOf(text)),
      onFailure: (refusal) => (typeof refusal === "string" ? Effect.fail(unread(file, refusal)) : Effect.succeed([]))
    })
  )

const unread = (file: string, refusal: string) =>
  badArgument({ module: "Scenario", method: "save", description: `'${file}' is ${refusal}` })

const entriesOf = (text: string): ReadonlyArray<Json> => {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

const patience = 10_000
const pause = 20

/** Locks with a folder that only one process can create. Takes over the lock of a process that died. */
const lock = Effect.fnUntraced(function* (
  directory: string
): Effect.fn.Return<void, PlatformError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  for (let waited = 0; ; waited += pause) {
    const isMine = yield* fs.makeDirectory(directory).pipe(
      Effect.as(true),
      Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.succeed(false))
    )
    if (isMine) return
    if (waited >= patience) {
      yield* Effect.ignore(fs.remove(directory, { recursive: true }))
      waited = 0
    }
    // Only the wait is interruptible.
    yield* Effect.interruptible(Effect.sleep(pause))
  }
})

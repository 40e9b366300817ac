/**
 * The reports of `kernai eval` in a folder: experiments over data sets, each with its gate.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as ReportFiles from "./reportFiles.ts"

const Attempt = Schema.Struct({
  outcome: Schema.Literals(["passed", "failed", "error", "skipped"]),
  answer: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String),
  scores: Schema.Array(Schema.Struct({ scorer: Schema.String, score: Schema.Finite, isPass: Schema.Boolean })),
  costUsd: Schema.NullOr(Schema.Finite),
  durationMs: Schema.Finite
})
/** One answer to a case. */
export type Attempt = typeof Attempt.Type

const Case = Schema.Struct({
  id: Schema.String,
  input: Schema.String,
  expected: Schema.optionalKey(Schema.Json),
  attempts: Schema.Array(Attempt)
})
/** A question of the data set, and the answers to it. */
export type Case = typeof Case.Type

const Report = Schema.Struct({
  /** The files that were asked. */
  name: Schema.String,
  /** Whether the pass rate reached the threshold. */
  ok: Schema.Boolean,
  threshold: Schema.Finite,
  startedAt: Schema.Finite,
  finishedAt: Schema.Finite,
  attempts: Schema.Finite,
  passed: Schema.Finite,
  skipped: Schema.Finite,
  passRate: Schema.Finite,
  interval: Schema.Tuple([Schema.Finite, Schema.Finite]),
  scorers: Schema.Array(Schema.Struct({ name: Schema.String, mean: Schema.Finite, passRate: Schema.Finite })),
  costUsd: Schema.NullOr(Schema.Finite),
  cases: Schema.Array(Case)
})

/** A report with all answers, and the name of its file. */
export type ExperimentReport = typeof Report.Type & { readonly file: string }

/** A report without its answers. */
export type Experiment = Omit<ExperimentReport, "cases">

/** Returns the reports of a folder. */
export const make = (folder: string): ReportFiles.ReportFiles<ExperimentReport> =>
  ReportFiles.make(folder, { name: /^eval_[\w-]+\.json$/, most: 100, schema: Report })

/** Returns the newest reports without their answers, the newest first. */
export const list = (reports: ReportFiles.ReportFiles<ExperimentReport>): Effect.Effect<ReadonlyArray<Experiment>> =>
  Effect.map(reports.newest, (found) => found.map(({ cases: _cases, ...experiment }) => experiment))

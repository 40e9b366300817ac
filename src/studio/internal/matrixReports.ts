/**
 * The reports of `kernai scenario matrix` in a folder.
 */

import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as ReportFiles from "./reportFiles.ts"

const Cell = Schema.Struct({
  scenario: Schema.String,
  model: Schema.String,
  dialect: Schema.optionalKey(Schema.NullOr(Schema.String)),
  status: Schema.Literals(["ok", "fail", "skipped", "error"]),
  turns: Schema.NullOr(Schema.Finite),
  tokens: Schema.NullOr(Schema.Finite),
  cost_usd: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  reason: Schema.NullOr(Schema.String),
  run_id: Schema.optionalKey(Schema.NullOr(Schema.String)),
  duration_ms: Schema.Finite
})
/** One run of a scenario with a model. */
export type Cell = typeof Cell.Type

const Report = Schema.Struct({ started_at: Schema.String, cells: Schema.Array(Cell) })

/** A report, with the name of its file. */
export type MatrixReport = typeof Report.Type & { readonly file: string }

/** Reads the newest reports of a folder, newest first. Omits files that are not reports. */
export const read = (folder: string): Effect.Effect<ReadonlyArray<MatrixReport>> =>
  ReportFiles.make(folder, { name: /^matrix_[\w-]+\.json$/, most: 20, schema: Report }).newest

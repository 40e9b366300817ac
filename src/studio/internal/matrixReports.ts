/**
 * The reports of `kernai scenario matrix` in a folder.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { readdir, readFile, stat } from "node:fs/promises"
import { join } from "node:path"

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
export interface MatrixReport {
  readonly name: string
  readonly startedAt: string
  readonly cells: ReadonlyArray<Cell>
}

const most = 20
const mostBytes = 4 * 1024 * 1024
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Report))

/** Reads the newest reports of a folder, newest first. Omits files that are not reports. */
export const read = (folder: string): Effect.Effect<ReadonlyArray<MatrixReport>> =>
  Effect.promise(async () => {
    const names = await readdir(folder).catch(() => [])
    const newest = names.filter((name) => /^matrix_[\w-]+\.json$/.test(name)).toSorted()
    const reports = await Promise.all(newest.slice(-most).map((name) => readOne(folder, name)))
    return reports.flat().toReversed()
  })

const readOne = async (folder: string, name: string): Promise<ReadonlyArray<MatrixReport>> => {
  const file = join(folder, name)
  try {
    if ((await stat(file)).size > mostBytes) return []
    const report = Option.getOrUndefined(decode(await readFile(file, "utf8")))
    return report === undefined ? [] : [{ name, startedAt: report.started_at, cells: report.cells }]
  } catch {
    return []
  }
}

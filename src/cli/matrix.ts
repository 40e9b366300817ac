/**
 * Runs every scenario file with every model, each pair in a process of its own: a crash is an error of that pair only.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { fileURLToPath } from "node:url"
import { createFile, stamp } from "../kit/freshFile.ts"
import type { DialectName } from "../Dialect.ts"
import * as Choices from "./dialectChoice.ts"
import type { MatrixFlags } from "./commands/scenarioFlags.ts"
import { Codes, failed, usage } from "./exit.ts"
import { packageFolder } from "./packageFolder.ts"
import { Screen } from "./screen.ts"
import * as Store from "./storeFlag.ts"
import { table } from "./table.ts"
import * as Text from "./terminalText.ts"
import { filesOf } from "./scenarioFiles.ts"
import { tones } from "./scenarioTree.ts"

/** A model, and its dialect if dialects are compared. */
interface Column {
  readonly model: string
  readonly dialect: DialectName | undefined
}

/** The result of a pair. */
interface Cell extends Choices.Measured {
  readonly scenario: string
  readonly file: string
  /** The reason why it is not ok. */
  readonly reason: string | null
  readonly log: string | null
  readonly cost_usd: number | null
  readonly run_id: string | null
  readonly duration_ms: number
}

/** Runs the matrix: prints a line for each pair when it ends, then a table. Fails if a pair failed or crashed. */
export const runMatrix = Effect.fnUntraced(function* (options: MatrixFlags) {
  const screen = yield* Screen
  const { color, log, model: models } = options
  const look = { columns: screen.columns, colors: color ?? screen.colors }
  const files = yield* filesOf(options.paths)
  if (options.store !== undefined) yield* Store.openNamed({ store: options.store, create: options.create })
  const startedAt = yield* Clock.currentTimeMillis
  const columns = models.flatMap((model): ReadonlyArray<Column> =>
    (options.dialects ? Choices.dialects : [undefined]).map((dialect) => ({ model, dialect }))
  )
  const pairs = files.flatMap((file) => columns.map((column) => ({ file, column })))
  const cells = yield* Effect.forEach(
    pairs,
    ({ column, file }) =>
      Effect.tap(runPair(file, column, options), (cell) => Effect.sync(() => screen.progress(lineOf(cell, look)))),
    { concurrency: options.concurrency }
  )
  const finishedAt = yield* Clock.currentTimeMillis
  const totals = { ok: 0, fail: 0, skipped: 0, error: 0 }
  for (const { status } of cells) totals[status]++
  const report = {
    started_at: new Date(startedAt).toISOString(),
    finished_at: new Date(finishedAt).toISOString(),
    models,
    totals,
    cells
  }
  const file = yield* write(log, `matrix_${stamp(startedAt)}`, report)
  const summary = `${totals.ok} ok, ${totals.fail} failed, ${totals.skipped} skipped, ${totals.error} crashed, ${Text.duration(finishedAt - startedAt)}`
  if (options.json) screen.out(`${Text.json({ ...report, file })}\n`)
  else screen.out(`${grid(cells, columns.map(nameOf), look)}${summary}; ${Text.flat(file)}\n`)
  if (options.dialects) return yield* writeChoice(cells, options, startedAt)
  if (totals.fail + totals.error > 0) return yield* failed(summary)
  if (totals.ok === 0) return yield* usage(summary)
})

/** Writes the better dialect of each model. Fails if a model succeeded in neither. */
const writeChoice = Effect.fnUntraced(function* (
  cells: ReadonlyArray<Cell>,
  { json, log, model: models }: MatrixFlags,
  startedAt: number
) {
  const screen = yield* Screen
  const choice = Choices.choose(cells)
  const report = { measured_at: new Date(startedAt).toISOString(), ...choice }
  const file = yield* write(log, `dialects_${stamp(startedAt)}`, report)
  const lines = models.map((model) => `${Text.excerpt(model, 40)}: ${Choices.lineOf(model, choice)}\n`)
  screen.out(json ? `${Text.json({ ...report, file })}\n` : `${lines.join("")}${Text.flat(file)}\n`)
  if (choice.models.length < new Set(models).size) return yield* failed("a model succeeded in neither dialect")
})

const write = (folder: string, name: string, report: object) =>
  Effect.mapError(createFile(folder, name, `${JSON.stringify(report, undefined, 2)}\n`), (error) =>
    usage(`the report cannot be written: ${error.message}`)
  )

const nameOf = ({ dialect, model }: Column): string => (dialect === undefined ? model : `${dialect} ${model}`)

const program = process.argv[1] ?? fileURLToPath(new URL("bin/kernai.mjs", packageFolder))

/** Runs a pair in a process, which writes its own logs, and reads the report that it prints. */
const runPair = Effect.fnUntraced(function* (
  file: string,
  { dialect, model }: Column,
  { log, store, timeout }: MatrixFlags
) {
  const path = yield* Path.Path
  const startedAt = yield* Clock.currentTimeMillis
  const args = ["scenario", "run", file, "--model", model, "--log", log, "--json"]
  if (dialect !== undefined) args.push("--dialect", dialect)
  if (store !== undefined) args.push("--store", store, "--create")
  const ended = yield* spawn(args).pipe(
    Effect.timeoutOrElse({
      duration: `${timeout} seconds`,
      orElse: () => Effect.succeed({ out: "", error: `it did not end within ${timeout} s`, code: 0 })
    }),
    Effect.catch((error) => Effect.succeed({ out: "", error: error.message, code: 0 }))
  )
  const report = ended.code > Codes.usage ? undefined : reportIn(ended.out)
  const cell: Cell = {
    scenario: path.basename(file).replace(/\.[^.]+$/, ""),
    file,
    model,
    dialect,
    status: report?.status ?? "error",
    turns: report?.steps ?? null,
    tokens: report?.usage == null ? null : report.usage.input_tokens + report.usage.output_tokens,
    reason: report === undefined ? Text.excerpt(ended.error, 300) : (report.failure?.message ?? null),
    log: report?.log ?? null,
    cost_usd: report?.cost_usd ?? null,
    // Only a stored run can be shown later.
    run_id: store === undefined ? null : (report?.run_id ?? null),
    duration_ms: (yield* Clock.currentTimeMillis) - startedAt
  }
  return cell
})

const spawn = (args: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      const command = ChildProcess.make(process.execPath, [...process.execArgv, program, ...args], {
        stdin: "ignore",
        extendEnv: true,
        forceKillAfter: "5 seconds"
      })
      const { exitCode, stderr, stdout } = yield* spawner.spawn(command)
      const text = (stream: typeof stdout) => Stream.mkString(Stream.decodeText(stream))
      const [out, error, code] = yield* Effect.all([text(stdout), text(stderr), exitCode], { concurrency: "unbounded" })
      return { out, error, code }
    })
  )

const Report = Schema.Struct({
  status: Schema.Literals(["ok", "fail", "skipped"]),
  failure: Schema.optionalKey(Schema.NullOr(Schema.Struct({ message: Schema.String }))),
  steps: Schema.optionalKey(Schema.Natural),
  usage: Schema.optionalKey(
    Schema.NullOr(Schema.Struct({ input_tokens: Schema.Natural, output_tokens: Schema.Natural }))
  ),
  log: Schema.optionalKey(Schema.NullOr(Schema.String)),
  cost_usd: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
  run_id: Schema.optionalKey(Schema.NullOr(Schema.String))
})

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Report))

/** Returns the report of a file, or that of a failed scenario if there are several. */
const reportIn = (out: string): typeof Report.Type | undefined => {
  const reports = out.split("\n").flatMap((line) => Option.toArray(decode(line)))
  return reports.find(({ status }) => status === "fail") ?? reports.find(({ status }) => status === "ok") ?? reports[0]
}

const lineOf = ({ duration_ms, reason, scenario, status, ...column }: Cell, look: Text.Look): string => {
  const word = Text.paint(status.padEnd(8), tones[status], look)
  const why = reason === null ? "" : `  ${Text.excerpt(reason, 80)}`
  return `${word} ${Text.excerpt(scenario, 40)} with ${Text.excerpt(nameOf(column), 40)}  ${Text.duration(duration_ms)}${why}\n`
}

const resultOf = (cell: Cell | undefined): string =>
  cell === undefined ? "" : `${cell.status} ${Text.duration(cell.duration_ms)}`

/** A row for each file, a column for each model. */
const grid = (cells: ReadonlyArray<Cell>, models: ReadonlyArray<string>, look: Text.Look): string => {
  const rows = Array.from({ length: cells.length / models.length }, (_, row) =>
    cells.slice(row * models.length, (row + 1) * models.length)
  )
  return table<ReadonlyArray<Cell>>(
    [
      { title: "scenario", cell: ([cell]) => Text.excerpt(cell?.scenario ?? "", 40), least: 12 },
      ...models.map((model, column) => ({
        title: Text.excerpt(model, 24),
        cell: (row: ReadonlyArray<Cell>) => resultOf(row[column]),
        tone: (row: ReadonlyArray<Cell>) => tones[row[column]?.status ?? "error"]
      }))
    ],
    rows,
    look
  )
}

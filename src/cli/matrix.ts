/**
 * Every scenario with every model, each pair in a process of its own (BP-185).
 *
 * A pair that crashes, hangs or leaves no report is an error of that pair and
 * nobody else's. On a terminal the table is drawn again with every result;
 * elsewhere each result is a line, and the table comes last.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Path from "effect/Path"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Stream from "effect/Stream"
import * as Bounds from "../internal/base/bounds.ts"
import { fileURLToPath } from "node:url"
import { isJsonObject } from "../internal/base/json.ts"
import * as Logs from "../testing/internal/scenarioLog.ts"
import { Codes, CommandFailed, usage } from "./exit.ts"
import { type Options as Look, paint } from "./pen.ts"
import { filesOf } from "./runScenarios.ts"
import { Screen, type Shape } from "./screen.ts"
import * as Text from "./terminalText.ts"
import { tones } from "./scenarioTree.ts"

/** What is run. */
export interface Options {
  readonly paths: ReadonlyArray<string>
  readonly models: ReadonlyArray<string>
  /** Processes at once. */
  readonly concurrency: number
  /** Milliseconds one pair may take. */
  readonly timeoutMs: number
  readonly log: string
  readonly colors: boolean | undefined
}

/** One pair: before it ends it waits or runs. */
interface Cell {
  readonly scenario: string
  readonly file: string
  readonly model: string
  status: "waits" | "runs" | "ok" | "fail" | "skipped" | "error"
  durationMs: number
  /** Why it is not ok. */
  reason: string | null
  log: string | null
}

/** Runs the matrix. Fails when a pair failed or crashed. */
export const runMatrix = Effect.fnUntraced(function* (options: Options) {
  const screen = yield* Screen
  const path = yield* Path.Path
  const look = { columns: screen.columns, colors: options.colors ?? screen.colors }
  const files = yield* filesOf(options.paths)
  const startedAt = yield* Clock.currentTimeMillis
  const cells = files.flatMap((file) =>
    options.models.map((model): Cell => ({
      scenario: path.basename(file).replace(/\.[^.]+$/, ""),
      file,
      model,
      status: "waits",
      durationMs: 0,
      reason: null,
      log: null
    }))
  )
  const isLive = fits(screen, cells, options.models)
  const draw = drawer(screen, isLive, cells, options.models, look)
  draw(undefined)
  yield* Effect.forEach(
    cells,
    (cell) =>
      Effect.gen(function* () {
        cell.status = "runs"
        draw(cell)
        Object.assign(cell, yield* pair(cell, options))
        draw(cell)
      }),
    { concurrency: options.concurrency, discard: true }
  )
  const finishedAt = yield* Clock.currentTimeMillis
  const totals = { ok: 0, fail: 0, skipped: 0, error: 0 }
  for (const { status } of cells) if (status !== "waits" && status !== "runs") totals[status]++
  const report = {
    started_at: new Date(startedAt).toISOString(),
    finished_at: new Date(finishedAt).toISOString(),
    models: options.models,
    totals,
    cells: cells.map(({ durationMs, ...cell }) => ({ ...cell, duration_ms: durationMs }))
  }
  const text = `${JSON.stringify(report, undefined, 2)}\n`
  const file = yield* Effect.mapError(Logs.create(options.log, `matrix_${Logs.stamp(startedAt)}`, text), (error) =>
    usage(`the matrix cannot be kept: ${error.message}`)
  )
  const summary = `${totals.ok} ok, ${totals.fail} failed, ${totals.skipped} skipped, ${totals.error} crashed, ${Text.duration(finishedAt - startedAt)}`
  if (!isLive) screen.out(`${table(cells, options.models, look).join("\n")}\n`)
  screen.out(`${summary}; ${Text.flat(file)}\n`)
  if (totals.fail + totals.error > 0) return yield* new CommandFailed({ code: Codes.failed, reason: summary })
  if (totals.ok === 0) return yield* usage(summary)
})

// ---------------------------------------------------------------- one pair

/** What was started is started again. */
const program = process.argv[1] ?? fileURLToPath(new URL("../../bin/kernai.mjs", import.meta.url))

/** Runs one pair in a process, which writes its own logs, and reads its lines. */
const pair = Effect.fnUntraced(function* (cell: Cell, options: Options) {
  const from = yield* Clock.currentTimeMillis
  const args = ["scenario", "run", cell.file, "--model", cell.model, "--log", options.log, "--json"]
  const ended = yield* speak(args).pipe(
    Effect.timeoutOption(options.timeoutMs),
    Effect.map((said) => (said._tag === "None" ? { out: "", error: "it took too long", code: 0 } : said.value)),
    Effect.catch((error) => Effect.succeed({ out: "", error: error.message, code: 0 }))
  )
  const durationMs = (yield* Clock.currentTimeMillis) - from
  // Whoever ends otherwise came to none of its ends.
  const report = ended.code > Codes.usage ? undefined : reportOf(ended.out)
  return report === undefined
    ? { status: "error" as const, durationMs, reason: Text.excerpt(ended.error, 300), log: null }
    : { durationMs, ...report }
})

const speak = (args: ReadonlyArray<string>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
      const child = yield* spawner.spawn(
        ChildProcess.make(process.execPath, [...process.execArgv, program, ...args], {
          stdin: "ignore",
          extendEnv: true,
          forceKillAfter: "5 seconds"
        })
      )
      const [out, error, code] = yield* Effect.all(
        [tail(child.stdout, Bounds.frameLength), tail(child.stderr, Bounds.frameLength), child.exitCode],
        { concurrency: "unbounded" }
      )
      return { out, error, code }
    })
  )

/** The last of what a process says, at least so many characters of it: its reports are its last lines. */
export const tail = <E>(stream: Stream.Stream<Uint8Array, E>, length: number): Effect.Effect<string, E> =>
  Stream.runFold(
    Stream.decodeText(stream),
    () => "",
    // Cut once in a while, so that each character is moved about once.
    (kept, text) => (kept.length + text.length > 2 * length ? (kept + text).slice(-length) : kept + text)
  )

type Told = Pick<Cell, "status" | "reason" | "log">

/** What a process said of its scenarios: of several, of one that failed. */
const reportOf = (out: string): Told | undefined => {
  const told = out.split("\n").flatMap((line) => lineOf(line) ?? [])
  return told.find(({ status }) => status === "fail") ?? told.find(({ status }) => status === "ok") ?? told.at(-1)
}

const lineOf = (line: string): Told | undefined => {
  try {
    const json: unknown = JSON.parse(line)
    if (typeof json !== "object" || json === null || !("status" in json)) return undefined
    const { failure, log, status } = { failure: null, log: null, ...json }
    if (status !== "ok" && status !== "fail" && status !== "skipped") return undefined
    const reason = isJsonObject(failure) ? failure["message"] : undefined
    return {
      status,
      reason: typeof reason === "string" ? reason : null,
      log: typeof log === "string" ? log : null
    }
  } catch {
    return undefined
  }
}

// ---------------------------------------------------------------- the table

type Shown = Cell["status"]

const words: { readonly [status in Shown]: string } = {
  waits: "·",
  runs: "…",
  ok: "ok",
  fail: "fail",
  skipped: "skipped",
  error: "error"
}

const width = 16

/** Draws the table anew where the cursor can go back, else a line for each result. */
const drawer = (
  screen: Shape,
  isLive: boolean,
  cells: ReadonlyArray<Cell>,
  models: ReadonlyArray<string>,
  look: Look
) => {
  let drawn = 0
  return (changed: Cell | undefined): void => {
    if (isLive) {
      const rows = table(cells, models, look)
      screen.progress(`${drawn === 0 ? "" : `\u001b[${drawn}A`}${rows.map((row) => `\u001b[2K${row}\n`).join("")}`)
      drawn = rows.length
    } else if (changed !== undefined && changed.status !== "runs") {
      const why = changed.reason === null ? "" : `  ${Text.excerpt(changed.reason, 80)}`
      screen.progress(
        `${words[changed.status].padEnd(8)} ${Text.excerpt(changed.scenario, 40)} with ${Text.excerpt(changed.model, 40)}  ${Text.duration(changed.durationMs)}${why}\n`
      )
    }
  }
}

/**
 * Whether the table can be drawn in place. On a terminal too small for it the cursor does not find its start again, and
 * what changes is told line by line.
 */
export const fits = (
  screen: Pick<Shape, "colors" | "columns" | "rows">,
  cells: ReadonlyArray<Pick<Cell, "scenario">>,
  models: ReadonlyArray<string>
): boolean =>
  screen.colors &&
  firstOf(cells) + 2 + width * models.length <= screen.columns &&
  cells.length / models.length + 1 < screen.rows

/** How wide the column of names is. */
const firstOf = (cells: ReadonlyArray<Pick<Cell, "scenario">>): number =>
  Math.min(40, Math.max(8, ...cells.map(({ scenario }) => scenario.length)))

const table = (cells: ReadonlyArray<Cell>, models: ReadonlyArray<string>, look: Look): ReadonlyArray<string> => {
  const first = firstOf(cells)
  const head =
    `${"".padEnd(first)}  ${models.map((model) => Text.excerpt(model, width - 1).padEnd(width)).join("")}`.trimEnd()
  // By their places: a name may be that of files in several folders.
  const rows = Array.from({ length: cells.length / models.length }, (_, row) => {
    const its = cells.slice(row * models.length, (row + 1) * models.length)
    const name = Text.excerpt(its[0]?.scenario ?? "", first).padEnd(first)
    return `${name}  ${its.map((cell) => shown(cell, look)).join("")}`.trimEnd()
  })
  return [paint(head, "title", look), ...rows]
}

const shown = ({ durationMs, status }: Cell, look: Look): string => {
  const isOver = status !== "waits" && status !== "runs"
  const text = `${words[status]}${isOver ? ` ${Text.duration(durationMs)}` : ""}`.padEnd(width)
  return isOver ? paint(text, tones[status], look) : paint(text, "quiet", look)
}

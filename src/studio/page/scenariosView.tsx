/** Scenarios and models as a grid: the result, the duration, the cost and the run of each pair. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { Cell, MatrixReport } from "../internal/matrixReports.ts"
import { cost, counted, duration, excerpt } from "./format.ts"
import { attempt, data, runAddress } from "./pageStore.ts"
import { SkeletonScreen } from "./skeleton.tsx"
import { StatusShape } from "./status.tsx"

export const ScenariosView = () => {
  const reports = useSignal<ReadonlyArray<MatrixReport> | undefined>(undefined)
  const chosen = useSignal(0)
  useEffect(() => void attempt(async () => (reports.value = await data().scenarios())), [])
  if (reports.value === undefined) return <SkeletonScreen title="Scenarios" label="reading the reports" />
  const report = reports.value[chosen.value]
  if (report === undefined) return <NoReport />
  return (
    <section class="screen" aria-label="Scenarios">
      <header>
        <h1>Scenarios</h1>
        <p class="actions">
          <label>
            Report{" "}
            <select value={chosen.value} onChange={(event) => (chosen.value = event.currentTarget.selectedIndex)}>
              {reports.value.map(({ file, started_at }, index) => (
                <option key={file} value={index}>
                  {started_at.slice(0, 16).replace("T", " ")}
                </option>
              ))}
            </select>
          </label>
        </p>
      </header>
      <Grid cells={report.cells} />
    </section>
  )
}

const NoReport = () => (
  <div class="empty">
    <h2>No scenarios yet</h2>
    <p>
      <code>kernai scenario matrix scenarios/ --create --store sqlite:runs.db</code> runs a folder of scenarios and
      writes a report, without any key if they have scripts.
    </p>
  </div>
)

const columnOf = ({ dialect, model }: Cell): string => (dialect == null ? model : `${model}, ${dialect}`)

const Grid = ({ cells }: { cells: ReadonlyArray<Cell> }) => {
  const columns = [...new Set(cells.map(columnOf))]
  const scenarios = [...new Set(cells.map(({ scenario }) => scenario))]
  const cellsOf = (column: string) => cells.filter((cell) => columnOf(cell) === column)
  return (
    <div class="wide">
      <table class="grid">
        <thead>
          <tr>
            <th scope="col">Scenario</th>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {scenarios.map((scenario) => (
            <tr key={scenario}>
              <th scope="row">{scenario}</th>
              {columns.map((column) => (
                <td key={column}>
                  {cellsOf(column)
                    .filter((cell) => cell.scenario === scenario)
                    .map((cell, index) => (
                      <CellBox key={index} cell={cell} />
                    ))}
                </td>
              ))}
            </tr>
          ))}
          <tr>
            <th scope="row">All</th>
            {columns.map((column) => (
              <td key={column}>{summaryOf(cellsOf(column))}</td>
            ))}
          </tr>
        </tbody>
      </table>
    </div>
  )
}

const tones = { ok: "ok", fail: "error", error: "error", skipped: "quiet" } as const
const words = { ok: "ok", fail: "failed", error: "crashed", skipped: "skipped" } as const

const CellBox = ({ cell: { cost_usd, duration_ms, reason, run_id, status, tokens, turns } }: { cell: Cell }) => {
  const word = (
    <b class={tones[status]}>
      <StatusShape status={status === "ok" ? "ok" : status === "skipped" ? "cancelled" : "error"} /> {words[status]}
    </b>
  )
  const facts = [
    turns === null ? "" : counted(turns, "turn"),
    tokens === null ? "" : `${tokens} tokens`,
    cost_usd == null || cost_usd === 0 ? "" : cost(cost_usd),
    duration(duration_ms)
  ]
  return (
    <>
      {run_id == null ? (
        word
      ) : (
        <a data-row href={runAddress(run_id)}>
          {word}
        </a>
      )}{" "}
      <span class="quiet">{facts.filter((fact) => fact !== "").join(", ")}</span>
      {reason !== null && <p class="error">{excerpt(reason, 160)}</p>}
    </>
  )
}

/** Returns a summary of the pairs that could run: successes, cost and time. */
const summaryOf = (cells: ReadonlyArray<Cell>): string => {
  const ran = cells.filter(({ status }) => status !== "skipped")
  const ok = ran.filter(({ status }) => status === "ok").length
  const spent = ran.reduce((sum, { cost_usd }) => sum + (cost_usd ?? 0), 0)
  const took = ran.reduce((sum, { duration_ms }) => sum + duration_ms, 0)
  return `${ok} of ${ran.length} ok${spent === 0 ? "" : `, ${cost(spent)}`}, ${duration(took)}`
}

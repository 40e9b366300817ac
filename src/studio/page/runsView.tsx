/** The list of runs as a table, whose columns, order and filter a person chooses. */

import { useEffect } from "preact/hooks"
import type { RunLine } from "../internal/studioData.ts"
import { BulkBar } from "./bulkBar.tsx"
import { named, sentence } from "./format.ts"
import { Icon } from "./icons.tsx"
import { Menu } from "./menu.tsx"
import { attempt, data } from "./pageStore.ts"
import { columns, type Column, hidden, shownColumns, toggleColumn } from "./runColumns.tsx"
import {
  filter,
  filterOf,
  next,
  order,
  orderBy,
  readRuns,
  runs,
  runsRead,
  selected,
  setFilter,
  setStatus,
  statusFilter,
  toggle
} from "./runsStore.ts"
import { ViewMenu } from "./savedViews.tsx"
import { Skeleton } from "./skeleton.tsx"

export const RunsView = () => {
  const isOldest = order.value.column === "age" && order.value.isDescending
  useEffect(() => {
    void attempt(readRuns)
    if (data().isFile) return
    const timer = setInterval(() => {
      if (next.value === undefined || runs.value.length <= 100) void attempt(readRuns)
    }, 2_000)
    return () => clearInterval(timer)
  }, [filter.value, isOldest])
  const lines = ordered(runs.value.filter(filterOf(filter.value).keeps))
  return (
    <section class="screen" aria-label="Runs">
      <header>
        <h1>Runs</h1>
        <Filter />
        <ColumnMenu />
        <ViewMenu />
      </header>
      <StatusFilter />
      <BulkBar />
      {!runsRead.value && <Skeleton label="reading the runs" />}
      {lines.length > 0 && <Table lines={lines} />}
      {lines.length === 0 && runsRead.value && <Empty />}
      {next.value !== undefined && (
        <p>
          <button onClick={() => void attempt(() => readRuns(true))}>More runs</button>
        </p>
      )}
    </section>
  )
}

/** Orders lines by the chosen column. Without one, runs that wait for a person come first. */
const ordered = (lines: ReadonlyArray<RunLine>): ReadonlyArray<RunLine> => {
  const { column: id, isDescending } = order.value
  const column = columns.find((one) => one.id === id)
  if (id === "age") return lines
  if (column === undefined) {
    const waits = ({ status }: RunLine) => Number(status.type === "waiting")
    return lines.toSorted((a, b) => waits(b) - waits(a))
  }
  const sign = isDescending ? -1 : 1
  return lines.toSorted((a, b) => {
    const [x, y] = [column.value(a), column.value(b)]
    return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)))
  })
}

const Filter = () => (
  <p class="filter">
    <Icon name="search" />
    <input
      data-filter
      type="search"
      aria-label="Filter runs"
      placeholder="agent:clerk model:gpt-5 tag:urgent errors&gt;0 cost&gt;0.1 words  ( / )"
      value={filter.value}
      onInput={(event) => setFilter(event.currentTarget.value)}
    />
  </p>
)

const statuses = ["", "waiting", "running", "queued", "completed", "no_answer", "failed", "cancelled"]

const StatusFilter = () => (
  <div class="segments" role="group" aria-label="Status">
    {statuses.map((status) => (
      <button key={status} aria-pressed={statusFilter.value === status} onClick={() => setStatus(status)}>
        {sentence(status === "" ? "all" : named(status))}
      </button>
    ))}
  </div>
)

const ColumnMenu = () => (
  <Menu icon="columns-3" label="Columns">
    {columns.map(({ id }) => (
      <label key={id}>
        <input
          type="checkbox"
          checked={!hidden.value.has(id)}
          disabled={id === "input"}
          onChange={() => toggleColumn(id)}
        />{" "}
        {sentence(id)}
      </label>
    ))}
  </Menu>
)

const Empty = () =>
  filter.value === "" ? (
    <div class="empty">
      <h2>No runs yet</h2>
      <p>
        <code>kernai run --create --store runs.db "a question"</code> stores one. Without a key, start{" "}
        <code>kernai studio</code> without a store: it plays a recorded run.
      </p>
    </div>
  ) : (
    <div class="empty">
      <h2>No run fits the filter</h2>
      <button onClick={() => setFilter("")}>
        {filter.value} <Icon name="x" />
      </button>
    </div>
  )

const Table = ({ lines }: { lines: ReadonlyArray<RunLine> }) => {
  const isAll = lines.every(({ runId }) => selected.value.has(runId))
  const all = () => (selected.value = new Set(isAll ? [] : lines.map(({ runId }) => runId)))
  return (
    <div class="list wide">
      <table>
        <thead>
          <tr>
            <th>
              <input type="checkbox" aria-label="Select all" checked={isAll} onChange={all} />
            </th>
            {shownColumns.value.map((column) => (
              <Head key={column.id} column={column} />
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <Row key={line.runId} line={line} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

const Head = ({ column: { id, isNumber } }: { column: Column }) => {
  const { column, isDescending } = order.value
  const isChosen = column === id
  const sort = isChosen ? { "aria-sort": isDescending ? ("descending" as const) : ("ascending" as const) } : {}
  return (
    <th scope="col" class={`c-${id} ${isNumber === true ? "number" : ""}`} {...sort}>
      <button class="plain" title={id === "age" ? "" : "orders the runs that are loaded"} onClick={() => orderBy(id)}>
        {sentence(id)}
        {isChosen && <Icon name={isDescending ? "arrow-down" : "arrow-up"} />}
      </button>
    </th>
  )
}

const Row = ({ line }: { line: RunLine }) => (
  <tr class={`row ${line.status.type}`}>
    <td>
      <input
        type="checkbox"
        aria-label={`Select ${line.title.slice(0, 40) || line.runId}`}
        checked={selected.value.has(line.runId)}
        onChange={() => toggle(line.runId)}
      />
    </td>
    {shownColumns.value.map(({ draw, id, isNumber }) => (
      <td key={id} class={`c-${id} ${isNumber === true ? "number" : ""}`}>
        {draw(line)}
      </td>
    ))}
  </tr>
)

/** The list of runs: those that wait for a person first. */

import { useEffect } from "preact/hooks"
import type { RunLine } from "../internal/studioData.ts"
import { ago, cost, counted, excerpt } from "./format.ts"
import { Icon } from "./icons.tsx"
import { attempt, data, filter, filterOf, next, readRuns, runAddress, runs, runsRead } from "./pageStore.ts"
import { StatusChip } from "./status.tsx"

export const RunsView = () => {
  useEffect(() => {
    void attempt(readRuns)
    if (data().isFile) return
    const timer = setInterval(() => {
      if (next.value === undefined || runs.value.length <= 100) void attempt(readRuns)
    }, 2_000)
    return () => clearInterval(timer)
  }, [])
  const lines = runs.value.filter(filterOf(filter.value).keeps)
  const waiting = lines.filter(({ status }) => status.type === "waiting")
  const others = lines.filter(({ status }) => status.type !== "waiting")
  return (
    <section class="screen" aria-label="Runs">
      <header>
        <h1>Runs</h1>
        <Filter />
      </header>
      {waiting.length > 0 && <List title="Needs you" lines={waiting} />}
      {others.length > 0 && <List title="Runs" lines={others} />}
      {lines.length === 0 && runsRead.value && <Empty />}
      {next.value !== undefined && <button onClick={() => void attempt(() => readRuns(true))}>More runs</button>}
    </section>
  )
}

const change = (text: string) => {
  filter.value = text
  void attempt(readRuns)
}

const Filter = () => (
  <p class="filter">
    <Icon name="search" />
    <input
      data-filter
      type="search"
      aria-label="Filter runs"
      placeholder="status:failed agent:clerk tenant:acme errors&gt;0 cost&gt;0.1 words  ( / )"
      value={filter.value}
      onInput={(event) => change(event.currentTarget.value)}
    />
  </p>
)

const Empty = () =>
  filter.value === "" ? (
    <div class="empty">
      <h2>No runs yet</h2>
      <p>
        <code>kernai run --store runs.db "a question"</code> stores one. Without a key, start <code>kernai studio</code>{" "}
        without a store: it plays a recorded run.
      </p>
    </div>
  ) : (
    <div class="empty">
      <h2>No run fits the filter</h2>
      <button onClick={() => change("")}>{filter.value} ×</button>
    </div>
  )

const List = ({ lines, title }: { title: string; lines: ReadonlyArray<RunLine> }) => (
  <>
    <h2>{title}</h2>
    <ul class="list">
      {lines.map((line) => (
        <li key={line.runId}>
          <a data-row href={runAddress(line.runId)} class={`row ${line.status.type}`}>
            <span>
              <StatusChip status={line.status.type} />
            </span>
            <span class="agent">
              {line.agent}
              {line.caller?.tenant !== undefined && ` · ${line.caller.tenant}`}
            </span>
            <span class="words">
              {excerpt(line.words, 120)}
              {line.errors !== undefined && line.errors > 0 && <span class="badge error">{line.errors} failed</span>}
              <em>{reasonOf(line)}</em>
            </span>
            <span class="quiet">
              {counted(line.turns, "turn")}
              {line.costUsd !== undefined && `, ${cost(line.costUsd)}`}
            </span>
            <time class="quiet end" dateTime={new Date(line.updatedAt).toISOString()}>
              {ago(line.updatedAt)}
            </time>
          </a>
        </li>
      ))}
    </ul>
  </>
)

const reasonOf = ({ status }: RunLine): string => {
  switch (status.type) {
    case "no_answer":
      return ` ${excerpt(status.reason, 120)}`
    case "failed":
      return ` ${status.error.tag}: ${excerpt(status.error.message, 120)}`
    case "waiting":
      return ` ${status.reason}`
    default:
      return ""
  }
}

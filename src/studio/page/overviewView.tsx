/** Runs over time: how many started, and how they ended, by agent. Each bar leads to its runs. */

import { useSignal } from "@preact/signals"
import { useEffect, useRef } from "preact/hooks"
import type { RunCount } from "../../RunStore.ts"
import type { Overview } from "../internal/studioOverview.ts"
import { named, sentence } from "./format.ts"
import { attempt, data, go, place, setQuery } from "./pageStore.ts"
import { Skeleton } from "./skeleton.tsx"
import { StatusShape } from "./status.tsx"
import { isDark } from "./theme.ts"

const hour = 3_600_000
const ranges = { "1h": hour, "24h": 24 * hour, "7d": 7 * 24 * hour, "30d": 30 * 24 * hour } as const
type RangeName = keyof typeof ranges
const names: ReadonlyArray<RangeName> = ["1h", "24h", "7d", "30d"]
const slots = 48

/** The statuses from the bottom of a bar to its top, with the tokens of their colors. */
const statuses = [
  ["completed", "done"],
  ["running", "running"],
  ["waiting", "waiting"],
  ["cancelled", "stopped"],
  ["no_answer", "none"],
  ["failed", "error"]
] as const

type Status = (typeof statuses)[number][0]

const statusOf = ({ status }: RunCount): string => (status === "poisoned" ? "failed" : status)

export const OverviewView = () => {
  const overview = useSignal<Overview | undefined>(undefined)
  const range = names.find((name) => name === place.value.query.get("range")) ?? "24h"
  useEffect(() => {
    const read = async () => {
      const to = Date.now()
      overview.value = await data().overview({ from: to - ranges[range], to, slots })
    }
    void attempt(read)
    const timer = setInterval(() => void attempt(read), 10_000)
    return () => clearInterval(timer)
  }, [range])
  return (
    <section class="screen" aria-label="Overview">
      <header>
        <h1>Overview</h1>
        <div class="segments" role="group" aria-label="Range">
          {names.map((name) => (
            <button key={name} aria-pressed={range === name} onClick={() => setQuery("range", name)}>
              {name}
            </button>
          ))}
        </div>
      </header>
      {overview.value === undefined ? <Skeleton label="counting the runs" /> : <Figures overview={overview.value} />}
    </section>
  )
}

const Figures = ({ overview }: { overview: Overview }) => {
  const { counts } = overview
  const sum = (status?: Status) =>
    counts.reduce((all, one) => (status === undefined || statusOf(one) === status ? all + one.count : all), 0)
  return (
    <>
      <div class="figures">
        <a class="figure" href="#/">
          <b>{sum().toLocaleString("en")}</b>
          <span>runs</span>
        </a>
        {statuses.map(([status]) => (
          <a key={status} class="figure" href={`#/?q=status:${status}`}>
            <b>{sum(status).toLocaleString("en")}</b>
            <span>
              <StatusShape status={status} /> {named(status)}
            </span>
          </a>
        ))}
      </div>
      <div class="card">
        <h2>Runs by the time of their start</h2>
        <RunsChart overview={overview} />
      </div>
      <div class="card">
        <h2>By agent</h2>
        <Agents counts={counts} />
      </div>
    </>
  )
}

const RunsChart = ({ overview }: { overview: Overview }) => {
  const element = useRef<HTMLDivElement>(null)
  const dark = isDark.value
  useEffect(() => {
    let remove = () => {}
    let isGone = false
    void attempt(async () => {
      const { draw } = await loadCharts()
      if (element.current === null || isGone) return
      remove = draw(element.current, chartOf(overview, element.current))
    })
    return () => {
      isGone = true
      remove()
    }
  }, [overview, dark])
  return (
    <div class="chart" ref={element} role="img" aria-label={`${overview.counts.length} groups of runs over time`} />
  )
}

/** Loads the charts, which are a file beside the script of the page. */
const loadCharts = (): Promise<typeof import("./charts.ts")> => import(new URL("charts.js", import.meta.url).href)

const chartOf = ({ counts, from, to }: Overview, element: HTMLElement) => {
  const width = (to - from) / slots
  const color = (token: string) => {
    element.style.color = `var(--${token})`
    return getComputedStyle(element).color
  }
  return {
    times: Array.from({ length: slots }, (_, slot) => from + slot * width),
    end: to,
    ink: color("quiet"),
    line: color("line-soft"),
    series: statuses.toReversed().map(([status, token]) => ({
      label: named(status),
      color: color(token),
      values: Array.from({ length: slots }, (_, slot) =>
        counts.reduce((sum, one) => (one.slot === slot && statusOf(one) === status ? sum + one.count : sum), 0)
      )
    })),
    onSlot: (slot: number) => {
      const worst = statuses.findLast(([status]) => counts.some((one) => one.slot === slot && statusOf(one) === status))
      if (worst !== undefined) go(`#/?q=status:${worst[0]}`)
    }
  }
}

const Agents = ({ counts }: { counts: ReadonlyArray<RunCount> }) => {
  const agents = [...new Set(counts.map(({ agent }) => agent))].toSorted()
  const of = (agent: string, status: Status) =>
    counts.reduce((sum, one) => (one.agent === agent && statusOf(one) === status ? sum + one.count : sum), 0)
  if (agents.length === 0) return <p class="quiet">No run started in this range.</p>
  return (
    <div class="wide" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Agent</th>
            {statuses.map(([status]) => (
              <th key={status} scope="col" class="number">
                {sentence(named(status))}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {agents.map((agent) => (
            <tr key={agent}>
              <th scope="row">
                <a href={`#/?q=agent:${agent}`}>{agent}</a>
              </th>
              {statuses.map(([status]) => (
                <td key={status} class="number">
                  {of(agent, status)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

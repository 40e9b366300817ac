/** Runs over time: how many started, how they ended, what they used, by agent and model. Each bar leads to its runs. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { RunCount, RunSpending } from "../../RunStore.ts"
import type { Overview } from "../internal/studioOverview.ts"
import { cost, duration, named, sentence, short } from "./format.ts"
import { type Measure, measures, OverviewChart, statuses, statusOf } from "./overviewChart.tsx"
import { attempt, data, place, setQuery } from "./pageStore.ts"
import { Skeleton } from "./skeleton.tsx"
import { commonest, type Sums, sumsOf } from "./spending.ts"
import { StatusShape } from "./status.tsx"

const hour = 3_600_000
const ranges = { "1h": hour, "24h": 24 * hour, "7d": 7 * 24 * hour, "30d": 30 * 24 * hour } as const
type RangeName = keyof typeof ranges
const names: ReadonlyArray<RangeName> = ["1h", "24h", "7d", "30d"]
const slots = 48

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
        <Choice label="Range" of={names} chosen={range} onChoose={(name) => setQuery("range", name)} />
      </header>
      {overview.value === undefined ? <Skeleton label="counting the runs" /> : <Figures overview={overview.value} />}
    </section>
  )
}

interface ChoiceProps<A extends string> {
  readonly label: string
  readonly of: ReadonlyArray<A>
  readonly chosen: A
  readonly onChoose: (one: A) => void
}

const Choice = <A extends string>({ chosen, label, of, onChoose }: ChoiceProps<A>) => (
  <div class="segments" role="group" aria-label={label}>
    {of.map((one) => (
      <button key={one} aria-pressed={chosen === one} onClick={() => onChoose(one)}>
        {one}
      </button>
    ))}
  </div>
)

const Figures = ({ overview }: { overview: Overview }) => {
  const { counts, from, spending } = overview
  const measure = measures.find((name) => name === place.value.query.get("chart")) ?? "runs"
  const since = `since:${new Date(from).toISOString()}`
  const sum = (status?: string) =>
    counts.reduce((all, one) => (status === undefined || statusOf(one) === status ? all + one.count : all), 0)
  return (
    <>
      <div class="figures">
        <a class="figure" href={`#/?q=${since}`}>
          <b>{sum().toLocaleString("en")}</b>
          <span>runs</span>
        </a>
        {statuses.map(([status]) => (
          <a key={status} class="figure" href={`#/?q=status:${status} ${since}`}>
            <b>{sum(status).toLocaleString("en")}</b>
            <span>
              <StatusShape status={status} /> {named(status)}
            </span>
          </a>
        ))}
      </div>
      {spending !== undefined && <Spent sums={sumsOf(spending)} />}
      <div class="card">
        <h2>
          By the time of their start
          {spending !== undefined && (
            <Choice<Measure>
              label="Chart"
              of={measures}
              chosen={measure}
              onChoose={(name) => setQuery("chart", name)}
            />
          )}
        </h2>
        <OverviewChart overview={overview} measure={measure} />
      </div>
      <Agents counts={counts} spending={spending} />
      {spending !== undefined && <Models spending={spending} />}
    </>
  )
}

/** What the sums of runs that ended are called, and how they are drawn. */
const sums: ReadonlyArray<readonly [name: string, draw: (sums: Sums) => string]> = [
  ["cost", ({ costUsd }) => (costUsd === undefined ? "–" : cost(costUsd))],
  ["tokens", ({ tokens }) => short(tokens)],
  ["half within", ({ half, runs }) => (runs === 0 ? "–" : duration(half))],
  ["95% within", ({ most, runs }) => (runs === 0 ? "–" : duration(most))]
]

const Spent = ({ sums: found }: { sums: Sums }) => (
  <div class="figures">
    {sums.map(([name, draw]) => (
      <div key={name} class="figure" title="Of the runs that have ended">
        <b>{draw(found)}</b>
        <span>{name}</span>
      </div>
    ))}
  </div>
)

interface AgentsProps {
  readonly counts: ReadonlyArray<RunCount>
  readonly spending: ReadonlyArray<RunSpending> | undefined
}

const Agents = ({ counts, spending }: AgentsProps) => {
  const agents = [...new Set(counts.map(({ agent }) => agent))].toSorted()
  const of = (agent: string, status: string) =>
    counts.reduce((sum, one) => (one.agent === agent && statusOf(one) === status ? sum + one.count : sum), 0)
  return (
    <Groups
      title="By agent"
      heads={[
        ...statuses.map(([status]) => named(status)),
        ...(spending === undefined ? [] : sums.map(([name]) => name))
      ]}
      rows={agents.map((agent) => ({
        name: agent,
        href: `#/?q=agent:${agent}`,
        values: [
          ...statuses.map(([status]) => of(agent, status).toLocaleString("en")),
          ...(spending === undefined ? [] : drawn(spending.filter((line) => line.agent === agent)))
        ]
      }))}
    />
  )
}

const Models = ({ spending }: { spending: ReadonlyArray<RunSpending> }) => (
  <Groups
    title="By model of the last reply"
    heads={["runs", ...sums.map(([name]) => name)]}
    rows={commonest(spending, "model").map((model) => {
      const own = spending.filter((line) => line.model === model)
      return {
        name: model,
        href: `#/?q=${encodeURIComponent(`model:${model}`)}`,
        values: [sumsOf(own).runs.toLocaleString("en"), ...drawn(own)]
      }
    })}
  />
)

const drawn = (lines: ReadonlyArray<RunSpending>): ReadonlyArray<string> => {
  const found = sumsOf(lines)
  return sums.map(([, draw]) => draw(found))
}

interface GroupsProps {
  readonly title: string
  readonly heads: ReadonlyArray<string>
  readonly rows: ReadonlyArray<{
    readonly name: string
    readonly href?: string
    readonly values: ReadonlyArray<string>
  }>
}

const Groups = ({ heads, rows, title }: GroupsProps) => (
  <div class="card">
    <h2>{title}</h2>
    {rows.length === 0 ? (
      <p class="quiet">No run of this range.</p>
    ) : (
      <div class="wide" role="region" aria-label={title} tabIndex={0}>
        <table class="groups">
          <thead>
            <tr>
              <th scope="col">Name</th>
              {heads.map((head) => (
                <th key={head} scope="col" class="number">
                  {sentence(head)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ href, name, values }) => (
              <tr key={name}>
                <th scope="row">{href === undefined ? name : <a href={href}>{name}</a>}</th>
                {values.map((value, index) => (
                  <td key={heads[index]} class="number">
                    {value}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </div>
)

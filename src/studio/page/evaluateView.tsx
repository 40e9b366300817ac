/** Evaluations: experiments over time, data sets, and scores by people. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { Experiment } from "../internal/experiments.ts"
import type { DataSet, Score } from "../internal/keptLines.ts"
import { DataSets, Scores } from "./collected.tsx"
import { ago, cost, duration } from "./format.ts"
import { attempt, data } from "./pageStore.ts"
import { SkeletonScreen } from "./skeleton.tsx"
import { StatusChip } from "./status.tsx"

export const EvaluateView = () => {
  const known = useSignal<Known | undefined>(undefined)
  useEffect(() => void attempt(async () => (known.value = await read())), [])
  if (known.value === undefined) return <SkeletonScreen title="Evaluate" label="reading the reports" />
  const { experiments, scores, sets } = known.value
  const names = [...new Set(experiments.map(({ name }) => name))]
  return (
    <section class="screen" aria-label="Evaluate">
      <header>
        <h1>Evaluate</h1>
      </header>
      {names.length === 0 && <NoExperiment />}
      {names.map((name) => (
        <Experiments key={name} name={name} experiments={experiments.filter((one) => one.name === name)} />
      ))}
      <DataSets sets={sets} />
      <Scores scores={scores} />
    </section>
  )
}

interface Known {
  readonly experiments: ReadonlyArray<Experiment>
  readonly sets: ReadonlyArray<DataSet>
  readonly scores: ReadonlyArray<Score>
}

const read = async (): Promise<Known> => {
  const [experiments, sets, scores] = await Promise.all([data().experiments(), data().dataSets(), data().scores()])
  return { experiments, sets, scores }
}

const NoExperiment = () => (
  <div class="empty">
    <h2>No experiment yet</h2>
    <p>
      <code>kernai eval capitals.jsonl --scorer contains --threshold 0.9</code> asks every question of a data set and
      writes a report, which is shown here.
    </p>
  </div>
)

export const addressOf = (file: string): string => `#/evaluate/${encodeURIComponent(file)}`

export const percent = (share: number): string => `${Math.round(share * 100)}%`

/** The experiments with one data set, the newest first: how many answers were right, and whether that was enough. */
const Experiments = ({ experiments, name }: { name: string; experiments: ReadonlyArray<Experiment> }) => (
  <div class="card">
    <h2>{name}</h2>
    <Course experiments={experiments.slice(0, mostBars).toReversed()} />
    <div class="wide" role="region" aria-label={`Experiments with ${name}`} tabIndex={0}>
      <table class="experiments">
        <thead>
          <tr>
            {["Gate", "Started", "Passed", "Change", "Scores", "Cost", "Took"].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {experiments.map((experiment, index) => (
            <Row key={experiment.file} experiment={experiment} before={experiments[index + 1]} />
          ))}
        </tbody>
      </table>
    </div>
  </div>
)

const mostBars = 40

/** A bar for each experiment, as high as its pass rate, with a mark at the rate that it needed. */
const Course = ({ experiments }: { experiments: ReadonlyArray<Experiment> }) => (
  <div class="course">
    {experiments.map(({ file, ok, passRate, startedAt, threshold }) => (
      <a
        key={file}
        href={addressOf(file)}
        class={ok ? "ok" : "error"}
        title={`${percent(passRate)} passed ${ago(startedAt)}, needed: ${percent(threshold)}`}
      >
        <i style={{ height: percent(passRate) }} />
        <u style={{ bottom: percent(threshold) }} />
      </a>
    ))}
  </div>
)

interface RowProps {
  readonly experiment: Experiment
  /** The experiment before this one. */
  readonly before: Experiment | undefined
}

const Row = ({ before, experiment }: RowProps) => {
  const { attempts, costUsd, file, finishedAt, interval, passRate, passed, scorers, skipped, startedAt } = experiment
  return (
    <tr>
      <td>
        <Gate experiment={experiment} />
      </td>
      <td>
        <a data-row href={addressOf(file)}>
          {ago(startedAt)}
        </a>
      </td>
      <td>
        <b>{percent(passRate)}</b>{" "}
        <span class="quiet">
          {passed} of {attempts - skipped}, 95% interval {percent(interval[0])} to {percent(interval[1])}
        </span>
      </td>
      <td data-name="change">{before === undefined ? "–" : changeOf(passRate - before.passRate)}</td>
      <td data-name="scores">{scorers.map(({ mean, name }) => `${name} ${mean.toFixed(2)}`).join(", ")}</td>
      <td data-name="cost">{costUsd === null ? "–" : cost(costUsd)}</td>
      <td data-name="took">{duration(finishedAt - startedAt)}</td>
    </tr>
  )
}

/** Whether the pass rate was high enough. */
export const Gate = ({ experiment: { ok, threshold } }: { experiment: Experiment }) => (
  <StatusChip status={ok ? "ok" : "error"}>{`${ok ? "Reached" : "Below"} ${percent(threshold)}`}</StatusChip>
)

const changeOf = (change: number): string => {
  const points = Math.round(change * 100)
  return points === 0 ? "±0" : points > 0 ? `+${points}` : `−${-points}`
}

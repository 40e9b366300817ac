/** One experiment: every question with its answers, those that did not pass first. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { Attempt, Case, ExperimentReport } from "../internal/experiments.ts"
import { Gate, percent } from "./evaluateView.tsx"
import { counted, duration, json, sentence } from "./format.ts"
import { attempt, data, place, setQuery } from "./pageStore.ts"
import { SkeletonScreen } from "./skeleton.tsx"
import { StatusShape } from "./status.tsx"

export const ExperimentView = ({ file }: { file: string }) => {
  const report = useSignal<ExperimentReport | undefined>(undefined)
  useEffect(() => void attempt(async () => (report.value = await data().experiment(file))), [])
  const found = report.value
  if (found === undefined) return <SkeletonScreen title="Experiment" label="reading the report" />
  const isAll = place.value.query.get("show") === "all"
  const failing = found.cases.filter((one) => !isPassed(one))
  const cases = isAll ? [...failing, ...found.cases.filter(isPassed)] : failing
  return (
    <section class="screen" aria-label="Experiment">
      <header>
        <h1>{found.name}</h1>
        <Gate experiment={found} />
        <span class="quiet">
          {percent(found.passRate)} of {counted(found.attempts - found.skipped, "attempt")} passed,{" "}
          {new Date(found.startedAt).toLocaleString()}
        </span>
        <div class="segments" role="group" aria-label="Questions">
          <button aria-pressed={!isAll} onClick={() => setQuery("show", undefined)}>
            Not passed {failing.length}
          </button>
          <button aria-pressed={isAll} onClick={() => setQuery("show", "all")}>
            All {found.cases.length}
          </button>
        </div>
        <a class="button" href="#/evaluate">
          All experiments
        </a>
      </header>
      {cases.length === 0 && <p class="empty">Every question passed.</p>}
      {cases.map((one) => (
        <CaseCard key={one.id} question={one} />
      ))}
    </section>
  )
}

const isPassed = ({ attempts }: Case): boolean => attempts.every(({ outcome }) => outcome === "passed")

const CaseCard = ({ question: { attempts, expected, id, input } }: { question: Case }) => (
  <article class="card" aria-label={id}>
    <h2>{id}</h2>
    <dl class="sides">
      <div>
        <dt>Question</dt>
        <dd>{input}</dd>
      </div>
      {expected !== undefined && (
        <div>
          <dt>Expected</dt>
          <dd>{json(expected)}</dd>
        </div>
      )}
    </dl>
    {attempts.map((attempt, index) => (
      <AttemptLine key={index} attempt={attempt} />
    ))}
  </article>
)

const shapes = { passed: "ok", failed: "error", error: "error", skipped: "cancelled" } as const

const AttemptLine = ({ attempt: { answer, durationMs, outcome, reason, scores } }: { attempt: Attempt }) => (
  <div class="answer">
    <p>
      <StatusShape status={shapes[outcome]} /> <b>{outcome === "error" ? "No answer" : sentence(outcome)}</b>{" "}
      <span class="quiet">
        {scores.map(({ score, scorer }) => `${scorer} ${score.toFixed(2)}, `)}
        {duration(durationMs)}
      </span>
    </p>
    {reason !== null && <p class="error">{reason}</p>}
    {answer !== null && <pre>{answer}</pre>}
  </div>
)

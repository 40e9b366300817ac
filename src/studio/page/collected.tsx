/** What people collected of runs: data sets, and scores. */

import { useSignal } from "@preact/signals"
import type { DataSet, Score } from "../internal/keptLines.ts"
import { counted, excerpt, json } from "./format.ts"
import { runAddress } from "./pageStore.ts"
import { countsOf, ScoreLine } from "./scoreSheet.tsx"

export const DataSets = ({ sets }: { sets: ReadonlyArray<DataSet> }) => (
  <div class="card">
    <h2>Data sets</h2>
    {sets.length === 0 && <p class="quiet">“Add to data set” of a run keeps its question and the right answer.</p>}
    {sets.map(({ count, file, name, rows }) => (
      <details key={name}>
        <summary>
          <b>{name}</b> <span class="quiet">{counted(count, "row")}</span> <code>kernai eval {file}</code>
        </summary>
        {rows.map(({ expected, id, input, run_id }) => (
          <dl key={id} class="sides">
            <div>
              <dt>Question</dt>
              <dd>{run_id === undefined ? input : <a href={runAddress(run_id)}>{input}</a>}</dd>
            </div>
            {expected !== undefined && (
              <div>
                <dt>Expected</dt>
                <dd>{excerpt(json(expected), 400)}</dd>
              </div>
            )}
          </dl>
        ))}
      </details>
    ))}
  </div>
)

const mostScores = 50

export const Scores = ({ scores }: { scores: ReadonlyArray<Score> }) => {
  const chosen = useSignal("")
  const shown = scores.filter(({ labels = [] }) => chosen.value === "" || labels.includes(chosen.value))
  const good = shown.filter((score) => score.good).length
  return (
    <div class="card">
      <h2>Scores by people</h2>
      {scores.length === 0 ? (
        <p class="quiet">“Score” of a run keeps what people think of its answer.</p>
      ) : (
        <p class="quiet">
          {good} of {shown.length} good
        </p>
      )}
      <div class="actions" role="group" aria-label="Scores with a label">
        {countsOf(scores).map(([label, count]) => (
          <button
            key={label}
            class="tag"
            aria-pressed={chosen.value === label}
            onClick={() => (chosen.value = chosen.value === label ? "" : label)}
          >
            {label} {count}
          </button>
        ))}
      </div>
      {shown.slice(0, mostScores).map((score) => (
        <a key={`${score.run_id} ${score.by}`} class="scored" data-row href={runAddress(score.run_id)}>
          <ScoreLine score={score} />
        </a>
      ))}
    </div>
  )
}

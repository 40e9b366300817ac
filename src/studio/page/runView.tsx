/** A run at a revision: banner, film strip, tree, tabs and inspector. */

import { useEffect } from "preact/hooks"
import type { RunState } from "../../RunState.ts"
import { statusOf } from "../../store-kit/StoreRules.ts"
import { causeOf, ofDamage } from "../FailureCause.ts"
import { QuestionCard } from "./questionCard.tsx"
import { FilmStrip } from "./filmStrip.tsx"
import { cost, excerpt, named, shapeOf, wordsOf } from "./format.ts"
import { ForkButton } from "./forkSheet.tsx"
import { Inspector } from "./inspector.tsx"
import { closeRun, openRun, problem, revision, run, said, setRevision, state } from "./openRun.ts"
import { attempt, canChange, data, runAddress, setQuery, tab, tabs } from "./pageStore.ts"
import { TabBody } from "./tabBody.tsx"
import { TreePanel } from "./treePanel.tsx"

export const RunView = ({ runId }: { runId: string }) => {
  useEffect(() => {
    void openRun(runId)
    return closeRun
  }, [runId])
  if (problem.value !== "") return <p class="notice error">{problem.value}</p>
  if (run.value === undefined || state.value === undefined) return <p class="quiet">reading the journal</p>
  return (
    <div class="run">
      <Heading />
      <Questions />
      <FilmStrip />
      <div class="columns">
        <TreePanel />
        <section class="body" aria-label="Run">
          <Tabs />
          <div role="tabpanel" aria-label={tab.value}>
            <TabBody />
          </div>
          <p class="said" role="status" aria-live="polite" aria-busy={said.value !== ""}>
            {said.value}
          </p>
        </section>
        <Inspector />
      </div>
    </div>
  )
}

const Heading = () => {
  const shown = state.value
  const open = run.value
  if (shown === undefined || open === undefined) return null
  const { agent, costUsd, forkedFrom, runId } = shown
  const status = statusOf(shown.status)
  return (
    <div class={`heading ${status.type}`}>
      <h1>
        <span class="status">
          {shapeOf(status.type)} {named(status.type)}
        </span>{" "}
        {agent} <small class="quiet">{runId}</small>
      </h1>
      {forkedFrom !== undefined && (
        <p>
          fork of <a href={`${runAddress(forkedFrom.runId)}?rev=${forkedFrom.revision}`}>{forkedFrom.runId}</a> at
          revision {forkedFrom.revision}
        </p>
      )}
      <Banner />
      <p class="actions">
        <span class="quiet">{cost(costUsd)}</span>
        {canChange.value && revision.value === open.journal.revision && status.type === "running" && (
          <button data-key="s" onClick={() => void attempt(() => data().cancel(shown.rootRunId))}>
            stop
          </button>
        )}
        {canChange.value && revision.value === open.journal.revision && isRetryable(shown) && (
          <button onClick={() => void attempt(() => data().retry(shown.rootRunId))}>retry</button>
        )}
        {canChange.value && <ForkButton />}
        {!data().isFile && (
          <a href={data().exportUrl(runId)} download>
            export
          </a>
        )}
      </p>
    </div>
  )
}

/** Returns whether workers may take the run again: it failed, got no answer, or was paused by a hook. */
const isRetryable = ({ questions, status: { type } }: RunState): boolean =>
  type === "failed" || (type === "paused" && questions.every(({ answer }) => answer !== undefined))

const Banner = () => {
  const open = run.value
  const shown = state.value
  if (open === undefined || shown === undefined) return null
  const cause = open.damage === undefined ? causeOf(shown) : ofDamage(open.damage)
  if (cause === undefined) return null
  const row = open.journal.errors.at(-1)
  return (
    <p class="banner error" role="alert">
      <b>{cause.name}</b>: {excerpt(cause.cause, 200)}{" "}
      {row !== undefined && <button onClick={() => setRevision(row.revision)}>go to rev {row.revision}</button>}{" "}
      <button onClick={() => setQuery("tab", "Explain")}>explain</button>
    </p>
  )
}

const Questions = () => {
  const shown = state.value
  const open = run.value
  if (shown === undefined || open === undefined || revision.value !== open.journal.revision) return null
  const asked = shown.questions.filter(({ answer }) => answer === undefined)
  return (
    <>
      {asked.map((question) => (
        <QuestionCard
          key={question.callId}
          rootRunId={shown.rootRunId}
          question={question}
          asked={wordsOf(shown.input.at(-1))}
        />
      ))}
    </>
  )
}

const Tabs = () => {
  const rows = run.value?.journal.rows.length ?? 0
  const errors = run.value?.journal.errors.length ?? 0
  return (
    <div class="tabs" role="tablist">
      {tabs.map((name) => (
        <button key={name} role="tab" aria-selected={tab.value === name} onClick={() => setQuery("tab", name)}>
          {name} {name === "Events" && <span class="badge">{rows}</span>}
          {name === "Explain" && errors > 0 && <span class="badge error">{errors}</span>}
        </button>
      ))}
    </div>
  )
}

/** A run at a revision: its heading, questions, tree, tabs, and the bar that replays it. */

import { useEffect } from "preact/hooks"
import { wordsOf } from "../internal/runTitle.ts"
import { FilmStrip } from "./filmStrip.tsx"
import { closeRun, openRun, problem, revision, run, said, state } from "./openRun.ts"
import { setQuery, tab, tabs } from "./pageStore.ts"
import { QuestionCard } from "./questionCard.tsx"
import { RunHeading } from "./runHeading.tsx"
import { SkeletonScreen } from "./skeleton.tsx"
import { TabBody } from "./tabBody.tsx"
import { TreePanel } from "./treePanel.tsx"

export const RunView = ({ runId }: { runId: string }) => {
  useEffect(() => void openRun(runId), [runId])
  useEffect(() => closeRun, [])
  if (problem.value !== "") {
    return (
      <div class="empty">
        <h1>Run</h1>
        <p class="error">{problem.value}</p>
      </div>
    )
  }
  if (run.value === undefined || state.value === undefined) {
    return <SkeletonScreen title="Run" label="reading the journal" />
  }
  return (
    <div class="run">
      <RunHeading />
      <div class="columns">
        <TreePanel />
        <section class="body" aria-label="Run">
          <Questions />
          <Tabs />
          <div role="tabpanel" aria-label={tab.value} tabIndex={0}>
            <TabBody />
          </div>
          <p class="said" role="status" aria-live="polite" aria-busy={said.value !== ""}>
            {said.value}
          </p>
        </section>
      </div>
      <FilmStrip />
    </div>
  )
}

const Questions = () => {
  const shown = state.value
  const open = run.value
  if (shown === undefined || open === undefined || revision.value !== open.journal.revision) return null
  const asked = shown.questions.filter(({ answer, asking }) => answer === undefined && asking?.isTimer !== true)
  if (asked.length === 0) return null
  return (
    <div class="questions">
      {asked.map((question) => (
        <QuestionCard
          key={question.callId}
          rootRunId={shown.rootRunId}
          question={question}
          asked={wordsOf(shown.input.at(-1))}
        />
      ))}
    </div>
  )
}

/** The tabs. Arrow keys move between them, as in every list of tabs. */
const Tabs = () => {
  const rows = run.value?.journal.rows.length ?? 0
  const errors = run.value?.journal.errors.length ?? 0
  const move = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0
    const next = tabs[(tabs.indexOf(tab.value) + by + tabs.length) % tabs.length]
    if (by === 0 || next === undefined) return
    setQuery("tab", next)
    if (event.currentTarget instanceof HTMLElement) {
      event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")[tabs.indexOf(next)]?.focus()
    }
  }
  return (
    <div class="tabs" role="tablist" onKeyDown={move}>
      {tabs.map((name) => (
        <button
          key={name}
          role="tab"
          aria-selected={tab.value === name}
          tabIndex={tab.value === name ? 0 : -1}
          onClick={() => setQuery("tab", name)}
        >
          {name} {name === "Events" && <span class="badge">{rows}</span>}
          {name === "Explain" && errors > 0 && <span class="badge error">{errors}</span>}
        </button>
      ))}
    </div>
  )
}

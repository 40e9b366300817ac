/** The frame of the page: the bar, the notice, and the screen of the address. */

import { useEffect } from "preact/hooks"
import { QuestionsView } from "./questionsView.tsx"
import { ChatView } from "./chatView.tsx"
import { KeyList } from "./keyList.tsx"
import { questions, attempt, canChange, data, info, notice, place, readQuestions, showKeys } from "./pageStore.ts"
import { RunView } from "./runView.tsx"
import { RunsView } from "./runsView.tsx"
import { ScenariosView } from "./scenariosView.tsx"

export const App = () => {
  useEffect(() => {
    if (data().isFile) return
    const read = () => void attempt(readQuestions)
    read()
    const timer = setInterval(read, 3_000)
    return () => clearInterval(timer)
  }, [])
  return (
    <>
      <Bar />
      {notice.value !== "" && (
        <p class="notice" role="alert">
          {notice.value} <button onClick={() => (notice.value = "")}>dismiss</button>
        </p>
      )}
      <main>
        <Screen />
      </main>
      {showKeys.value && <KeyList />}
    </>
  )
}

const Screen = () => {
  switch (place.value.screen) {
    case "run":
      return <RunView key={place.value.id} runId={place.value.id} />
    case "questions":
      return <QuestionsView />
    case "chat":
      return (
        <ChatView key={`${place.value.id}/${place.value.sub}`} agent={place.value.id} conversation={place.value.sub} />
      )
    case "scenarios":
      return <ScenariosView />
    default:
      return <RunsView />
  }
}

const Bar = () => {
  const { screen } = place.value
  const waits = questions.value.length
  const current = (name: string) => (screen === name ? { "aria-current": "page" as const } : {})
  return (
    <header>
      <nav aria-label="Screens">
        <b>kernai</b>
        <a href="#/" {...current("runs")}>
          Runs
        </a>
        {!data().isFile && (
          <>
            <a href="#/questions" {...current("questions")}>
              Approvals {waits > 0 && <span class="badge waiting">{waits}</span>}
            </a>
            <a href={`#/chat/${encodeURIComponent(info.value.agents[0]?.name ?? "")}`} {...current("chat")}>
              Chat
            </a>
            {info.value.scenarios && (
              <a href="#/scenarios" {...current("scenarios")}>
                Scenarios
              </a>
            )}
          </>
        )}
      </nav>
      {!canChange.value && <span class="quiet">{data().isFile ? "exported run" : "read-only"}</span>}
      <button aria-label="Keys" title="Keys (?)" onClick={() => (showKeys.value = true)}>
        ?
      </button>
    </header>
  )
}

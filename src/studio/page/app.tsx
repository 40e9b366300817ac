/** The frame of the page: the navigation, the screen of the address, and toasts. */

import { useEffect } from "preact/hooks"
import { ChatView } from "./chatView.tsx"
import { CompareView } from "./compareView.tsx"
import { EvaluateView } from "./evaluateView.tsx"
import { ExperimentView } from "./experimentView.tsx"
import { KeyList } from "./keyList.tsx"
import { data, place, showKeys } from "./pageStore.ts"
import { OperateView } from "./operateView.tsx"
import { OverviewView } from "./overviewView.tsx"
import { PlayView } from "./playView.tsx"
import { QuestionsView } from "./questionsView.tsx"
import { RunView } from "./runView.tsx"
import { RunsView } from "./runsView.tsx"
import { ScenariosView } from "./scenariosView.tsx"
import { SideBar } from "./sideBar.tsx"
import { Toasts } from "./toasts.tsx"
import { followWaiting } from "./waitingStore.ts"

const titles = {
  overview: "Overview",
  runs: "Runs",
  run: "Run",
  questions: "Approvals",
  chat: "Chat",
  operate: "Operate",
  scenarios: "Scenarios",
  evaluate: "Evaluate",
  compare: "Compare",
  play: "Playground"
} as const

export const App = () => {
  const { id, screen } = place.value
  useEffect(() => {
    if (!data().isFile) followWaiting()
  }, [])
  useEffect(() => {
    document.title = `${titles[screen]} · kernai`
  }, [screen, id])
  return (
    <>
      <div class="app">
        <SideBar />
        <main>
          <Screen />
        </main>
      </div>
      <Toasts />
      {showKeys.value && <KeyList />}
    </>
  )
}

const Screen = () => {
  const { id, parts, screen, sub } = place.value
  switch (screen) {
    case "overview":
      return <OverviewView />
    case "run":
      return <RunView runId={id} />
    case "questions":
      return <QuestionsView />
    case "chat":
      return <ChatView key={`${id}/${sub}`} agent={id} conversation={sub} />
    case "operate":
      return <OperateView />
    case "scenarios":
      return <ScenariosView />
    case "compare":
      return <CompareView key={parts.join("/")} runIds={parts} />
    case "play":
      return <PlayView key={id} runId={id} />
    case "evaluate":
      return id === "" ? <EvaluateView /> : <ExperimentView key={id} file={id} />
    default:
      return <RunsView />
  }
}

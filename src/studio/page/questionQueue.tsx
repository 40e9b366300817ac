/** The list of the questions that wait, with a filter by agent and skill. */

import type { WaitingQuestion } from "../internal/studioData.ts"
import { made, wordOf } from "./decisions.ts"
import { ago, sentence } from "./format.ts"
import { place, setQuery } from "./pageStore.ts"
import { agentOf, chosen, select, shown } from "./questionsStore.ts"
import { StatusShape } from "./status.tsx"
import { questions } from "./waitingStore.ts"

export const QuestionQueue = () => (
  <div class="queue">
    <div class="actions">
      <Choice name="agent" values={questions.value.map(agentOf)} />
      <Choice name="skill" values={questions.value.map(({ name }) => name)} />
    </div>
    <ul aria-label="Calls that wait">
      {shown.value.map((question) => (
        <Row key={question.callId} question={question} />
      ))}
    </ul>
  </div>
)

const Row = ({ question }: { question: WaitingQuestion }) => {
  const { agents, callId, name, since, title } = question
  const decision = made.value.get(callId)?.decision
  const isChosen = chosen.value?.callId === callId
  return (
    <li>
      <button
        data-row
        class={decision === undefined ? "waiting" : "decided"}
        {...(isChosen ? { "aria-current": true as const } : {})}
        onFocus={() => select(callId)}
        onClick={() => select(callId)}
      >
        <span class="what">
          {decision === undefined && <StatusShape status="waiting" />}
          <b>{name}</b>
          <small>{decision === undefined ? ago(since) : sentence(wordOf(decision))}</small>
        </span>
        <span class="words">{title}</span>
        <small>{agents.join(" › ")}</small>
      </button>
    </li>
  )
}

const Choice = ({ name, values }: { name: "agent" | "skill"; values: ReadonlyArray<string> }) => {
  const value = place.value.query.get(name) ?? ""
  const names = [...new Set(value === "" ? values : [...values, value])].sort()
  if (names.length < 2 && value === "") return null
  return (
    <select
      aria-label={sentence(name)}
      value={value}
      onChange={({ currentTarget }) => setQuery(name, currentTarget.value === "" ? undefined : currentTarget.value)}
    >
      <option value="">All {name}s</option>
      {names.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  )
}

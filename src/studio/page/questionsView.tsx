/** The questions of all runs: a list beside the question that is selected. */

import { useLayoutEffect } from "preact/hooks"
import type { WaitingQuestion } from "../internal/studioData.ts"
import { made } from "./decisions.ts"
import { canChange } from "./pageStore.ts"
import { person, setPerson } from "./person.ts"
import { QuestionDetail } from "./questionDetail.tsx"
import { QuestionQueue } from "./questionQueue.tsx"
import { chosen, shown } from "./questionsStore.ts"
import { Skeleton } from "./skeleton.tsx"
import { Undo } from "./undo.tsx"
import { hasQuestions, questions } from "./waitingStore.ts"

export const QuestionsView = () => {
  const question = chosen.value
  useLayoutEffect(keepFocus, [question?.callId])
  return (
    <section class="screen approvals" aria-label="Approvals">
      <header>
        <h1>Approvals</h1>
        {canChange.value && <Signature />}
      </header>
      {questions.value.length > 0 && <QuestionQueue />}
      {question !== undefined && <Chosen question={question} />}
      {question === undefined && (hasQuestions.value ? <Nothing /> : <Skeleton label="reading what waits" />)}
    </section>
  )
}

/** Focuses the chosen row if the row that had the focus is gone. */
const keepFocus = () => {
  if (document.activeElement === document.body) {
    document.querySelector<HTMLElement>(".queue [aria-current]")?.focus({ preventScroll: true })
  }
}

const Signature = () => (
  <label class="signature">
    Decided by
    <input
      value={person.value}
      placeholder="Your name"
      autocomplete="name"
      maxLength={60}
      onInput={(event) => setPerson(event.currentTarget.value)}
    />
  </label>
)

const Nothing = () => (
  <div class="empty">
    <h2>Nothing waits for you</h2>
    <p>A policy decides which calls wait for a person: by default, calls that may change something.</p>
  </div>
)

const Chosen = ({ question }: { question: WaitingQuestion }) => (
  <div class="chosen">
    <QuestionDetail
      key={question.callId}
      question={question}
      equal={shown.value.filter((other) => isEqual(question, other))}
    />
    {made.value.size > 0 && <Undo />}
  </div>
)

/** Returns whether two calls that wait are decided alike: the same input of one skill, for the same reason. */
const isEqual = (one: WaitingQuestion, other: WaitingQuestion): boolean =>
  one.name === other.name &&
  one.reason === other.reason &&
  one.asking === undefined &&
  other.asking === undefined &&
  !made.value.has(other.callId) &&
  JSON.stringify(one.input) === JSON.stringify(other.input)

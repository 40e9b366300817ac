/** The questions of all runs. */

import { QuestionCard } from "./questionCard.tsx"
import { questions, runAddress } from "./pageStore.ts"

export const QuestionsView = () => (
  <section aria-label="Approvals">
    <h2>Approvals</h2>
    {questions.value.length === 0 && (
      <div class="empty">
        <h3>Nothing waits for you</h3>
        <p>A policy decides which calls wait for a person: by default, calls that may change something.</p>
      </div>
    )}
    {questions.value.map((question) => (
      <article key={question.callId}>
        <a data-row href={runAddress(question.runId)}>
          {question.agents.join(" › ")}
        </a>
        <QuestionCard rootRunId={question.rootRunId} question={question} since={question.since} />
      </article>
    ))}
  </section>
)

/** The questions of all runs. */

import { QuestionCard } from "./questionCard.tsx"
import { questions, runAddress } from "./pageStore.ts"

export const QuestionsView = () => (
  <section class="screen" aria-label="Approvals">
    <header>
      <h1>Approvals</h1>
    </header>
    {questions.value.length === 0 && (
      <div class="empty">
        <h2>Nothing waits for you</h2>
        <p>A policy decides which calls wait for a person: by default, calls that may change something.</p>
      </div>
    )}
    {questions.value.map((question) => (
      <article key={question.callId} class="question">
        <a data-row href={runAddress(question.runId)}>
          {question.agents.join(" › ")}
        </a>
        <blockquote>{question.asked}</blockquote>
        <QuestionCard
          rootRunId={question.rootRunId}
          question={question}
          since={question.since}
          asked={question.asked}
        />
      </article>
    ))}
  </section>
)

/** The questions of all runs. */

import { ApprovalCard } from "./approvalCard.tsx"
import { approvals, runAddress } from "./pageStore.ts"

export const ApprovalsView = () => (
  <section aria-label="Approvals">
    <h2>Approvals</h2>
    {approvals.value.length === 0 && (
      <div class="empty">
        <h3>Nothing waits for you</h3>
        <p>A policy decides which calls wait for a person: by default, calls that may change something.</p>
      </div>
    )}
    {approvals.value.map((question) => (
      <article key={question.callId}>
        <a data-row href={runAddress(question.runId)}>
          {question.agents.join(" › ")}
        </a>
        <ApprovalCard rootRunId={question.rootRunId} question={question} since={question.since} />
      </article>
    ))}
  </section>
)

/** One question with all that a person needs to decide it, and with the waiting calls that equal it. */

import type { WaitingQuestion } from "../internal/studioData.ts"
import type { Answerers } from "../../Caller.ts"
import { decide } from "./decisions.ts"
import { duration } from "./format.ts"
import { canChange, runAddress } from "./pageStore.ts"
import { QuestionCard } from "./questionCard.tsx"

interface Props {
  readonly question: WaitingQuestion
  /** The undecided questions that equal this one, itself included. */
  readonly equal: ReadonlyArray<WaitingQuestion>
}

export const QuestionDetail = ({ equal, question }: Props) => {
  const { agents, answerBy, answerers, asked, rootRunId, runId, since, title } = question
  return (
    <article class="question">
      <a href={runAddress(runId)}>{agents.join(" › ")}</a>
      <blockquote>{title}</blockquote>
      {(answerBy !== undefined || answerers !== undefined) && (
        <p class="quiet">
          {answerBy !== undefined && `Declined in ${duration(Math.max(0, answerBy - Date.now()))}. `}
          {answerers !== undefined && `May be decided by ${answerers.map(namesOf).join(", and ")}.`}
        </p>
      )}
      <QuestionCard rootRunId={rootRunId} question={question} since={since} asked={asked} />
      {canChange.value && equal.length > 1 && <EqualCalls equal={equal} />}
    </article>
  )
}

const namesOf = ({ callers = [], owner = false, roles = [] }: Answerers): string => {
  const named = [...callers, ...roles.map((role) => `role ${role}`)]
  const others = named.length === 0 ? "everyone but the caller of the run" : named.join(" or ")
  return owner ? `${named.length === 0 ? "everyone" : `${others} or the caller of the run`}` : others
}

const EqualCalls = ({ equal }: { equal: ReadonlyArray<WaitingQuestion> }) => {
  const all = (approved: boolean) => () => {
    for (const { callId, rootRunId } of equal) decide(rootRunId, { callId, approved })
  }
  return (
    <div class="card" role="group" aria-label="Equal calls">
      <details>
        <summary>{equal.length} calls of this skill wait with the same input</summary>
        <ul>
          {equal.map(({ callId, runId, title }) => (
            <li key={callId}>
              <a href={runAddress(runId)}>{title}</a>
            </li>
          ))}
        </ul>
      </details>
      <p class="actions">
        <button onClick={all(true)}>Approve all {equal.length}</button>
        <button onClick={all(false)}>Deny all {equal.length}</button>
      </p>
    </div>
  )
}

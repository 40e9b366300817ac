/** The reason why a run failed or is waiting, and the next step. */

import { causeOf, ofCall, ofDamage, type FailureCause } from "../FailureCause.ts"
import { useLatest } from "./latest.tsx"
import { run, setRevision, state } from "./openRun.ts"

export const ExplainTab = () => {
  const open = run.value
  const shown = state.value
  if (open === undefined || shown === undefined) return null
  const cause = open.damage === undefined ? causeOf(shown) : ofDamage(open.damage)
  const failed = open.journal.errors.flatMap(({ event, revision }) =>
    event?.type === "tool_call_completed" && event.result.error !== undefined
      ? [{ revision, cause: ofCall(nameOf(event.callId), event.result.error) }]
      : []
  )
  if (cause === undefined && failed.length === 0) return <p class="empty">Nothing failed up to this revision.</p>
  return (
    <section aria-label="Explain">
      {cause !== undefined && !failed.some((one) => one.cause.cause === cause.cause) && <CauseBox cause={cause} />}
      {failed.length > 0 && <Calls failed={failed} />}
    </section>
  )
}

interface FailedCall {
  readonly revision: number
  readonly cause: FailureCause
}

const Calls = ({ failed }: { failed: ReadonlyArray<FailedCall> }) => {
  const { more, shown } = useLatest(failed, 30)
  return (
    <>
      <h2>Calls that failed</h2>
      {more}
      {shown.map(({ cause, revision }) => (
        <div key={revision}>
          <CauseBox cause={cause} />
          <button onClick={() => setRevision(revision)}>Go to rev {revision}</button>
        </div>
      ))}
    </>
  )
}

const nameOf = (callId: string): string => {
  const turns = state.value === undefined ? [] : [...state.value.turns, state.value.currentTurn]
  return turns.flatMap((turn) => turn?.completed ?? []).find((result) => result.callId === callId)?.name ?? callId
}

const CauseBox = ({ cause }: { cause: FailureCause }) => (
  <div class="card error">
    <h2>{cause.name}</h2>
    <p>{cause.cause}</p>
    <p class="quiet">
      in {cause.part}
      {cause.attempts !== undefined && `, ${cause.attempts} attempts`}
    </p>
    <p>
      <b>Next:</b> {cause.fix}
    </p>
    <button onClick={() => void navigator.clipboard?.writeText(promptOf(cause))}>Copy as prompt</button>
  </div>
)

const promptOf = ({ cause, fix, name, part }: FailureCause): string =>
  `An agent run failed: ${name}, in ${part}.\nThe error: ${cause}\nA likely fix: ${fix}\nFind the cause in the code and repair it.`

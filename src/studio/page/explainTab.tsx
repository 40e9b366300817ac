/** The reason why a run failed or is waiting, in the vendor's words first, and the action that continues it. */

import { causeOf, ofCall, ofDamage, type FailureCause } from "../FailureCause.ts"
import { sentence } from "./format.ts"
import { Icon } from "./icons.tsx"
import { useLatest } from "./latest.tsx"
import { run, setRevision, state } from "./openRun.ts"
import { attempt, canChange, data } from "./pageStore.ts"
import { rerun } from "./runActions.tsx"
import { say } from "./toasts.tsx"

export const ExplainTab = () => {
  const open = run.value
  const shown = state.value
  if (open === undefined || shown === undefined) return null
  const cause = open.damage === undefined ? causeOf(shown) : ofDamage(open.damage)
  const failed = groupsOf(
    open.journal.errors.flatMap(({ event, revision }) =>
      event?.type === "tool_call_completed" && event.result.error !== undefined
        ? [{ revision, cause: ofCall(nameOf(event.callId), event.result.error) }]
        : []
    )
  )
  if (cause === undefined && failed.length === 0) return <p class="empty">Nothing failed up to this revision.</p>
  const isCall = failed.some((one) => one.cause.cause === cause?.cause)
  return (
    <section class="explain" aria-label="Explain">
      {cause !== undefined && !isCall && <CauseCard cause={cause} revisions={[]} />}
      {failed.length > 0 && <Calls failed={failed} />}
    </section>
  )
}

interface FailedCall {
  readonly revision: number
  readonly cause: FailureCause
}

/** Failures of one cause, and where they happened. */
interface Group {
  readonly cause: FailureCause
  readonly revisions: Array<number>
}

const groupsOf = (failed: ReadonlyArray<FailedCall>): ReadonlyArray<Group> => {
  const groups = new Map<string, Group>()
  for (const { cause, revision } of failed) {
    const key = JSON.stringify([cause.name, cause.part, cause.cause])
    const group = groups.get(key) ?? { cause, revisions: [] }
    group.revisions.push(revision)
    groups.set(key, group)
  }
  return [...groups.values()]
}

const Calls = ({ failed }: { failed: ReadonlyArray<Group> }) => {
  const { more, shown } = useLatest(failed, 30)
  return (
    <>
      <h2>Calls that failed</h2>
      {more}
      {shown.map(({ cause, revisions }) => (
        <CauseCard key={revisions[0]} cause={cause} revisions={revisions} />
      ))}
    </>
  )
}

const nameOf = (callId: string): string => {
  const turns = state.value === undefined ? [] : [...state.value.turns, state.value.currentTurn]
  return turns.flatMap((turn) => turn?.completed ?? []).find((result) => result.callId === callId)?.name ?? callId
}

const CauseCard = ({ cause, revisions }: { cause: FailureCause; revisions: ReadonlyArray<number> }) => {
  const { attempts, fix, name, part, vendor } = cause
  return (
    <div class="card error">
      <h2>
        <Icon name="circle-x" /> {sentence(name)}
        {revisions.length > 1 && <span class="badge error">{revisions.length} times</span>}
      </h2>
      {vendor !== undefined && (
        <blockquote>
          {vendor.message} <small>{vendor.name}</small>
        </blockquote>
      )}
      <p>{cause.cause}</p>
      <p class="quiet">
        in {part}
        {attempts !== undefined && attempts > 1 && `, ${attempts} attempts`}
      </p>
      <p>
        <b>Next:</b> {fix}
      </p>
      <p class="actions">
        <ActionButton cause={cause} revision={revisions.at(-1)} />
        {revisions.slice(-5).map((revision) => (
          <button key={revision} onClick={() => setRevision(revision)}>
            Go to rev {revision}
          </button>
        ))}
        <button
          class="plain"
          onClick={() => void navigator.clipboard?.writeText(promptOf(cause)).then(() => say("Copied"))}
        >
          <Icon name="copy" /> Copy as prompt
        </button>
      </p>
    </div>
  )
}

/** The button that continues the run: again as it is, a copy from before the failure, or one from its question. */
const ActionButton = ({ cause, revision }: { cause: FailureCause; revision: number | undefined }) => {
  const shown = state.value
  if (!canChange.value || shown === undefined || cause.action === "none") return null
  if (cause.action === "retry") {
    if (shown.status.type !== "failed") return null
    const retry = () =>
      attempt(() => data().retry(shown.rootRunId)).then((ok) => ok && say("Offered to a worker again"))
    return (
      <button class="primary" onClick={() => void retry()}>
        <Icon name="rotate-ccw" /> Retry
      </button>
    )
  }
  if (cause.action === "rerun") {
    return (
      <button class="primary" onClick={() => void attempt(() => rerun(shown.runId))}>
        <Icon name="repeat" /> Rerun
      </button>
    )
  }
  const fork = () => {
    setRevision((revision ?? beforeFailure()) - 1)
    // The sheet opens on the revision that is drawn next.
    setTimeout(() => document.querySelector<HTMLElement>("[data-key=f]")?.click())
  }
  return (
    <button class="primary" onClick={fork}>
      <Icon name="git-fork" /> Fork before it
    </button>
  )
}

/** Returns the revision that asked the model for the last time. */
const beforeFailure = (): number =>
  run.value?.journal.rows.findLast(({ type }) => type === "turn_prepared")?.revision ?? run.value?.journal.revision ?? 1

const promptOf = ({ cause, fix, name, part, vendor }: FailureCause): string =>
  `An agent run failed: ${name}, in ${part}.\nThe error: ${vendor?.message ?? cause}\nA likely fix: ${fix}\nFind the cause in the code and repair it.`

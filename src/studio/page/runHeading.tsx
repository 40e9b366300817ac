/** The heading of a run: what was asked, its facts, and what can be done. */

import type { RunState } from "../../RunState.ts"
import { statusOf } from "../../store-kit/StoreRules.ts"
import { causeOf, ofDamage } from "../FailureCause.ts"
import { family } from "./familyRuns.ts"
import { ForkButton } from "./forkSheet.tsx"
import { compareAddress } from "./compareView.tsx"
import { cost, counted, duration, excerpt, sentence, wordsOf } from "./format.ts"
import { Icon } from "./icons.tsx"
import { revision, run, setRevision, state } from "./openRun.ts"
import { attempt, canChange, data, go, info, runAddress, setQuery } from "./pageStore.ts"
import { AddRowButton } from "./addRowSheet.tsx"
import { ScoreButton } from "./scoreSheet.tsx"
import { playAddress } from "./playView.tsx"
import { StatusChip } from "./status.tsx"
import { say } from "./toasts.tsx"

export const RunHeading = () => {
  const shown = state.value
  const open = run.value
  if (shown === undefined || open === undefined) return null
  const { caller, forkedFrom, runId } = shown
  const status = statusOf(shown.status)
  return (
    <div class={`heading ${status.type}`}>
      <div>
        <p class="crumb">
          {caller?.tenant !== undefined && `${caller.tenant} / `}
          {runId}
          {forkedFrom !== undefined && (
            <>
              {" "}
              · fork of <a href={`${runAddress(forkedFrom.runId)}?rev=${forkedFrom.revision}`}>{forkedFrom.runId}</a> at
              revision {forkedFrom.revision}, <a href={compareAddress([forkedFrom.runId, runId])}>compare</a>
            </>
          )}
        </p>
        <h1>
          {excerpt(wordsOf(shown.input.at(-1)), 120) || shown.agent} <StatusChip status={status.type} />
        </h1>
        <Facts shown={shown} />
      </div>
      <Actions shown={shown} isLast={revision.value === open.journal.revision} />
      <Banner />
    </div>
  )
}

const Facts = ({ shown }: { shown: RunState }) => {
  const { agent, caller, costUsd, createdAt, unreportedTurns, updatedAt, usage, version } = shown
  const below = family.value.lines.filter(({ runId }) => runId !== shown.runId).length
  const isUnknown = unreportedTurns > 0 && usage.inputTokens + usage.outputTokens === 0
  return (
    <p class="meta">
      <span>
        agent <b>{agent}</b> {version !== undefined && `v${version}`}
      </span>
      {caller?.id !== undefined && (
        <span>
          caller <b>{caller.id}</b>
        </span>
      )}
      <span>
        took <b>{duration(updatedAt - createdAt)}</b>
      </span>
      <span>
        tokens <b>{isUnknown ? "unknown" : (usage.inputTokens + usage.outputTokens).toLocaleString("en")}</b>
      </span>
      <span>
        cost <b>{costUsd === undefined ? "unknown" : cost(costUsd)}</b>
        {below > 0 && ` with ${counted(below, "run")} below`}
      </span>
    </p>
  )
}

const Actions = ({ isLast, shown }: { shown: RunState; isLast: boolean }) => {
  const status = statusOf(shown.status).type
  const act = (action: () => Promise<unknown>, done: string) =>
    void attempt(action).then((isDone) => isDone && say(done))
  return (
    <p class="actions">
      {canChange.value && isLast && isRetryable(shown) && (
        <button class="primary" onClick={() => act(() => data().retry(shown.rootRunId), "Offered to a worker again")}>
          <Icon name="rotate-ccw" /> Retry
        </button>
      )}
      {canChange.value && <ForkButton />}
      {canChange.value && shown.parentRunId === undefined && (
        <a class="button" href={playAddress(shown.runId, revision.value)}>
          <Icon name="sparkles" /> Playground
        </a>
      )}
      {canChange.value && shown.parentRunId === undefined && (
        <button onClick={() => act(() => rerun(shown.runId), "Runs again from its question")}>
          <Icon name="repeat" /> Rerun
        </button>
      )}
      {canChange.value && isLast && (status === "running" || status === "waiting") && (
        <button data-key="s" onClick={() => act(() => data().cancel(shown.rootRunId), "Cancelled")}>
          <Icon name="square" /> Cancel
        </button>
      )}
      {canChange.value && info.value.evaluations && (
        <>
          <ScoreButton runId={shown.runId} />
          <AddRowButton shown={shown} />
        </>
      )}
      {!data().isFile && (
        <a class="button" href={data().exportUrl(shown.runId)} download>
          <Icon name="download" /> Export
        </a>
      )}
    </p>
  )
}

/** Starts a copy of a run from its question, and opens it. */
export const rerun = async (runId: string): Promise<void> => {
  const forkId = await data().fork(runId, { revision: 1 })
  go(runAddress(forkId))
}

/** Returns whether workers may take the run again: it failed, got no answer, or was paused by a hook. */
const isRetryable = ({ questions, status: { type } }: RunState): boolean =>
  type === "failed" || (type === "paused" && questions.every(({ answer }) => answer !== undefined))

const Banner = () => {
  const open = run.value
  const shown = state.value
  if (open === undefined || shown === undefined) return null
  const cause = open.damage === undefined ? causeOf(shown) : ofDamage(open.damage)
  if (cause === undefined) return null
  const row = open.journal.errors.at(-1)
  return (
    <p class="banner" role="alert">
      <span>
        <b>{sentence(cause.name)}</b>: {excerpt(cause.vendor?.message ?? cause.cause, 200)}
      </span>
      {row !== undefined && <button onClick={() => setRevision(row.revision)}>Go to rev {row.revision}</button>}
      <button onClick={() => setQuery("tab", "Explain")}>Explain</button>
    </p>
  )
}

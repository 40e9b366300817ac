/** The heading of a run: what was asked, its facts, what can be done, and why it failed. */

import type { RunState } from "../../RunState.ts"
import { statusOf } from "../../store-kit/StoreRules.ts"
import { causeOf, ofDamage } from "../FailureCause.ts"
import { titleOf } from "../internal/runTitle.ts"
import { family } from "./familyRuns.ts"
import { compareAddress } from "./compareView.tsx"
import { cost, counted, duration, excerpt, sentence } from "./format.ts"
import { revision, run, setRevision, state } from "./openRun.ts"
import { runAddress, setQuery } from "./pageStore.ts"
import { RunActions } from "./runActions.tsx"
import { costBelow, countBelow } from "./spending.ts"
import { StatusChip } from "./status.tsx"

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
          {excerpt(titleOf(shown.agent, shown.input.at(-1)), 120) || shown.agent} <StatusChip status={status.type} />
        </h1>
        <Facts shown={shown} />
      </div>
      <RunActions shown={shown} isLast={revision.value === open.journal.revision} />
      <Banner />
    </div>
  )
}

const Facts = ({ shown }: { shown: RunState }) => {
  const { agent, caller, createdAt, unreportedTurns, updatedAt, usage, version } = shown
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
      <Cost shown={shown} />
    </p>
  )
}

/** What the run cost, with the runs below it and without them. */
const Cost = ({ shown: { costUsd, revision, runId } }: { shown: RunState }) => {
  const below = countBelow(family.value.lines, runId)
  const records = run.value?.journal.records.slice(0, revision) ?? []
  return (
    <span>
      cost <b>{costUsd === undefined ? "unknown" : cost(costUsd)}</b>
      {costUsd !== undefined && below > 0 && (
        <>
          {" "}
          with {counted(below, "run")} below, <b>{cost(costUsd - costBelow(records))}</b> without
        </>
      )}
    </span>
  )
}

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

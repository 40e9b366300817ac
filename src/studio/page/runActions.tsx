/** What can be done with a run. On a phone, the less common actions are in a menu. */

import type { RunState } from "../../RunState.ts"
import { statusOf } from "../../store-kit/StoreRules.ts"
import { AddRowButton } from "./addRowSheet.tsx"
import { ForkButton } from "./forkSheet.tsx"
import { Icon } from "./icons.tsx"
import { Menu } from "./menu.tsx"
import { isNarrow } from "./narrow.ts"
import { revision } from "./openRun.ts"
import { attempt, canChange, data, go, info, runAddress } from "./pageStore.ts"
import { isPlayable, playAddress } from "./playground.ts"
import { ScoreButton } from "./scoreSheet.tsx"
import { say } from "./toasts.tsx"

interface Props {
  readonly shown: RunState
  /** Whether the state is that of the last revision. */
  readonly isLast: boolean
}

export const RunActions = ({ isLast, shown }: Props) => (
  <div class="actions">
    <Common shown={shown} isLast={isLast} />
    {isNarrow.value ? (
      <Menu icon="ellipsis" label="More">
        <Others shown={shown} />
      </Menu>
    ) : (
      <Others shown={shown} />
    )}
  </div>
)

const act = (action: () => Promise<unknown>, done: string): void =>
  void attempt(action).then((isDone) => isDone && say(done))

const Common = ({ isLast, shown }: Props) => {
  const status = statusOf(shown.status).type
  if (!canChange.value) return null
  return (
    <>
      {isLast && isRetryable(shown) && (
        <button class="primary" onClick={() => act(() => data().retry(shown.rootRunId), "Offered to a worker again")}>
          <Icon name="rotate-ccw" /> Retry
        </button>
      )}
      <ForkButton />
      {isLast && (status === "running" || status === "waiting") && (
        <button data-key="s" onClick={() => act(() => data().cancel(shown.rootRunId), "Cancelled")}>
          <Icon name="square" /> Cancel
        </button>
      )}
    </>
  )
}

const Others = ({ shown }: { shown: RunState }) => (
  <>
    {isPlayable(shown) && (
      <a class="button" href={playAddress(shown.runId, revision.value)}>
        <Icon name="sparkles" /> Playground
      </a>
    )}
    {canChange.value && shown.parentRunId === undefined && (
      <button onClick={() => act(() => rerun(shown.runId), "Runs again from its question")}>
        <Icon name="repeat" /> Rerun
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
  </>
)

/** Starts a copy of a run from its question, and opens it. */
export const rerun = async (runId: string): Promise<void> => {
  const forkId = await data().fork(runId, { revision: 1 })
  go(runAddress(forkId))
}

/** Returns whether workers may take the run again: it failed, got no answer, or was paused by a hook. */
const isRetryable = ({ questions, status: { type } }: RunState): boolean =>
  type === "failed" || (type === "paused" && questions.every(({ answer }) => answer !== undefined))

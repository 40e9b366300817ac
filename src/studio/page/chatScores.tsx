/** What people think of the answers: a thumb is a score of the run. */

import { signal } from "@preact/signals"
import { Icon } from "./icons.tsx"
import { attempt, data } from "./pageStore.ts"
import { say } from "./toasts.tsx"

/** The last score of each run. */
const scored = signal<ReadonlyMap<string, boolean>>(new Map())

export const readScores = async (): Promise<void> => {
  const scores = await data().scores()
  scored.value = new Map(scores.toReversed().map(({ good, run_id }) => [run_id, good]))
}

export const Thumbs = ({ runId }: { runId: string }) => (
  <span class="thumbs" role="group" aria-label="Is the answer good?">
    <Thumb isGood={true} runId={runId} />
    <Thumb isGood={false} runId={runId} />
  </span>
)

const Thumb = ({ isGood, runId }: { isGood: boolean; runId: string }) => {
  const score = async () => {
    if (!(await attempt(() => data().score({ runId, good: isGood, note: "" })))) return
    scored.value = new Map(scored.value).set(runId, isGood)
    say("Thank you")
  }
  return (
    <button
      class="plain"
      aria-label={isGood ? "Good answer" : "Bad answer"}
      aria-pressed={scored.value.get(runId) === isGood}
      onClick={score}
    >
      <Icon name={isGood ? "thumbs-up" : "thumbs-down"} />
    </button>
  )
}

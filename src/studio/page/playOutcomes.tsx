/** The runs that a playground started, beside each other and the answer before. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { statusOf } from "../../store-kit/StoreRules.ts"
import { answer, type RunState } from "../../RunState.ts"
import { Side } from "./compareCells.tsx"
import { compareAddress } from "./compareView.tsx"
import { cost, duration } from "./format.ts"
import { attempt, runAddress } from "./pageStore.ts"
import { readState } from "./readState.ts"
import { StatusChip } from "./status.tsx"
import { wordDifferences } from "./wordDifferences.ts"

interface Props {
  /** The run that is played again. */
  readonly runId: string
  /** Its answer. */
  readonly before: string
  readonly played: ReadonlyArray<string>
}

export const Outcomes = ({ before, played, runId }: Props) => (
  <div class="abreast outcomes">
    <article class="card" aria-label="Before">
      <h2>Before</h2>
      <p class="side-text">{before === "" ? <span class="quiet">no answer</span> : before}</p>
    </article>
    {played.map((fork) => (
      <Outcome key={fork} runId={runId} before={before} fork={fork} />
    ))}
  </div>
)

const pace = 1_000

/** A run, read until it rests. */
const Outcome = ({ before, fork, runId }: { before: string; fork: string; runId: string }) => {
  const found = useSignal<RunState | undefined>(undefined)
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const read = async () => {
      await attempt(async () => (found.value = await readState(fork)))
      if (found.value === undefined || !isResting(found.value)) timer = setTimeout(() => void read(), pace)
    }
    void read()
    return () => clearTimeout(timer)
  }, [fork])
  const state = found.value
  if (state === undefined) return <article class="card" aria-label="Played" aria-busy />
  const text = answer(state) ?? ""
  return (
    <article class="card" aria-label="Played">
      <p>
        <StatusChip status={statusOf(state.status).type} />{" "}
        <span class="quiet">
          {duration(state.updatedAt - state.createdAt)}
          {state.costUsd !== undefined && `, ${cost(state.costUsd)}`}
        </span>
      </p>
      <Side text={text} none="no answer" pieces={wordDifferences(before, text).right} />
      <p class="actions">
        <a href={runAddress(fork)}>Open</a>
        <a href={compareAddress([runId, fork])}>Compare</a>
      </p>
    </article>
  )
}

const resting = new Set(["completed", "failed", "no_answer", "cancelled", "waiting"])

const isResting = ({ status }: RunState): boolean => resting.has(statusOf(status).type)

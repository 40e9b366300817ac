/** The runs that a playground started, beside each other and the answer before. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { statusOf } from "../../store-kit/StoreRules.ts"
import { answer, type RunState, type Turn } from "../../RunState.ts"
import { AddRowButton } from "./addRowSheet.tsx"
import { Side } from "./compareCells.tsx"
import { compareAddress } from "./compareView.tsx"
import { modelsOf, turnsOf } from "./comparison.ts"
import { cost, duration } from "./format.ts"
import { Markdown } from "./markdown.tsx"
import { attempt, info, runAddress } from "./pageStore.ts"
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

export const Outcomes = ({ before, played, runId }: Props) => {
  const hasMarks = useSignal(false)
  return (
    <>
      {played.length > 0 && (
        <p class="actions">
          <span class="segments" role="group" aria-label="Show">
            <button aria-pressed={!hasMarks.value} onClick={() => (hasMarks.value = false)}>
              Answers
            </button>
            <button aria-pressed={hasMarks.value} onClick={() => (hasMarks.value = true)}>
              Differences
            </button>
          </span>
          <a class="button" href={compareAddress([runId, ...played.toReversed()])}>
            Compare all
          </a>
        </p>
      )}
      <div class="abreast outcomes">
        <article class="card" aria-label="Before">
          <h2>Before</h2>
          <Answer text={before} />
        </article>
        {played.map((fork) => (
          <Outcome key={fork} runId={runId} before={before} fork={fork} hasMarks={hasMarks.value} />
        ))}
      </div>
    </>
  )
}

const Answer = ({ text }: { text: string }) => (text === "" ? <p class="quiet">no answer</p> : <Markdown text={text} />)

const pace = 1_000

interface OutcomeProps extends Pick<Props, "before" | "runId"> {
  readonly fork: string
  /** Whether the words that differ from the answer before are marked. */
  readonly hasMarks: boolean
}

/** A run, read until it rests. */
const Outcome = ({ before, fork, hasMarks, runId }: OutcomeProps) => {
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
          {modelsOf(playedTurns(state))}, {duration(state.updatedAt - state.createdAt)}
          {state.costUsd !== undefined && `, ${cost(state.costUsd)}`}
        </span>
      </p>
      {hasMarks ? <Side text={text} none="" pieces={wordDifferences(before, text).right} /> : <Answer text={text} />}
      <p class="actions">
        <a class="button" href={runAddress(fork)}>
          Open
        </a>
        <a class="button" href={compareAddress([runId, fork])}>
          Compare
        </a>
        {info.value.evaluations && <AddRowButton shown={state} />}
      </p>
    </article>
  )
}

/** Returns the turns that ran in a fork: the one that was played started in the run before. */
const playedTurns = (state: RunState): ReadonlyArray<Turn> => {
  const turns = turnsOf(state)
  return turns.slice(
    Math.max(
      0,
      turns.findLastIndex(({ startedAt }) => startedAt < state.createdAt)
    )
  )
}

const resting = new Set(["completed", "failed", "no_answer", "cancelled", "waiting"])

const isResting = ({ status }: RunState): boolean => resting.has(statusOf(status).type)

/** The sheet before a fork: the kept revisions, the calls that run again, and the changes of the person. */

import { useSignal } from "@preact/signals"
import type { CallResult } from "../../Call.ts"
import type { RunState } from "../../RunState.ts"
import { wordsOf } from "../internal/runTitle.ts"
import { DialogBox } from "./dialogBox.tsx"
import { Icon } from "./icons.tsx"
import { revision, state } from "./openRun.ts"
import { attempt, data, go, runAddress } from "./pageStore.ts"

/** Returns the calls that a fork runs again: those of the open turn without a result. */
export const again = ({ currentTurn }: RunState): ReadonlyArray<string> =>
  [...(currentTurn?.inFlight ?? []), ...(currentTurn?.pending ?? [])].map(
    ({ effects, name }) => `${name ?? "?"}${effects === "write" ? " (write!)" : ""}`
  )

export const ForkButton = () => {
  const isOpen = useSignal(false)
  if (state.value === undefined) return null
  return (
    <>
      <button data-key="f" onClick={() => (isOpen.value = true)}>
        <Icon name="git-fork" /> Fork from here
      </button>
      {isOpen.value && <ForkSheet shown={state.value} onClose={() => (isOpen.value = false)} />}
    </>
  )
}

const textOf = ({ output = [] }: CallResult): string =>
  output.map((part) => (part.type === "text" ? part.text : JSON.stringify(part))).join("\n")

const ForkSheet = ({ onClose, shown }: { shown: RunState; onClose: () => void }) => {
  const at = revision.value
  const asked = shown.input.findLast(({ role }) => role === "user")
  const first = wordsOf(asked)
  const question = useSignal(first)
  const results = useSignal<Readonly<Record<string, string>>>({})
  const fork = () =>
    attempt(async () => {
      const changed = question.value === first ? {} : { question: question.value }
      const runId = await data().fork(shown.runId, { revision: at, ...changed, results: results.value })
      onClose()
      go(runAddress(runId))
    })
  const calls = again(shown)
  const finished = shown.currentTurn?.completed ?? shown.turns.at(-1)?.completed ?? []
  return (
    <DialogBox label="Fork" onClose={onClose}>
      <h2>Fork from revision {at}</h2>
      <p>
        keeps revisions 1-{at}; {calls.length === 0 ? "the model is asked next" : "runs again: "}
        <b class="again">{calls.join(", ")}</b>
      </p>
      <label class="field">
        The question
        <textarea
          rows={2}
          autoFocus
          value={question.value}
          onInput={(event) => (question.value = event.currentTarget.value)}
        />
      </label>
      {finished.map((result) => (
        <label key={result.callId} class="field">
          The result of {result.name}
          <textarea
            rows={2}
            value={results.value[result.callId] ?? result.error?.message ?? textOf(result)}
            onInput={(event) => (results.value = { ...results.value, [result.callId]: event.currentTarget.value })}
          />
        </label>
      ))}
      <p class="actions">
        <button class="primary" onClick={() => void fork()}>
          Fork
        </button>
        <button onClick={onClose}>Close</button>
      </p>
    </DialogBox>
  )
}

/** The sheet that adds a run to a data set: its question, and the answer that is right. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { answer, type RunState } from "../../RunState.ts"
import { wordsOf } from "../internal/runTitle.ts"
import { DialogBox } from "./dialogBox.tsx"
import { Icon } from "./icons.tsx"
import { attempt, data } from "./pageStore.ts"
import { say } from "./toasts.tsx"

export const AddRowButton = ({ shown }: { shown: RunState }) => {
  const isOpen = useSignal(false)
  return (
    <>
      <button onClick={() => (isOpen.value = true)}>
        <Icon name="grid-2x2-check" /> Add to data set
      </button>
      {isOpen.value && <AddRowSheet shown={shown} onClose={() => (isOpen.value = false)} />}
    </>
  )
}

const AddRowSheet = ({ onClose, shown }: { shown: RunState; onClose: () => void }) => {
  const names = useSignal<ReadonlyArray<string>>([])
  const set = useSignal("cases")
  const input = useSignal(wordsOf(shown.input.findLast(({ role }) => role === "user")))
  const expected = useSignal(answer(shown) ?? "")
  useEffect(() => void attempt(async () => (names.value = (await data().dataSets()).map(({ name }) => name))), [])
  const add = async () => {
    const row = { set: set.value, input: input.value, runId: shown.runId }
    const isAdded = await attempt(() =>
      data().addRow(expected.value === "" ? row : { ...row, expected: expected.value })
    )
    if (!isAdded) return
    say(`Added to ${set.value}`)
    onClose()
  }
  return (
    <DialogBox label="Add to data set" onClose={onClose}>
      <h2>Add to data set</h2>
      <label class="field">
        The data set, a new or an existing one
        <input
          list="data-sets"
          autoFocus
          value={set.value}
          maxLength={60}
          onInput={(event) => (set.value = event.currentTarget.value.replace(/[^\w-]+/g, "-"))}
        />
        <datalist id="data-sets">
          {names.value.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </label>
      <label class="field">
        The question
        <textarea rows={2} value={input.value} onInput={(event) => (input.value = event.currentTarget.value)} />
      </label>
      <label class="field">
        The right answer, which scorers compare; empty if none is expected
        <textarea rows={4} value={expected.value} onInput={(event) => (expected.value = event.currentTarget.value)} />
      </label>
      <p class="actions">
        <button class="primary" disabled={set.value === "" || input.value === ""} onClick={() => void add()}>
          Add
        </button>
        <button onClick={onClose}>Close</button>
      </p>
    </DialogBox>
  )
}

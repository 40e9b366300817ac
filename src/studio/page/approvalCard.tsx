/** A call that waits for a person: approve, deny with a reason, or change its input first. */

import { useSignal } from "@preact/signals"
import type { OpenQuestion } from "../../RunState.ts"
import { ago, json } from "./format.ts"
import { attempt, canChange, data, readApprovals } from "./pageStore.ts"
import { type Decision, Refused } from "./source.ts"

interface Props {
  readonly rootRunId: string
  readonly question: Pick<OpenQuestion, "callId" | "name" | "input" | "reason">
  readonly since?: number
}

export const ApprovalCard = ({ question, rootRunId, since }: Props) => {
  const { callId, input, name, reason } = question
  const edit = useSignal<string | undefined>(undefined)
  const why = useSignal("")
  const result = useSignal("")
  const decide = (decision: Omit<Decision, "callId">) =>
    attempt(async () => {
      result.value = "sending"
      result.value = await send(rootRunId, { callId, ...decision })
      await readApprovals()
    }).then((ok) => {
      if (!ok) result.value = ""
    })
  const approve = () =>
    attempt(async () => {
      const changed: unknown = edit.value === undefined ? undefined : JSON.parse(edit.value)
      await decide({ approved: true, ...(changed === undefined ? {} : { input: changed }) })
    })
  return (
    <div class="card waiting" role="group" aria-label={`${name} waits for you`}>
      <p>
        ◐ <b>{name}</b> waits for you: {reason} {since !== undefined && <span class="quiet">({ago(since)})</span>}
      </p>
      <pre>{json(input)}</pre>
      {edit.value !== undefined && (
        <label>
          changed input
          <textarea rows={6} value={edit.value} onInput={(event) => (edit.value = event.currentTarget.value)} />
        </label>
      )}
      {result.value !== "" ? (
        <p role="status">{result.value}</p>
      ) : (
        canChange.value && (
          <p class="actions">
            <button class="primary" onClick={() => void approve()}>
              {edit.value === undefined ? "approve" : "approve the changed input"}
            </button>
            <button onClick={() => (edit.value = edit.value === undefined ? json(input) : undefined)}>
              {edit.value === undefined ? "edit" : "keep the input"}
            </button>
            <button
              onClick={() => void decide({ approved: false, ...(why.value === "" ? {} : { reason: why.value }) })}
            >
              deny
            </button>
            <input
              aria-label="Reason of a denial"
              placeholder="reason of a denial"
              value={why.value}
              onInput={(event) => (why.value = event.currentTarget.value)}
            />
          </p>
        )
      )}
    </div>
  )
}

/** An answer that somebody else gave first is no failure: nothing happens twice. */
const send = async (runId: string, decision: Decision): Promise<string> => {
  try {
    await data().answer(runId, decision)
    return decision.approved ? "approved" : "denied"
  } catch (error) {
    if (error instanceof Refused && (error.status === 404 || error.status === 409)) return "answered elsewhere already"
    throw error
  }
}

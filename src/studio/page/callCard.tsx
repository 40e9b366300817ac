/** A call as a card: its name and time, its input, and its result drawn by its kind. */

import type { Call, CallResult } from "../../Call.ts"
import type { Content } from "../../Content.ts"
import type { Answer } from "../../RunState.ts"
import { wordOf } from "./decisions.ts"
import { duration } from "./format.ts"
import { Preview } from "./mediaTab.tsx"
import { StatusShape } from "./status.tsx"
import { Value, valueOf } from "./valueView.tsx"

interface Props {
  readonly result: CallResult
  readonly runId: string
  /** What a person decided about the call. */
  readonly decision: Answer | undefined
}

export const CallCard = ({ decision, result, runId }: Props) => {
  const { durationMs, error, input, kind, name, output = [], skipped, value } = result
  const status = error === undefined ? "ok" : "error"
  return (
    <div class={`call ${status}`} role="group" aria-label={`call ${name ?? kind}`}>
      <p class="call-head">
        <StatusShape status={status} />
        <b>{name ?? kind}</b>
        {kind !== "skill" && <span class="badge">{kind}</span>}
        {decision !== undefined && (
          <span class="quiet">
            {wordOf(decision)}
            {decision.by !== undefined && ` by ${decision.by}`}
          </span>
        )}
        <small>{skipped === true ? "not run" : durationMs !== undefined && duration(durationMs)}</small>
      </p>
      <Input input={input} />
      {error !== undefined && <p class="error">{error.message}</p>}
      {value === undefined ? (
        output.map((part, index) => <Part key={index} part={part} runId={runId} />)
      ) : (
        <Value value={value} />
      )}
    </div>
  )
}

interface PendingProps {
  readonly call: Pick<Call, "input" | "kind" | "name">
  readonly status: "running" | "waiting"
}

export const PendingCall = ({ call: { input, kind, name }, status }: PendingProps) => (
  <div class={`call ${status}`} role="group" aria-label={`call ${name ?? kind}`}>
    <p class="call-head">
      <StatusShape status={status} />
      <b>{name ?? kind}</b>
      <small>{status === "waiting" ? "waits for an approval" : "runs"}</small>
    </p>
    <Input input={input} />
  </div>
)

const Input = ({ input }: { input: unknown }) =>
  typeof input === "object" && input !== null && Object.keys(input).length === 0 ? null : (
    <div class="input">
      <Value value={input} />
    </div>
  )

const Part = ({ part, runId }: { part: Content; runId: string }) => {
  if (part.type === "text") return <Value value={valueOf(part.text)} />
  if ("fileId" in part && part.fileId !== undefined && "mediaType" in part) {
    return <Preview id={part.fileId} part={part} runId={runId} />
  }
  return <Value value={part} />
}

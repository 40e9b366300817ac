/** The program of a model: its lines, each with the calls that it made and their results. */

import { CallCard, PendingCall } from "./callCard.tsx"
import { coloredLines } from "./codeText.tsx"
import { duration, json } from "./format.ts"
import type { MadeCall, ShownProgram } from "./programLines.ts"
import { run } from "./openRun.ts"
import { StatusShape } from "./status.tsx"

/** Calls that a line shows. A loop may make many. */
const most = 50

interface Props {
  readonly program: ShownProgram
  readonly runId: string
  /** The calls that wait for a person. */
  readonly waiting: ReadonlySet<string>
}

export const ProgramView = ({ program, ...props }: Props) => {
  const { calls, failure, source } = program
  return (
    <section class="program" aria-label="Program">
      <ol>
        {coloredLines(source).map((line, index) => (
          <li key={index} class={failure?.line === index + 1 ? "failed" : ""}>
            <code>{line}</code>
            <LineCalls made={calls.get(index + 1) ?? []} {...props} />
            {failure?.line === index + 1 && <p class="error">{failure.text}</p>}
          </li>
        ))}
      </ol>
      <LineCalls made={calls.get(0) ?? []} {...props} />
      {failure?.line === 0 && <p class="error">{failure.text}</p>}
    </section>
  )
}

const LineCalls = ({ made, ...props }: Omit<Props, "program"> & { made: ReadonlyArray<MadeCall> }) => (
  <>
    {made.slice(0, most).map((one) => (
      <LineCall key={one.call.callId} made={one} {...props} />
    ))}
    {made.length > most && <p class="quiet">and {made.length - most} more calls</p>}
  </>
)

const LineCall = ({ made: { call, result }, runId, waiting }: Omit<Props, "program"> & { made: MadeCall }) => {
  const open = waiting.has(call.callId) ? "waiting" : "running"
  const status = result === undefined ? open : result.error === undefined ? "ok" : "error"
  return (
    <details class="line-call">
      <summary>
        <StatusShape status={status} />
        <b>{call.name ?? call.kind}</b>
        <span class={status === "error" ? "error" : "quiet"}>{result === undefined ? open : outcomeOf(result)}</span>
        <small>{result?.durationMs !== undefined && duration(result.durationMs)}</small>
      </summary>
      {result === undefined ? (
        <PendingCall call={call} status={open} />
      ) : (
        <CallCard result={result} runId={runId} decision={run.value?.journal.decisions.get(call.callId)} />
      )}
    </details>
  )
}

/** Returns the outcome of a call in a line. */
const outcomeOf = ({ error, output = [], value }: NonNullable<MadeCall["result"]>): string => {
  if (error !== undefined) return error.message
  if (value !== undefined) return json(value)
  return output
    .map((part) => (part.type === "text" ? part.text : part.type === "data" ? json(part.data) : part.type))
    .join(" ")
}

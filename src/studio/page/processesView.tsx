/** The processes that run stored runs, which an operator drains, and the drains that hold for all processes. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { Drain, Process, Target } from "../../Processes.ts"
import { ago, sentence } from "./format.ts"
import { attempt, canChange, data, runAddress } from "./pageStore.ts"
import type { Processes, RunsOf } from "./source.ts"
import { StatusChip } from "./status.tsx"
import { say } from "./toasts.tsx"

/** The status whose shape and color stand for a state, and what it means. */
const kinds: Readonly<Record<Process["state"], { readonly status: string; readonly means: string }>> = {
  running: { status: "running", means: "takes runs" },
  draining: { status: "waiting", means: "finishes the steps of its runs" },
  drained: { status: "interrupted", means: "takes no runs" },
  silent: { status: "failed", means: "does not answer: it died, or is very busy" }
}

export const ProcessesView = ({ filter }: { readonly filter: RunsOf }) => {
  const known = useSignal<Processes | undefined>(undefined)
  const read = async () => void (known.value = await data().processes())
  useEffect(() => {
    void attempt(read)
    const timer = setInterval(() => void attempt(read), 10_000)
    return () => clearInterval(timer)
  }, [])
  const { drains = [], processes = [] } = known.value ?? {}
  const shown = processes.filter(({ agents }) => agents.some((agent) => isSelected(filter, agent)))
  const changed = (target: Target, isDrained: boolean) =>
    attempt(async () => {
      await (isDrained ? data().undrain(target) : data().drain(target))
      say(isDrained ? "Takes runs again" : "Drained: its runs are handed on")
      await read()
    })
  return (
    <>
      {shown.length > 0 && (
        <div class="list wide needs">
          <table>
            <thead>
              <tr>
                {["Process", "Agents", "Runs", "Oldest", "Since", "Action"].map((name) => (
                  <th key={name} scope="col" class={name === "Runs" ? "number" : ""}>
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((process) => (
                <Row key={process.name} process={process} drains={drains} onChange={changed} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {drains
        .filter(({ process }) => process === undefined)
        .map((drain) => (
          <p key={JSON.stringify([drain.agent, drain.version])} class="actions">
            {targetText(drain)} drained in all processes
            {canChange.value && <button onClick={() => void changed(drain, true)}>Undrain</button>}
          </p>
        ))}
    </>
  )
}

const isSelected = ({ agent, version }: RunsOf, of: Process["agents"][number]) =>
  (agent === undefined || of.name === agent) && (version === undefined || of.version === version)

const targetText = ({ agent, version }: Target) =>
  agent === undefined && version === undefined
    ? "All agents are"
    : `${agent ?? "All agents"}${version === undefined ? "" : ` of version ${version}`} is`

const Row = ({
  drains,
  onChange,
  process: { agents, holds, name, since, state }
}: {
  readonly process: Process
  readonly drains: ReadonlyArray<Drain>
  readonly onChange: (target: Target, isDrained: boolean) => Promise<boolean>
}) => {
  const { means, status } = kinds[state]
  const isDrained = drains.some(({ agent, process, version }) => process === name && !agent && !version)
  const [oldest] = holds
  return (
    <tr>
      <td title={means}>
        <StatusChip status={status}>{sentence(state)}</StatusChip> <em>{name}</em>
      </td>
      <td>{agents.map(({ name, version }) => (version === undefined ? name : `${name} ${version}`)).join(", ")}</td>
      <td class="number">{agents.reduce((sum, { runs }) => sum + runs, 0).toLocaleString("en")}</td>
      <td>{oldest === undefined ? "–" : <a href={runAddress(oldest.runId)}>{ago(oldest.since)}</a>}</td>
      <td>{ago(since)}</td>
      <td>
        {canChange.value && (
          <button
            aria-label={`${isDrained ? "Undrain" : "Drain"} ${name}`}
            onClick={() => void onChange({ process: name }, isDrained)}
          >
            {isDrained ? "Undrain" : "Drain"}
          </button>
        )}
      </td>
    </tr>
  )
}

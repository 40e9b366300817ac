/** Tokens, cost and time by turn. Values that no provider reported are unknown, not zero. */

import type { RunState } from "../../RunState.ts"
import { cost, duration, tokens } from "./format.ts"
import { useLatest } from "./latest.tsx"
import { run, state } from "./openRun.ts"

export const UsageTab = () => (state.value === undefined ? null : <Turns shown={state.value} />)

const Turns = ({ shown }: { shown: RunState }) => {
  const turns = shown.currentTurn === undefined ? shown.turns : [...shown.turns, shown.currentTurn]
  const prices = new Map(
    run.value?.journal.rows.flatMap(({ event }) =>
      event?.type === "model_completed" ? [[event.step + 1, event.costUsd] as const] : []
    )
  )
  const { more, shown: lines } = useLatest(turns, 200)
  return (
    <>
      {more}
      <table>
        <thead>
          <tr>
            <th>Turn</th>
            <th>Model</th>
            <th>Tokens</th>
            <th class="number">Cost</th>
            <th class="number">Time</th>
            <th class="number">Attempts</th>
          </tr>
        </thead>
        <tbody>
          {lines.map(({ attempt, latencyMs, model, turn, usage }) => (
            <tr key={turn}>
              <td>{turn}</td>
              <td>{model ?? "none yet"}</td>
              <td>{tokens(usage)}</td>
              <td class="number">{cost(prices.get(turn))}</td>
              <td class="number">{latencyMs === undefined ? "unknown" : duration(latencyMs)}</td>
              <td class="number">{attempt}</td>
            </tr>
          ))}
          <tr>
            <th>All</th>
            <td>{shown.unreportedTurns > 0 && `${shown.unreportedTurns} turns unreported`}</td>
            <td>{tokens(shown.unreportedTurns >= turns.length ? undefined : shown.usage)}</td>
            <td class="number">{cost(shown.costUsd)}</td>
            <td class="number">{duration(shown.updatedAt - shown.createdAt)}</td>
            <td />
          </tr>
        </tbody>
      </table>
    </>
  )
}

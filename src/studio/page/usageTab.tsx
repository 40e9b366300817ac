/** Tokens, money and time by turn. What no provider reported is unknown, not zero. */

import { cost, duration, tokens } from "./format.ts"
import { run, state } from "./pageStore.ts"

export const UsageTab = () => {
  const shown = state.value
  if (shown === undefined) return null
  const turns = shown.currentTurn === undefined ? shown.turns : [...shown.turns, shown.currentTurn]
  const prices = new Map(
    run.value?.journal.rows.flatMap(({ event }) =>
      event?.type === "model_completed" ? [[event.step + 1, event.costUsd] as const] : []
    )
  )
  return (
    <table>
      <thead>
        <tr>
          <th>turn</th>
          <th>model</th>
          <th>tokens</th>
          <th>cost</th>
          <th>time</th>
          <th>attempts</th>
        </tr>
      </thead>
      <tbody>
        {turns.map(({ attempt, latencyMs, model, turn, usage }) => (
          <tr key={turn}>
            <td>{turn}</td>
            <td>{model ?? "none yet"}</td>
            <td>{tokens(usage)}</td>
            <td>{cost(prices.get(turn) ?? 0)}</td>
            <td>{latencyMs === undefined ? "unknown" : duration(latencyMs)}</td>
            <td>{attempt}</td>
          </tr>
        ))}
        <tr>
          <th>all</th>
          <td>{shown.unreportedTurns > 0 && `${shown.unreportedTurns} turns unreported`}</td>
          <td>{tokens(shown.usage)}</td>
          <td>{cost(shown.costUsd)}</td>
          <td>{duration(shown.updatedAt - shown.createdAt)}</td>
          <td />
        </tr>
      </tbody>
    </table>
  )
}

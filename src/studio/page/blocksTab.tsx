/** The raw reply of a turn beside the blocks that were read from it. */

import { useSignal } from "@preact/signals"
import { state } from "./openRun.ts"
import { counted } from "./format.ts"
import { Json } from "./jsonText.tsx"
import { readReply } from "../internal/readReply.ts"

export const BlocksTab = () => {
  const hovered = useSignal(-1)
  const turn = state.value?.currentTurn?.message === undefined ? state.value?.turns.at(-1) : state.value.currentTurn
  if (turn?.message === undefined) return <p class="quiet">no reply yet</p>
  const raw = turn.message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
  const { blocks, failure, pieces } = readReply(raw)
  const calls = turn.message.content.filter((part) => part.type === "tool_use")
  const mark = (block: number | undefined) => ({
    class: block === undefined ? "" : block === hovered.value ? "span marked" : "span",
    onMouseEnter: () => (hovered.value = block ?? -1),
    onMouseLeave: () => (hovered.value = -1)
  })
  return (
    <div class="pair">
      <section aria-label="Raw reply">
        <h2>Raw reply of turn {turn.turn}</h2>
        <pre class="raw">
          {pieces.map(({ block, text }, index) => (
            <span key={index} {...mark(block)}>
              {text}
            </span>
          ))}
        </pre>
      </section>
      <section aria-label="Blocks">
        <h2>
          {counted(blocks.length, "block")}, {turn.outcome?.type ?? "not decided"}
        </h2>
        {blocks.map(({ content, flag, name, type }, index) => (
          <div key={index} {...mark(index)}>
            <b>{type}</b> {name} {flag !== "" && <span class="badge error">{flag}</span>}
            <pre>{content}</pre>
          </div>
        ))}
        {failure !== undefined && <p class="error">{failure}: the rest was not read</p>}
        {calls.map((call, index) => (
          <Json key={index} value={call} />
        ))}
        {turn.outcome?.type === "corrective" && <p class="error">{turn.outcome.corrective}</p>}
      </section>
    </div>
  )
}
